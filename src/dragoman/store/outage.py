"""An unavailable database: since when, why, and the outbox that keeps events until it is back.

Shared by every kind of store. Knows neither tables nor connections.

The outbox has one file per process, locked while the process lives. What a killed process left
there is delivered by the next one.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from copy import copy
from pathlib import Path

import msgspec

from dragoman.data_directory import make_private
from dragoman.errors import (
    DragomanError,
    LeaseLost,
    RowRefused,
    SequenceGap,
    StoreAway,
    StoreCorrupt,
    StoreError,
    StoreFull,
    UnknownSession,
)
from dragoman.store.earlier_format import CAMEL_CASE, current_event
from dragoman.store.records import Batch, Lease
from dragoman.store.sqlite.database import Database, prepare
from dragoman.store.store_limits import StoreLimits

logger = logging.getLogger("dragoman.store")

REFUSALS: tuple[type[DragomanError], ...] = (LeaseLost, UnknownSession, SequenceGap, RowRefused)
"""What says that a batch can never be written, however long one waits."""
_DELAYED = (
    "running turns continue, but are stored and shown only once it is back; nothing new starts "
    "until then"
)
_SHORT = 0.1
"""Seconds."""


class Outage:
    """The state of an outage. `cannot` is its message for people, unless the disk is full; by
    default, the reason."""

    def __init__(
        self,
        place: str,
        cannot: str = "",
        *,
        limits: StoreLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.place = place
        self._clock = clock
        self._limits = limits or StoreLimits()
        self._cannot = cannot
        self._error = StoreAway(place, cannot)
        self._since: float | None = None

    @property
    def is_on(self) -> bool:
        return self._since is not None

    @property
    def reason(self) -> str:
        return self._error.reason

    @property
    def told(self) -> str | None:
        """During an outage: the reason, and what is delayed by it."""
        if self._since is None:
            return None
        is_full = isinstance(self._error, StoreFull)
        return f"{self.reason if is_full else self._cannot or self.reason}: {_DELAYED}"

    @property
    def seconds(self) -> float:
        since = self._since  # another thread may end it
        return 0.0 if since is None else self._clock() - since

    @property
    def is_long(self) -> bool:
        return self.seconds > self._limits.outage_seconds

    def is_too_long(self, since: float) -> bool:
        """For a caller that has waited since then: an outage may begin repeatedly while some
        connections come back and others do not."""
        return self.is_long or self._clock() - since > self._limits.outage_seconds

    def begins(self, error: StoreAway) -> None:
        self._error = error
        if self._since is None:
            self._since = self._clock()
            logger.warning("%s; events are kept on this host until it is back", error)

    def ends(self) -> None:
        if self._since is None:
            return
        if self.seconds < _SHORT:  # no more than a connection was lost
            logger.warning("%s: connected again", self.place)
        else:
            logger.warning("%s: the database is back after %.1f s", self.place, self.seconds)
        self._since = None

    def error(self) -> StoreAway:
        """What began it, or was last reported, for those who wait."""
        return copy(self._error)


@contextmanager
def failure_logged(sentence: str, log: logging.Logger) -> Generator[None]:
    """For work that is done again later: what fails is logged and not raised. An outage was logged
    already, once, when it began."""
    try:
        yield
    except StoreAway:
        pass
    except DragomanError as error:
        log.warning("%s: %s", sentence, error)
    except Exception:
        log.exception("%s", sentence)


if sys.platform != "win32":
    import fcntl


_TABLE = """
CREATE TABLE IF NOT EXISTS waiting (place INTEGER PRIMARY KEY, lease BLOB, batch BLOB);
"""
_SET_VERSION = f"PRAGMA user_version = {CAMEL_CASE}"
_ADD = "INSERT INTO waiting (lease, batch) VALUES (?, ?)"
_ALL = "SELECT lease, batch FROM waiting ORDER BY place"

_encoder = msgspec.msgpack.Encoder()
_lease = msgspec.msgpack.Decoder(Lease)
_batch = msgspec.msgpack.Decoder(Batch)


class Outbox:
    """Events that wait, in the host's own data directory, for the store with this id; nothing is
    created until there is something to keep."""

    def __init__(self, folder: Path, store_id: str) -> None:
        self.store_id = store_id
        self._folder = folder / "outbox" / store_id
        self._lost = folder / "undelivered"
        self._file: _File | None = None
        self._is_full = False

    @property
    def holds_some(self) -> bool:
        return self._file is not None

    def keep(self, sent: list[tuple[Lease, Batch]]) -> None:
        """Durable when this returns. Raises StoreError."""
        if self._file is None:
            make_private(self._folder)
            self._file = _File(self._folder, f"{os.getpid()}-{os.urandom(4).hex()}.db")
        self._file.add(sent)

    def keeps(self, sent: list[tuple[Lease, Batch]]) -> bool:
        """Whether it is durable now. If not, it is still in memory and was not acknowledged; that
        is logged once, until something can be kept again."""
        try:
            self.keep(sent)
        except (StoreError, OSError) as error:
            if not self._is_full:
                logger.warning("the outbox cannot store it: %s", error)
            self._is_full = True
            return False
        self._is_full = False
        return True

    def clear(self) -> None:
        """All of it is delivered."""
        if self._file is not None:
            self._file.remove()
            self._file = None

    def close(self) -> None:
        """What was not delivered stays for the next process."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def left_behind(self) -> Iterator[LeftEvents]:
        """By processes that are gone, one after the other."""
        for path in sorted(self._folder.glob("*.db")) if self._folder.exists() else ():
            with suppress(BlockingIOError):
                yield LeftEvents(_Locked(self._folder, path.name))

    def set_aside(self, lease: Lease, events: Sequence[bytes]) -> None:
        """Nobody may own these: another host has taken the session, or deleted it. They
        stay in a file that is named after it. Raises OSError."""
        make_private(self._lost)
        path = self._lost / f"{lease.session_id}-{lease.epoch}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
            file.writelines(body + b"\n" for body in events)
            file.flush()
            os.fsync(file.fileno())
        logger.error(
            "session %s was taken over, deleted or refused: %d of its events are only in %s",
            lease.session_id,
            len(events),
            path,
        )


async def deliver_left(
    outbox: Outbox, deliver: Callable[[list[tuple[Lease, Batch]]], Awaitable[None]]
) -> None:
    """What processes left behind that are gone. Raises what `deliver` does."""
    for left in outbox.left_behind():
        try:
            entries = left.entries()
        except (StoreCorrupt, msgspec.MsgspecError) as error:
            logger.error("the events kept in %s cannot be read: %s", left.set_aside(), error)
            continue
        except (StoreError, OSError) as error:
            left.close()
            logger.error(
                "the kept events cannot be read now; the next start tries again: %s", error
            )
            continue
        try:
            await deliver(entries)
        except BaseException:
            left.close()
            raise
        left.remove()


class LeftEvents:
    """The undelivered events of one process that has ended."""

    def __init__(self, file: _Locked) -> None:
        self._file = file
        self._damaged = file.path.with_suffix(".damaged")
        self._log = file.path.with_suffix(".damaged-wal")

    def entries(self) -> list[tuple[Lease, Batch]]:
        """Raises StoreError, msgspec.MsgspecError."""
        # The log has what was added last, and SQLite removes one that it does not understand.
        with suppress(OSError):
            os.link(f"{self._file.path}-wal", self._log)
        with closing(Database(prepare(self._file.path.parent, self._file.path.name))) as db:
            db.run(_TABLE)
            rows, version = db.rows(_ALL), db.rows("PRAGMA user_version")[0][0]
        entries = [(_lease.decode(lease), _batch.decode(batch)) for lease, batch in rows]
        if version < CAMEL_CASE:
            for _, batch in entries:
                batch.events = [*map(current_event, batch.events)]
        return entries

    def set_aside(self) -> Path:
        """Where it is now, and stays, with its log."""
        os.rename(self._file.path, self._damaged)
        with suppress(FileNotFoundError):
            os.rename(f"{self._file.path}-wal", self._log)
        self._file.remove()
        return self._damaged

    def remove(self) -> None:
        with suppress(OSError):
            os.unlink(self._log)
        self._file.remove()

    def close(self) -> None:
        self._file.close()


class _Locked:
    """A file of ours. Raises BlockingIOError when a living process has it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self._lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if sys.platform != "win32":
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(self._lock)
            raise

    def remove(self) -> None:
        for ending in ("", "-wal", "-shm", ".lock"):
            with suppress(OSError):
                os.unlink(f"{self.path}{ending}")
        os.close(self._lock)

    def close(self) -> None:
        os.close(self._lock)


class _File:
    """A database with one table, of this process."""

    def __init__(self, folder: Path, name: str) -> None:
        self._locked = _Locked(folder, name)
        db: Database | None = None
        try:
            db = self._db = Database(prepare(folder, name))
            db.run(_TABLE)
            db.run(_SET_VERSION)
        except BaseException:
            if db is not None:
                db.close()
            self._locked.remove()
            raise

    def add(self, sent: list[tuple[Lease, Batch]]) -> None:
        self._db.run("BEGIN IMMEDIATE")
        try:
            for lease, batch in sent:
                self._db.run(_ADD, (_encoder.encode(lease), _encoder.encode(batch)))
            self._db.run("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.run("ROLLBACK")
            raise

    def remove(self) -> None:
        self._db.close()
        self._locked.remove()

    def close(self) -> None:
        self._db.close()
        self._locked.close()
