"""Removes from a recording what must not be kept.

That is every folder, process and date of this machine, and the agent's own prose. What is left are
the frames, in their order and shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.agents.extensions import EXTENSIONS, said

WORDS = "…"
_PROSE = ("description", "message", "hint", "instructions")
"""Members that only explain something to people."""
_DATES = ("createdAt", "updatedAt")
_GROUP = re.compile(r"\bPGID: \d+")
_AT_MOST = 5
"""Of a list of models or commands so many stay."""


def anonymous(recording: bytes, places: Mapping[str, str]) -> bytes:
    """The recording with `places` named otherwise, the longest first."""
    lines = [msgspec.json.decode(line) for line in recording.splitlines() if line.strip()]
    kept = [msgspec.json.encode(_line(line)) for line in lines if line["dir"] in ("->", "<-")]
    text = b"".join(line + b"\n" for line in kept).decode()
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(place, places[place])
    return text.encode()


def _line(line: dict[str, Any]) -> dict[str, Any]:
    """When it happened differs each time, and nobody asks."""
    return {"t": 0.0, "dir": line["dir"], "msg": _plain(line["msg"])}


def _plain(value: Any, name: str = "") -> Any:
    match value:
        case {**members} if name == "_meta":
            return _understood(members)
        case {**members}:
            plain = {key: _plain(item, key) for key, item in members.items()}
            return {key: item for key, item in plain.items() if key != "_meta" or item}
        case [*items]:
            few = items[:_AT_MOST] if name in ("availableCommands", "options", "models") else items
            return [_plain(item) for item in few]
        case str() if name in _PROSE and value:
            return WORDS
        case str() if name in _DATES:
            return "2026-01-01T00:00:00.000Z"
        case str():
            return _GROUP.sub("PGID: 1", value)
        case int() if name == "pid":
            return 1
        case _:
            return value


def _understood(meta: dict[str, Any]) -> dict[str, Any]:
    """What Dragoman reads of it."""
    kept: dict[str, Any] = {}
    for extension in EXTENSIONS:
        if (value := said(meta, extension)) is not None:
            place = kept
            for key in extension.path[:-1]:
                place = place.setdefault(key, {})
            place[extension.path[-1]] = _plain(value, extension.path[-1])
    return kept
