"""JSON for standard output, which may be a terminal: what agents say does not act on it."""

from __future__ import annotations

import msgspec

from dragoman.safe_text import escaped_json


def indented_json(value: object) -> str:
    """For `--json`."""
    return escaped_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def json_line(line: bytes) -> bytes:
    """A line that is JSON already."""
    return escaped_json(line.decode("utf-8", "surrogatepass")).encode()
