"""A connection to the SQLite file, which is private and not a link; every commit is durable.

The one place that speaks to apsw, and the one that turns its errors into ours. Knows no table.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import apsw

from dragoman.data_directory import make_private
from dragoman.errors import RowDuplicate, RowRefused, StoreAway, StoreCorrupt, StoreError, StoreFull
from dragoman.store.store_limits import StoreLimits

FILE_NAME = "dragoman.db"
IN_MEMORY = "the store in memory"

# By hand, since the types of apsw are not complete.
_apsw: Any = apsw
_READ, _WRITE = apsw.SQLITE_OPEN_READONLY, apsw.SQLITE_OPEN_READWRITE
_INCREMENTAL = 2
_PAGES_AT_ONCE = 500
# Deleted content is overwritten: a command that was taken may have held a secret. What a
# transaction would undo is kept in memory: in a file it is written to /var/tmp.
_SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA journal_size_limit = 16777216;
PRAGMA temp_store = MEMORY;
"""


class Database:
    """One connection, for one thread at a time; `path` None is a new database in memory.

    Every method raises StoreError. Statements are prepared once and kept. With `only_read` the
    files stay as they are, byte by byte.
    """

    def __init__(
        self,
        path: str | None,
        *,
        only_read: bool = False,
        limits: StoreLimits | None = None,
    ) -> None:
        self.limits = limits or StoreLimits()
        self.place = path or IN_MEMORY
        flags = (_READ if only_read else _WRITE) | apsw.SQLITE_OPEN_NOFOLLOW
        try:
            self._db: Any = (
                apsw.Connection(":memory:") if path is None else apsw.Connection(path, flags=flags)
            )
        except apsw.Error as error:
            self._fail(error)
        try:
            self.wait_for_others(self.limits.busy_seconds)
            if not only_read:
                self._set_up()
        except BaseException:
            self.close()
            raise

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        """To its end: where there are several, one that returns a row would stop the others."""
        self.rows(statement, values)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(statement, values).fetchall()
        except apsw.Error as error:
            self._fail(error)

    def row(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first."""
        rows = self.rows(statement, values)
        return rows[0] if rows else None

    def each(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """One by one, for what may be too much at once."""
        try:
            yield from self._db.execute(statement, values)
        except apsw.Error as error:
            self._fail(error)

    def fill_blob(self, table: str, column: str, rowid: int, body: bytes | bytearray) -> None:
        """Write what a `zeroblob` left room for. As a value of a statement it would be copied
        twice."""
        try:
            with self._db.blob_open("main", table, column, rowid, True) as blob:
                blob.write(body)
        except apsw.Error as error:
            self._fail(error)

    @property
    def in_transaction(self) -> bool:
        return not self._db.get_autocommit()

    @property
    def last_rowid(self) -> int:
        return self._db.last_insert_rowid()

    @property
    def changes(self) -> int:
        """The rows that the last statement changed."""
        return self._db.changes()

    @property
    def all_changes(self) -> int:
        """The rows that all statements so far have changed."""
        return self._db.total_changes()

    def give_back(self) -> int:
        """Shorten the file by some of its unused pages; how many bytes. One that was made before
        this could be done keeps its size, and uses them again."""
        if self.rows("PRAGMA auto_vacuum")[0][0] != _INCREMENTAL:
            return 0
        unused = min(self.rows("PRAGMA freelist_count")[0][0], _PAGES_AT_ONCE)
        # Each page is a row of the answer: it is done when all are read.
        self.rows(f"PRAGMA incremental_vacuum({unused})") if unused else None
        return unused * self.rows("PRAGMA page_size")[0][0]

    def data_version(self) -> int:
        """Another one when another connection has committed something."""
        return self.rows("PRAGMA data_version")[0][0]

    def wait_for_others(self, seconds: float) -> None:
        self._db.set_busy_timeout(int(seconds * 1000))

    def close(self) -> None:
        with suppress(apsw.Error):
            self._db.close()

    def _set_up(self) -> None:
        if self.rows("PRAGMA journal_mode")[0][0] != "wal":
            # Both count for a new file only, and before anything else is in it. A page is twice as
            # large as SQLite's own, since a batch fills many: that is half the system calls.
            self.run("PRAGMA page_size = 8192")
            self.run("PRAGMA auto_vacuum = INCREMENTAL")
            self._use_wal()
        self.run(_SETTINGS)
        try:
            self._db.register_fts5_function("hits", _hits)
        except apsw.Error as error:
            self._fail(error)

    def _use_wal(self) -> None:
        """SQLite does not wait by itself here, when several processes make one new database."""
        deadline = time.monotonic() + self.limits.busy_seconds
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except apsw.BusyError as error:
                if time.monotonic() > deadline:
                    self._fail(error)
                time.sleep(0.002)
            except apsw.Error as error:
                self._fail(error)

    def _fail(self, error: apsw.Error) -> NoReturn:
        raise store_error(self.place, error) from error


def _hits(found: Any) -> int:
    """How often what a search looks for is in a text."""
    return found.inst_count


def texts(values: Iterable[str]) -> Any:
    """For `carray(?)`: a list as one value of a statement; it must not be empty."""
    return _apsw.carray(tuple(values))


def blobs(values: Iterable[bytes]) -> Any:
    return _apsw.carray(tuple(values))


def integers(values: Iterable[int]) -> Any:
    return _apsw.carray(array("q", values))


def prepare(directory: Path, name: str = FILE_NAME) -> str:
    """The path of the database in its private directory, with its file there."""
    path = os.path.join(os.path.realpath(make_private(directory)), name)
    try:
        _make_private_file(path)
    except OSError as error:
        raise StoreError(path, f"cannot be opened: {error.strerror}") from error
    return path


def _make_private_file(path: str) -> None:
    """SQLite gives the files next to it the same permissions.

    A file that is there is not opened: closing it would end the locks that SQLite has on it.
    """
    with suppress(FileExistsError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
        return
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(path, "is not a regular file")
    if sys.platform != "win32":
        if status.st_uid != os.getuid():
            raise StoreError(path, "belongs to another user")
        if stat.S_IMODE(status.st_mode) != 0o600:
            os.chmod(path, 0o600)


def store_error(place: str, error: apsw.Error) -> StoreError:
    """The exception for callers; `place` is the database's file."""
    match error:
        case apsw.ConstraintError():
            return RowDuplicate(place, f"the database rejected a row: {error}")
        case apsw.TooBigError() | apsw.MismatchError() | apsw.RangeError():
            return RowRefused(place, f"the database rejected a row: {error}")
        case apsw.FullError():
            return StoreFull(place, "no space left to store events")
        case apsw.CorruptError() | apsw.NotADBError():
            return damaged(place, str(error))
        case apsw.BusyError() | apsw.LockedError():
            return StoreAway(place, "another process has locked the database for too long")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreAway(place, "the database cannot be written")
        case apsw.CantOpenError():
            return StoreAway(place, "the database cannot be opened")
        case apsw.IOError():
            return StoreAway(place, f"the disk failed: {error}")
        case apsw.NoMemError():
            return StoreAway(place, "there is not enough memory")
        case _:
            return StoreError(place, f"the database failed: {error}")


def is_locked(error: StoreError) -> bool:
    return isinstance(error.__cause__, apsw.BusyError | apsw.LockedError)


def lost(place: str, mirrors: int) -> StoreCorrupt:
    """There is nothing in the database, and so many mirrors of what was."""
    count = f"{mirrors} session{'' if mirrors == 1 else 's'}"
    sentence = (
        f"the database is missing or empty, and there are mirrors of {count}; "
        "`dragoman sessions recover` rebuilds it from them"
    )
    return StoreCorrupt(place, sentence)


def damaged(place: str, reason: str) -> StoreCorrupt:
    """Says what to do about it."""
    sentence = (
        f"the database is damaged ({reason}); "
        "`dragoman sessions recover` rebuilds it from the mirrors"
    )
    return StoreCorrupt(place, sentence)
