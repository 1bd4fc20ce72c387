"""Finds out whether the database is damaged, and builds a new one from the mirrors.

The damaged one is read as far as it can be, for what is newer than the mirrors, and then set aside:
nothing is deleted. Blocking; for a program that has no store open.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from dragoman.errors import StoreError
from dragoman.store.database import FILE_NAME, Database, prepare
from dragoman.store.failures import lost
from dragoman.store.migrations import has_tables, migrate
from dragoman.store.mirror_file import all_mirrors
from dragoman.store.salvage import Remains, from_database, from_mirror, rules_of, set_status

if sys.platform != "win32":
    import fcntl

_NEW = f"{FILE_NAME}.new"
_BESIDE = ("", "-wal", "-shm")
# Where SQLite marks the file beside the database that some process has it open.
_IN_USE_BYTE = 128


class Report(msgspec.Struct):
    """What was rebuilt; `remarks` says what could not be."""

    sessions: int = 0
    events: int = 0
    rules: int = 0
    set_aside: str | None = None
    """The damaged database, with what lies beside it under the same name."""
    remarks: list[str] = []


def check(directory: Path) -> list[str]:
    """What is wrong with the database, in its own words; nothing when it is in order."""
    home = Path(os.path.realpath(directory))
    path = home / FILE_NAME
    # Looked for first: whoever is just making the store writes them after the tables.
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


def recover(directory: Path) -> Report:
    """Raises StoreError while another process has the store open, and when there is no room."""
    home = Path(os.path.realpath(directory))
    old, new, report = home / FILE_NAME, home / _NEW, Report()
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


def _rebuild(db: Database, home: Path, old: Path | None, report: Report) -> None:
    for file in all_mirrors(home):
        _note(report, from_mirror(db, file))
    if old is not None:
        for remains in _from_old(db, old, report):
            _note(report, remains)
    for (session_id,) in db.rows("SELECT id FROM sessions"):
        set_status(db, session_id)
    row = db.rows("SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM events)")[0]
    report.sessions, report.events = row[0], row[1]


def _from_old(db: Database, old: Path, report: Report) -> Iterator[Remains]:
    try:
        damaged = Database(str(old), only_read=True)
    except StoreError as error:
        report.remarks.append(f"nothing could be read from the database: {error.reason}")
        return
    with closing(damaged):
        report.rules = rules_of(damaged, db, report.remarks)
        yield from from_database(damaged, db, report.remarks)


def _note(report: Report, remains: Remains) -> None:
    report.remarks += [f"session {remains.session_id}: {remark}" for remark in remains.remarks]


def _made(path: Path) -> Database:
    prepare(path.parent, path.name)
    db = Database(str(path))
    migrate(db)
    return db


def _set_aside(old: Path) -> str:
    """With the log beside it, which belongs to it by its name."""
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
    """Another process would go on writing into the database that is set aside."""
    if sys.platform == "win32":
        return
    with suppress(FileNotFoundError), open(f"{path}-shm", "r+b") as shared:
        try:
            fcntl.lockf(shared, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _IN_USE_BYTE)
        except OSError as error:
            raise StoreError(str(path), "another process has the store open") from error
