"""The JSONL mirror: one file per session, written by a thread of its own after each commit.

The process that has written to a session, or takes it over, brings its file up to the rows: a torn
end is cut, what is missing is appended, and a file that disagrees is set aside and written again.
So opening a store reads no mirror, and a file lags only as far as its last owner's sudden end left
it. A failure here is logged: the rows are the truth.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman.data_directory import make_private
from dragoman.errors import DragomanError, StoreError
from dragoman.store.mirror_lines import (
    VERSION,
    event_lines,
    header_line,
    is_header,
    last_seq_of,
    read_body,
    read_header,
    version_of,
)
from dragoman.store.records import Batch, SessionRecord
from dragoman.store.sqlite import sessions
from dragoman.store.sqlite.database import Database
from dragoman.store.store_limits import StoreLimits

logger = logging.getLogger("dragoman.store")

PAUSE_SECONDS = 0.05
"""So that a flood is written in large pieces."""


class Mirror:
    """`directory` has the files, `database` is the path of the rows."""

    def __init__(self, directory: Path, database: str, limits: StoreLimits) -> None:
        self._limits = limits
        self._directory = directory
        self._database = database
        self._changed = threading.Condition()
        self._todo: dict[str, Callable[[Database, str], None]] = {}
        self._fresh: dict[str, Fresh] = {}
        """What was just committed, so that it need not be read from the rows."""
        self._files: dict[str, MirrorFile] = {}
        self._behind: set[str] = set()
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def touch(self, session_id: str, batch: Batch | None = None) -> None:
        """There is more of the session in the rows than in the file, such as this batch."""
        if batch is not None:
            with self._changed:
                self._fresh.setdefault(session_id, Fresh()).add(batch)
        self._later(session_id, self._catch_up)

    def check(self, session_id: str) -> None:
        """Another process may have written to the session, or ended while it did."""
        self._later(session_id, self._examine)

    def remove(self, session_id: str) -> None:
        """The session is deleted."""
        self._later(session_id, self._remove)

    def unlink(self, session_id: str) -> None:
        """At once, from any thread."""
        unlink_mirror(self._directory, session_id)

    def close(self) -> None:
        """Waits until all files are up to date."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _later(self, session_id: str, what: Callable[[Database, str], None]) -> None:
        with self._changed:
            if what != self._catch_up or session_id not in self._todo:
                self._todo[session_id] = what
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dragoman-mirror")
                self._thread.daemon = True
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        db: Database | None = None
        while todo := self._next():
            for session_id, what in todo.items():
                try:
                    db = Database(self._database, limits=self._limits) if db is None else db
                    what(db, session_id)
                    self._behind.discard(session_id)
                except (OSError, DragomanError) as error:
                    self._note_failure(session_id, error)
        if db is not None:
            db.close()

    def _note_failure(self, session_id: str, error: Exception) -> None:
        """Said once, until it works again: a full disk fails many times a second."""
        self._files.pop(session_id, None)
        if session_id not in self._behind:
            self._behind.add(session_id)
            logger.warning("the mirror of session %s is out of date: %s", session_id, error)

    def _next(self) -> dict[str, Callable[[Database, str], None]]:
        """What there is to do; nothing at the end."""
        with self._changed:
            again = self._limits.mirror_seconds if self._behind else None
            self._changed.wait_for(lambda: self._todo or self._is_closing, timeout=again)
            self._changed.wait_for(lambda: self._is_closing, timeout=PAUSE_SECONDS)
            todo, self._todo = self._todo, {}
            if not todo and not self._is_closing:
                todo = dict.fromkeys(self._behind, self._examine)
            return todo

    def _catch_up(self, db: Database, session_id: str) -> None:
        if session_id not in self._files:
            make_private(self._directory)
            self._files[session_id] = MirrorFile(self._directory, session_id)
        with self._changed:
            fresh = self._fresh.pop(session_id, None)
        self._files[session_id].catch_up(db, fresh)

    def _examine(self, db: Database, session_id: str) -> None:
        self._files.pop(session_id, None)
        self._catch_up(db, session_id)

    def _remove(self, db: Database, session_id: str) -> None:
        self._files.pop(session_id, None)
        with self._changed:
            self._fresh.pop(session_id, None)
        self.unlink(session_id)


if sys.platform != "win32":
    import fcntl


DIRECTORY = "sessions"
"""Where they are in the data directory."""

_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FLAGS: int = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | _SAFELY
_PIECE = 1024 * 1024
_BEGINNING = 64
"""Bytes of a header that have its version."""
_PAGE = 2000
_MAX_FRESH = 2 * 1024 * 1024
_TRIES = 100
_ROWS = """
SELECT seq, body FROM events WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?
"""


@dataclass
class _Known:
    """What a file held when it was last written: as long as it has that size, it still does."""

    inode: int
    size: int
    seq: int
    header: bytes = b""


class _Disagrees(Exception):
    """The file says something else than the rows."""


class _Outdated(Exception):
    """The file has nothing that the rows do not have, in an earlier format."""


def mirror_path(directory: Path, session_id: str) -> Path:
    """Raises StoreError for an id that is none."""
    if not sessions.is_id(session_id):
        raise StoreError(str(directory), f"{session_id!r} is not a valid session id")
    return directory / f"{session_id}.jsonl"


def all_mirrors(home: Path) -> list[Path]:
    """Those of every session, in the order of their ids."""
    files = (home / DIRECTORY).glob("*.jsonl")
    return sorted(file for file in files if sessions.is_id(file.stem))


def unlink_mirror(directory: Path, session_id: str) -> None:
    path = mirror_path(directory, session_id)
    for each in (path, Path(f"{path}.old")):
        with suppress(FileNotFoundError):
            each.unlink()


@dataclass(frozen=True)
class _Rows:
    """A session in the database."""

    db: Database
    key: int
    record: SessionRecord

    @staticmethod
    def of(db: Database, session_id: str) -> _Rows | None:
        record = sessions.read(db, session_id)
        return None if record is None else _Rows(db, sessions.key_of(db, session_id), record)

    def line(self, seq: int) -> bytes:
        """The one of an event, b"" where there is none."""
        row = self.db.row(_ROWS, (self.key, seq - 1, seq, 1))
        return b"" if row is None else event_lines([row[1]])

    def after(self, seq: int) -> Iterator[tuple[bytes, int]]:
        """The lines after an event, in pieces, with the number of the last in each."""
        while (some := self._some_after(seq))[0]:
            bodies, seq = some
            yield event_lines(bodies), seq

    def _some_after(self, seq: int) -> tuple[list[bytes], int]:
        """As many as may be in memory at once."""
        bodies: list[bytes] = []
        size = 0
        for number, body in self.db.each(_ROWS, (self.key, seq, self.record.last_seq, _PAGE)):
            bodies.append(body)
            seq = number
            size += len(body)
            if size >= _PIECE:
                break
        return bodies, seq

    @property
    def identity(self) -> bytes:
        """What a header must be written for when it changes."""
        return _identity(self.record)


def _identity(record: SessionRecord) -> bytes:
    return header_line(msgspec.structs.replace(record, updated_at=0.0))


class Fresh:
    """Events in a row that were just committed, unless they are too many to be kept in memory."""

    def __init__(self) -> None:
        self.last_seq = 0
        self._bodies: list[bytes] = []
        self._size = 0

    def add(self, batch: Batch) -> None:
        if batch.first_seq != self.last_seq + 1:
            self._bodies, self._size = [], 0
        self._bodies += batch.events
        self._size += batch.size
        self.last_seq = batch.first_seq + len(batch.events) - 1
        if self._size > _MAX_FRESH:
            self._bodies, self._size = [], 0

    def after(self, seq: int) -> list[bytes]:
        """Those after an event; empty when the one that follows it is not here."""
        missing = self.last_seq - seq
        return self._bodies[-missing:] if 0 < missing <= len(self._bodies) else []


class MirrorFile:
    """Keeps one file up to date."""

    def __init__(self, directory: Path, session_id: str) -> None:
        self._session_id = session_id
        self._path = mirror_path(directory, session_id)
        self._known: _Known | None = None

    def catch_up(self, db: Database, fresh: Fresh | None = None) -> None:
        """Nothing happens for a session that was deleted. What is `fresh` is not read again."""
        if _Rows.of(db, self._session_id) is None:
            return
        known, self._known = self._known, None
        with self._locked() as file:
            # Read under the lock, or another process could have written what is newer.
            rows = _Rows.of(db, self._session_id)
            if rows is not None:
                self._known = self._brought_up(file, known, rows, fresh)
            elif os.fstat(file).st_size == 0:
                self._path.unlink()

    def _brought_up(
        self, file: int, known: _Known | None, rows: _Rows, fresh: Fresh | None
    ) -> _Known:
        status = os.fstat(file)
        try:
            if known is None or (known.inode, known.size) != (status.st_ino, status.st_size):
                known = _examined(file, status, rows)
        except _Disagrees:
            logger.warning("%s did not match the database and was rewritten", self._path)
            return self._rewritten(rows, keep=True)
        except _Outdated:
            return self._rewritten(rows, keep=False)
        return _extended(file, known, rows, fresh)

    def _rewritten(self, rows: _Rows, *, keep: bool) -> _Known:
        temporary = Path(f"{self._path}.new")
        with suppress(FileNotFoundError):
            temporary.unlink()
        file = os.open(temporary, _FLAGS | os.O_EXCL, 0o600)
        try:
            known = _extended(file, _Known(os.fstat(file).st_ino, 0, 0), rows)
            os.fsync(file)
            if keep:
                # What the old one had beyond the rows may be all that is left of it.
                os.replace(self._path, f"{self._path}.old")
            os.replace(temporary, self._path)
        finally:
            os.close(file)
        return known

    @contextmanager
    def _locked(self) -> Generator[int]:
        for _ in range(_TRIES):
            file = os.open(self._path, _FLAGS, 0o600)
            try:
                if sys.platform != "win32":
                    fcntl.flock(file, fcntl.LOCK_EX)
                if _is_still(file, self._path):
                    yield file
                    return
            finally:
                os.close(file)
        raise StoreError(str(self._path), "keeps being replaced")


def last_line(file: int, size: int) -> tuple[bytes, int]:
    """The last whole line, without its line feed, and where it ends; what follows is torn."""
    tail, start = b"", size
    while start > 0 and tail.count(b"\n") < 2:
        step = min(max(len(tail), 64 * 1024), start)
        start -= step
        tail = os.pread(file, step, start) + tail
    whole = tail.rpartition(b"\n")[0]
    if b"\n" not in tail:
        return b"", 0
    return whole.rpartition(b"\n")[2], start + len(whole) + 1


def _examined(file: int, status: os.stat_result, rows: _Rows) -> _Known:
    """What a file holds that we have not written ourselves; what is torn off is cut."""
    line, end = last_line(file, status.st_size)
    if end < status.st_size:
        os.ftruncate(file, end)
    if not line:
        return _Known(status.st_ino, end, 0)
    version = version_of(os.pread(file, _BEGINNING, 0))
    seq = _agreed(line, version, rows)
    if version < VERSION:
        raise _Outdated
    return _Known(status.st_ino, end, seq, _header_of(line))


def _header_of(line: bytes) -> bytes:
    """The identity in the last line of a file; b"" if that line is not a header we can read."""
    try:
        return _identity(read_header(line).session) if is_header(line) else b""
    except msgspec.DecodeError:
        return b""


def _agreed(line: bytes, version: int, rows: _Rows) -> int:
    """Up to which event a file goes whose last line is this one."""
    seq = last_seq_of(line)
    if seq is None or seq > rows.record.last_seq:
        raise _Disagrees
    if not is_header(line) and rows.line(seq) != event_lines([read_body(line, version)]):
        raise _Disagrees
    return seq


def _extended(file: int, known: _Known, rows: _Rows, fresh: Fresh | None = None) -> _Known:
    if known.size == 0:
        known.header = rows.identity
        write_lines(file, header_line(rows.record))
    bodies = [] if fresh is None else fresh.after(known.seq)
    # The session may have been deleted, and its id used again.
    if fresh is not None and bodies and rows.line(fresh.last_seq) == event_lines(bodies[-1:]):
        # What was committed since comes with the next batch, and need not be read from the rows.
        write_lines(file, event_lines(bodies))
        known.seq = fresh.last_seq
    else:
        for lines, seq in rows.after(known.seq):
            write_lines(file, lines)
            known.seq = seq
    if known.header != rows.identity:
        known.header = rows.identity
        write_lines(file, header_line(rows.record, known.seq))
    known.size = os.fstat(file).st_size
    return known


def write_lines(file: int, lines: bytes) -> None:
    rest = memoryview(lines)
    while rest:
        rest = rest[os.write(file, rest[:_PIECE]) :]


def _is_still(file: int, path: Path) -> bool:
    try:
        status, there = os.fstat(file), os.lstat(path)
    except FileNotFoundError:
        return False
    return (status.st_dev, status.st_ino) == (there.st_dev, there.st_ino)
