"""The lines of a mirror, which is also an archive: a header, then one event a line, in order.

A header is `{"dragoman": 2, "session": {…}}`. It may come again further down when the record has
changed: the last one counts, and says which event it follows. The number is the version of the
format of the lines after it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from dragoman.store.earlier_format import CAMEL_CASE, SNAKE_CASE, current, current_event
from dragoman.store.records import SessionRecord

VERSION = CAMEL_CASE


class Header(msgspec.Struct):
    dragoman: int
    session: SessionRecord


class _Place(msgspec.Struct, rename="camel"):
    last_seq: int = 0


class _AnyLine(msgspec.Struct):
    """As much of a line as says what it is and where it stands."""

    seq: int = 0
    dragoman: int | None = None
    session: _Place | None = None


_encoder = msgspec.json.Encoder()
_version = re.compile(rb'\{"dragoman":(\d{1,9})[,}]')
_any_line = msgspec.json.Decoder(_AnyLine)
_header = msgspec.json.Decoder(Header)


def header_line(record: SessionRecord, last_seq: int = 0) -> bytes:
    """What a header says lasts: that a turn is running is soon outdated."""
    status = "closed" if record.status == "closed" else "idle"
    lasting = msgspec.structs.replace(record, status=status, last_seq=last_seq, copied=0)
    return _encoder.encode(Header(VERSION, lasting)) + b"\n"


def event_lines(bodies: Sequence[bytes]) -> bytes:
    """One for each event, with its line feed."""
    if b"\n" in b"".join(bodies):
        # Between tokens is the only place where JSON may have a line feed.
        bodies = [body.replace(b"\n", b" ") for body in bodies]
    return b"\n".join([*bodies, b""])


def is_header(line: bytes) -> bool:
    return header_version(line) is not None


def header_version(line: bytes) -> int | None:
    """The version of the format that a header announces; None where it is none."""
    found = _looked_at(line)
    return None if found is None else found.dragoman


def version_of(beginning: bytes) -> int:
    """The format of a file of ours, by the first bytes of its header."""
    found = _version.match(beginning)
    return VERSION if found is None else int(found[1])


def read_header(line: bytes) -> Header:
    """Raises msgspec.DecodeError where it is none."""
    return _header.decode(_current_header(line))


def read_body(line: bytes, version: int) -> bytes:
    """The event of a line that follows a header with this version."""
    return current_event(line) if version == SNAKE_CASE else line


def last_seq_of(line: bytes) -> int | None:
    """Up to which event a file goes that ends with this line; None when it does not say."""
    found = _looked_at(line)
    if found is None:
        return None
    if found.dragoman is None:
        return found.seq or None
    if found.dragoman == SNAKE_CASE:
        found = _looked_at(current(Header, line)) or found
    return None if found.session is None else found.session.last_seq


def _current_header(line: bytes) -> bytes:
    return current(Header, line) if header_version(line) == SNAKE_CASE else line


def is_json(line: bytes) -> bool:
    return _looked_at(line) is not None


def _looked_at(line: bytes) -> _AnyLine | None:
    try:
        return _any_line.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
