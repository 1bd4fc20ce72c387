"""The lines of a mirror, which is also an archive: a header, then one event a line, in order.

A header is `{"dragoman": 1, "session": {…}}`. It may come again further down when the record has
changed: the last one counts, and says behind which event it stands. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.store.records import SessionRecord

VERSION = 1


class Header(msgspec.Struct):
    dragoman: int
    session: SessionRecord


class _Place(msgspec.Struct):
    last_seq: int = 0


class _AnyLine(msgspec.Struct):
    """As much of a line as says what it is and where it stands."""

    seq: int = 0
    dragoman: int | None = None
    session: _Place | None = None


_encoder = msgspec.json.Encoder()
_any_line = msgspec.json.Decoder(_AnyLine)
_header = msgspec.json.Decoder(Header)


def header_line(record: SessionRecord, last_seq: int = 0) -> bytes:
    """What a header says lasts: that a turn is running is soon outdated."""
    status = "closed" if record.status == "closed" else "idle"
    lasting = msgspec.structs.replace(record, status=status, last_seq=last_seq)
    return _encoder.encode(Header(VERSION, lasting)) + b"\n"


def event_lines(bodies: Sequence[bytes]) -> bytes:
    """One for each event, with its line feed."""
    lines = b"\n".join([*bodies, b""])
    if lines.count(b"\n") > len(bodies):
        # Between tokens is the only place where JSON may have a line feed.
        return b"".join(body.replace(b"\n", b" ") + b"\n" for body in bodies)
    return lines


def is_header(line: bytes) -> bool:
    found = _looked_at(line)
    return found is not None and found.dragoman is not None


def read_header(line: bytes) -> Header:
    """Raises msgspec.DecodeError where it is none."""
    return _header.decode(line)


def last_seq_of(line: bytes) -> int | None:
    """Up to which event a file goes that ends with this line; None when it does not say."""
    found = _looked_at(line)
    if found is None:
        return None
    if found.dragoman is None:
        return found.seq or None
    return None if found.session is None else found.session.last_seq


def is_json(line: bytes) -> bool:
    return _looked_at(line) is not None


def _looked_at(line: bytes) -> _AnyLine | None:
    try:
        return _any_line.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
