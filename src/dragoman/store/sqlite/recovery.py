"""Checks a database for damage, and rebuilds it from the mirrors and what can still be read.

The damaged one is read as far as it can be, for what is newer than the mirrors, and then set aside:
nothing is deleted. Blocking; for a program that has no store open.

Reads as far as it can and says where it could not; writes into a new database.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import msgspec

from dragoman.errors import NameTaken, StoreError
from dragoman.host.rules.rule import Rule
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState, loose_ends
from dragoman.store.earlier_format import current_event
from dragoman.store.mirror_lines import (
    VERSION,
    header_version,
    is_json,
    last_seq_of,
    read_body,
    read_header,
)
from dragoman.store.records import (
    SessionChange,
    SessionRecord,
    encode_event,
    readable_events,
    status_at_rest,
)
from dragoman.store.search_texts import Texts
from dragoman.store.sqlite import sessions
from dragoman.store.sqlite.database import FILE_NAME, Database, lost, prepare
from dragoman.store.sqlite.events import add_events, add_said
from dragoman.store.sqlite.mirror import all_mirrors
from dragoman.store.sqlite.rules import ADD_RULE
from dragoman.store.sqlite.tables import has_tables, is_earlier, migrate

if sys.platform != "win32":
    import fcntl

_NEW = f"{FILE_NAME}.new"
_BESIDE = ("", "-wal", "-shm")
# Where SQLite marks, in the file next to the database, that some process has it open.
_IN_USE_BYTE = 128


class RecoveryReport(msgspec.Struct):
    """What was rebuilt; `remarks` says what could not be."""

    sessions: int = 0
    events: int = 0
    rules: int = 0
    set_aside: str | None = None
    """The damaged database, with the files next to it of the same name."""
    remarks: list[str] = []


def check(directory: Path) -> list[str]:
    """What is wrong with the database, in its own words; nothing when it is in order."""
    home = Path(os.path.realpath(directory))
    path = home / FILE_NAME
    # Looked for first: a process that is creating the store writes them after the tables.
    mirrors = all_mirrors(home)
    if _is_empty(path):
        return [lost(str(path), len(mirrors)).reason] if mirrors else []
    try:
        with closing(Database(str(path))) as db:
            found = [row[0] for row in db.rows("PRAGMA integrity_check")]
            db.run("INSERT INTO said_words (said_words, rank) VALUES ('integrity-check', 1)")
    except StoreError as error:
        return [error.reason]
    return [] if found == ["ok"] else found


def recover(directory: Path) -> RecoveryReport:
    """Raises StoreError while another process has the store open, and when there is no room."""
    home = Path(os.path.realpath(directory))
    old, new, report = home / FILE_NAME, home / _NEW, RecoveryReport()
    _must_not_be_in_use(old)
    _unlink(new)
    try:
        with closing(_made(new)) as db:
            db.run("BEGIN IMMEDIATE")
            _rebuild(db, home, None if _is_empty(old) else old, report)
            db.run("COMMIT")
    except BaseException:
        _unlink(new)
        raise
    # Also a log that is there alone: SQLite would take it for that of the new database.
    if any(os.path.lexists(f"{old}{suffix}") for suffix in _BESIDE):
        report.set_aside = _set_aside(old)
    os.replace(new, old)
    return report


def _is_empty(path: Path) -> bool:
    """Whether there is no database, or one without a table."""
    try:
        # SQLite would delete the log of a file without a byte.
        if path.lstat().st_size == 0:
            return True
        with closing(Database(str(path), only_read=True)) as db:
            return not has_tables(db)
    except FileNotFoundError:
        return True
    except StoreError:
        return False  # damaged


def _rebuild(db: Database, home: Path, old: Path | None, report: RecoveryReport) -> None:
    for file in all_mirrors(home):
        _note(report, from_mirror(db, file))
    if old is not None:
        for remains in _from_old(db, old, report):
            _note(report, remains)
    for (session_id,) in db.rows("SELECT id FROM sessions"):
        put_at_rest(db, session_id)
    row = db.rows("SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM events)")[0]
    report.sessions, report.events = row[0], row[1]


def _from_old(db: Database, old: Path, report: RecoveryReport) -> Iterator[Remains]:
    try:
        damaged = Database(str(old), only_read=True)
    except StoreError as error:
        report.remarks.append(f"nothing could be read from the database: {error.reason}")
        return
    with closing(damaged):
        report.rules = rules_of(damaged, db, report.remarks)
        yield from from_database(damaged, db, report.remarks)


def _note(report: RecoveryReport, remains: Remains) -> None:
    report.remarks += [f"session {remains.session_id}: {remark}" for remark in remains.remarks]


def _made(path: Path) -> Database:
    prepare(path.parent, path.name)
    db = Database(str(path))
    migrate(db)
    return db


def _set_aside(old: Path) -> str:
    """With the log next to it, which belongs to it by its name."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name, count = f"{old}.damaged-{stamp}", 1
    while os.path.lexists(name):
        name, count = f"{old}.damaged-{stamp}-{count}", count + 1
    for suffix in _BESIDE:
        with suppress(FileNotFoundError):
            os.replace(f"{old}{suffix}", f"{name}{suffix}")
    return name


def _unlink(path: Path) -> None:
    for suffix in _BESIDE:
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")


def _must_not_be_in_use(path: Path) -> None:
    """Another process would continue writing into the database that is set aside."""
    if sys.platform == "win32":
        return
    with suppress(FileNotFoundError), open(f"{path}-shm", "r+b") as shared:
        try:
            fcntl.lockf(shared, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _IN_USE_BYTE)
        except OSError as error:
            raise StoreError(str(path), "another process has the store open") from error


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
    expected, written = 1, VERSION
    for number, line in enumerate(lines, 1):
        body = line.rstrip(b"\n")
        if not line.endswith(b"\n") or not is_json(body):
            remains.remarks.append(f"its mirror is torn at line {number}")
            return
        if (version := header_version(body)) is not None:
            if version > VERSION:
                remains.remarks.append("its mirror was written by a later version of Dragoman")
                return
            written = version
            with suppress(msgspec.DecodeError):
                remains.record = read_header(body).session
            continue
        seq = last_seq_of(body) or expected
        if seq > expected:
            remains.remarks.append(f"its mirror has a gap before line {number}")
            return
        if seq == expected:
            expected += 1
            yield read_body(body, written)


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
        remains.record = record = sessions.read_damaged(damaged, session_id)
        # Without a last event it is a copy that was never finished: nobody has seen any of it.
        bodies = _rows(damaged, key, remains) if record is not None and record.last_seq else []
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
    now = current_event if is_earlier(damaged) else bytes
    while isinstance(body := found.get(remains.seq + len(bodies) + 1), bytes):
        bodies.append(now(body))
    if len(bodies) < len(found):
        remains.remarks.append(f"there is a gap after event {remains.seq + len(bodies)}")
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
    record.status = "closed" if record.status == "closed" else "idle"  # until `put_at_rest`
    if sessions.read(db, record.id) is None:
        nameless = msgspec.structs.replace(record, name=None)
        sessions.create(db, nameless)
    key, texts, rest = sessions.key_of(db, record.id), Texts(), iter(bodies)
    while some := list(islice(rest, _PAGE)):
        add_events(db, key, remains.seq, some)
        said = texts.feed([*readable_events(some)])
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
        remains.remarks.append(f"its name {record.name} belongs to another session")
        sessions.change_records(db, [(key, remains.seq, fields | {"name": None})])


def put_at_rest(db: Database, session_id: str) -> None:
    """When all is there that is left: a record says what it did while someone ran it, and nobody
    will answer a question that is open."""
    record, key = sessions.known(db, session_id), sessions.key_of(db, session_id)
    bodies = (row[0] for row in db.each(_BODIES, (key,)))
    state = fold(SessionState(), readable_events(bodies))
    ends, now = loose_ends(state), time.time()
    for seq, event in enumerate(ends, record.last_seq + 1):
        event.seq, event.at = seq, now
    add_events(db, key, record.last_seq, [encode_event(event) for event in ends])
    change = SessionChange(status=status_at_rest(record.status, state))
    last = record.last_seq + len(ends)
    sessions.change_records(db, [(key, last, msgspec.to_builtins(change))])


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
    """And without waiting for a writer of a FIFO."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
