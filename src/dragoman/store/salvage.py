"""What is left of sessions and rules, from their mirrors and from a damaged database.

Reads as far as it can and says where it could not; writes into a new database.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from dragoman.errors import NameTaken, StoreError
from dragoman.host.matching import Rule
from dragoman.session.events import Event
from dragoman.store import sessions
from dragoman.store.appending import add_events, add_said
from dragoman.store.database import Database
from dragoman.store.lines import is_header, is_json, last_seq_of, read_header
from dragoman.store.records import Said, SessionChange, SessionRecord, decode_event
from dragoman.store.rules import ADD_RULE
from dragoman.store.status import status_at_rest
from dragoman.store.texts import Texts

_PAGE = 1000
_EVENTS = "SELECT seq, body FROM events {how} WHERE session = ? AND seq > ? ORDER BY seq"
_BODIES = "SELECT body FROM events WHERE session = ? ORDER BY seq"


class Remains(msgspec.Struct):
    """A session on its way into the new database."""

    session_id: str
    remarks: list[str]
    record: SessionRecord | None = None
    seq: int = 0


def from_mirror(db: Database, file: Path) -> Remains:
    """All whole lines, as far as they follow each other."""
    remains = Remains(file.stem, [])
    try:
        with open(file, "rb", opener=_without_links) as lines:
            bodies = list(_bodies(lines, remains))
    except OSError as error:
        remains.remarks.append(f"its mirror cannot be read: {error.strerror}")
        return remains
    if remains.record is None:
        remains.remarks.append("its mirror has no header and was left where it is")
    else:
        _store(db, remains, remains.record, bodies)
    return remains


def _bodies(lines: Iterable[bytes], remains: Remains) -> Iterator[bytes]:
    expected = 1
    for number, line in enumerate(lines, 1):
        body = line.rstrip(b"\n")
        if not line.endswith(b"\n") or not is_json(body):
            remains.remarks.append(f"its mirror is torn at line {number}")
            return
        if is_header(body):
            with suppress(msgspec.DecodeError):
                remains.record = read_header(body).session
            continue
        seq = last_seq_of(body) or expected
        if seq > expected:
            remains.remarks.append(f"its mirror has a gap before line {number}")
            return
        if seq == expected:
            expected += 1
            yield body


def from_database(damaged: Database, db: Database, remarks: list[str]) -> Iterator[Remains]:
    """The sessions of a damaged database with what is newer there, as far as it can be read."""
    try:
        found = damaged.rows("SELECT key, id FROM sessions WHERE NOT deleted ORDER BY key")
    except StoreError as error:
        remarks.append(f"the list of sessions could not be read: {error.reason}")
        return
    for key, session_id in found:
        if sessions.is_id(session_id):
            yield _newer(damaged, db, key, session_id)


def _newer(damaged: Database, db: Database, key: int, session_id: str) -> Remains:
    remains = Remains(session_id, [])
    known = sessions.read(db, session_id)
    remains.seq = 0 if known is None else known.last_seq
    try:
        remains.record = sessions.read(damaged, session_id)
        bodies = _rows(damaged, key, remains)
    except (StoreError, msgspec.DecodeError, ValueError) as error:
        remains.remarks.append(f"its newest events could not be read: {error}")
        return remains
    if remains.record is not None:
        _store(db, remains, remains.record, bodies)
    return remains


def _rows(damaged: Database, key: int, remains: Remains) -> list[bytes]:
    """By the index, else without it: either may be damaged."""
    found: dict[int, bytes] = {}
    if not (
        _gather(damaged, key, remains.seq, "", found)
        or _gather(damaged, key, remains.seq, "NOT INDEXED", found)
    ):
        remains.remarks.append("some of its events could not be read")
    bodies: list[bytes] = []
    while isinstance(body := found.get(remains.seq + len(bodies) + 1), bytes):
        bodies.append(body)
    if len(bodies) < len(found):
        remains.remarks.append(f"events behind {remains.seq + len(bodies)} have a gap before them")
    return bodies


def _gather(damaged: Database, key: int, after: int, how: str, found: dict[int, bytes]) -> bool:
    """Whether all could be read."""
    try:
        found.update(
            (row[0], row[1]) for row in damaged.each(_EVENTS.format(how=how), (key, after))
        )
    except StoreError:
        return False
    return True


def _store(db: Database, remains: Remains, record: SessionRecord, bodies: list[bytes]) -> None:
    record.id = remains.session_id
    record.status = "closed" if record.status == "closed" else "idle"  # until `set_status`
    if sessions.read(db, record.id) is None:
        nameless = msgspec.structs.replace(record, name=None)
        sessions.create(db, nameless)
    key, texts, rest = sessions.key_of(db, record.id), Texts(), iter(bodies)
    while some := list(islice(rest, _PAGE)):
        add_events(db, key, remains.seq, some)
        said = [each for body in some for each in _said(texts, body)]
        add_said(db, [(key, each.seq, each.kind, each.text) for each in said])
        remains.seq += len(some)
    _change(db, key, remains, record)


def _change(db: Database, key: int, remains: Remains, record: SessionRecord) -> None:
    """The record as it is known now; what the database says is newer than what a header does."""
    names = SessionChange.__struct_fields__
    fields = {name: getattr(record, name) for name in names}
    try:
        sessions.change_records(db, [(key, remains.seq, fields)])
    except NameTaken:
        remains.remarks.append(f"its name {record.name} is that of another session")
        sessions.change_records(db, [(key, remains.seq, fields | {"name": None})])


def set_status(db: Database, session_id: str) -> None:
    """When all is there that is left: a record says what it did while somebody ran it."""
    record, key = sessions.known(db, session_id), sessions.key_of(db, session_id)
    bodies = (row[0] for row in db.each(_BODIES, (key,)))
    status = status_at_rest(record.status, _readable(bodies))
    sessions.change(db, session_id, SessionChange(status=status))


def _readable(bodies: Iterable[bytes]) -> Iterator[Event]:
    for body in bodies:
        # What cannot be understood is kept, and passed over.
        with suppress(msgspec.DecodeError, RecursionError):
            yield decode_event(body)


def _said(texts: Texts, body: bytes) -> list[Said]:
    try:
        return texts.feed(decode_event(body))
    except (msgspec.DecodeError, RecursionError):
        return []  # stored all the same: what cannot be understood is kept


def rules_of(damaged: Database, db: Database, remarks: list[str]) -> int:
    """Copy the rules, as far as they can be read; how many."""
    count = 0
    try:
        for row in damaged.each("SELECT id, body, created_at, used_at FROM rules ORDER BY place"):
            msgspec.json.decode(row[1], type=Rule)
            db.run(ADD_RULE, row)
            count += 1
    except (StoreError, msgspec.DecodeError) as error:
        remarks.append(f"some rules could not be read: {error}")
    return count


def _without_links(path: str, flags: int) -> int:
    """And without waiting for whoever would write into a FIFO."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
