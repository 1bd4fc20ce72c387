"""The one thread that writes: everything queued during a commit forms the next one.

There is no timer: a lone job is committed at once. Callers get the result after the
commit, once for all of them. While the database is locked by someone else or the disk is full,
events gather, in the outbox if there is room, and are written in their order when that is over.
Knows no table but what its jobs bring.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from dragoman.errors import (
    StoreAway,
    StoreError,
)
from dragoman.store.outage import REFUSALS, Outage, Outbox
from dragoman.store.records import Batch, Lease
from dragoman.store.sqlite.database import Database, is_locked
from dragoman.store.sqlite.events import append_all, off_record
from dragoman.store.sqlite.tables import must_not_be_later

logger = logging.getLogger("dragoman.store")

T = TypeVar("T")

COMMIT_SECONDS = 0.05
"""A transaction takes no further job after that time, …"""
COMMIT_BYTES = 4 * 1024 * 1024
"""… no more events than that …"""
COMMIT_JOBS = 500
"""… and no more jobs than that."""
QUIET_SECONDS = 5.0
"""Nobody has written anything for a while."""

_AGAIN_SECONDS = 0.25
"""How long to wait for another process once it is known to have locked the database, …"""
_LONGEST_PAUSE = 2.0
"""… and how long at most between two tries on a disk that is full."""
_WIPE_SECONDS = 1.0


class WriteJob(msgspec.Struct, Generic[T], eq=False):
    """`run` is called in a transaction, `after` once it is committed. One that is `lasting` waits
    for a database that cannot be written for as long as it takes."""

    run: Callable[[Database], T]
    future: asyncio.Future[T]
    writes: bool = True
    wipes: bool = False
    """Whether it deletes what should not stay in the log of the database either."""
    lasting: bool = False
    after: Callable[[], None] | None = None
    size: int = 0


class Append(msgspec.Struct, eq=False):
    """A job of the most frequent kind; adjacent ones in the queue become one. One that
    was tried before (`again`) may be stored already; one that is `kept` is in the outbox."""

    writes: ClassVar = True
    wipes: ClassVar = False
    lasting: ClassVar = True

    lease: Lease
    batch: Batch
    future: asyncio.Future[int]
    after: Callable[[], None] | None
    again: bool = False
    kept: bool = False
    size: int = 0

    def __post_init__(self) -> None:
        self.size = self.batch.size


AnyJob: TypeAlias = WriteJob[Any] | Append
Settled: TypeAlias = tuple[AnyJob, Any]
"""A job, and its result or the exception for the caller."""


class StoreWriter:
    """`on_news` is called in the loop after a commit that wrote something, once what was waited for
    is settled; also when another process wrote something, while `watch` is on. Without an `outbox`,
    what cannot be written is only in memory."""

    def __init__(self, db: Database, outbox: Outbox | None = None) -> None:
        self._db = db
        self._limits = db.limits
        self.outage = Outage(db.place, limits=db.limits)
        self._outbox = outbox
        self._kept: dict[str, int] = {}
        """By session: the last event that is in the outbox."""
        self._must_stay = False
        self._pause = _AGAIN_SECONDS
        self._gives_up_at: float | None = None
        self.on_news: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[AnyJob | None] = SimpleQueue()
        self._waiting: deque[AnyJob] = deque()
        self._watched = False
        self._wipe_at: float | None = None
        self._seen = db.data_version()
        self._last_news = time.monotonic()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._is_closing = self._has_all = False
        db.wait_for_others(self._locked_seconds())
        self._thread = threading.Thread(target=self._run, name="dragoman-store", daemon=True)
        self._thread.start()

    # ── in the loop ───────────────────────────────────────────────────────────────────────────

    def submit(self, job: AnyJob) -> None:
        """Raises StoreError when the store is closed."""
        if self._is_closing:
            raise StoreError(self._db.place, "the store is closed")
        self._queue.put(job)

    def watch(self, on: bool) -> None:
        """Whether to look for what others write."""
        self._watched = on
        if on and not self._is_closing:
            # It may be waiting without an end.
            self._queue.put(WriteJob(lambda db: None, self._loop.create_future(), writes=False))

    def has_kept(self, session_id: str, seq: int) -> bool:
        """Whether an event that is not written yet is on the disk meanwhile."""
        return self._kept.get(session_id, 0) >= seq

    async def deliver(self, entries: Sequence[tuple[Lease, Batch]]) -> None:
        """Recover what an ended process left; what nobody may own is set aside.
        Raises StoreError when some of it is nowhere else yet."""
        appends = [
            Append(lease, batch, self._loop.create_future(), None, again=True, kept=True)
            for lease, batch in entries
        ]
        for append in appends:
            self.submit(append)
        results = await asyncio.gather(*(each.future for each in appends), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, REFUSALS):
                raise result
        if self._must_stay:
            reason = "events kept while the store was not writable could not be set aside"
            raise StoreError(self._db.place, reason)

    async def aclose(self) -> None:
        """Everything that was submitted is committed first, if that can be done in time; if not,
        the outbox has what matters of it."""
        if not self._is_closing:
            self._is_closing = True
            self._queue.put(None)
        await asyncio.shield(self._ended)

    def _settle(self, settled: list[Settled]) -> None:
        for job, result in settled:
            resolve(job.future, result)
        if any(job.writes and not isinstance(result, BaseException) for job, result in settled):
            self.on_news()

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    # ── in the thread ─────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            while self._wait_for_jobs():
                self._commit(self._next_jobs())
                self._wipe_if_due()
        finally:
            self._close()
            self._call(self._end)

    def _wait_for_jobs(self) -> bool:
        """False when there will be no more."""
        while not self._waiting and not self._has_all:
            try:
                self._gather(self._queue.get(timeout=self._patience()))
            except Empty:
                if self.outage.is_on:
                    self._try_again()
                self._wipe_if_due()
                self._look_around()
        return bool(self._waiting)

    def _patience(self) -> float | None:
        if self.outage.is_on:
            return self._pause
        if self._watched:
            is_quiet = time.monotonic() - self._last_news > QUIET_SECONDS
            return self._limits.quiet_poll_seconds if is_quiet else self._limits.poll_seconds
        return None if self._wipe_at is None else max(self._wipe_at - time.monotonic(), 0.001)

    def _gather(self, job: AnyJob | None) -> None:
        if job is None:
            self._has_all = True
        else:
            self._waiting.append(job)

    def _next_jobs(self) -> list[AnyJob]:
        """As many as one transaction should have."""
        with suppress(Empty):
            while True:
                self._gather(self._queue.get_nowait())
        jobs, size = [self._waiting.popleft()], 0
        while self._waiting and size < COMMIT_BYTES and len(jobs) < COMMIT_JOBS:
            jobs.append(self._waiting.popleft())
            size += jobs[-1].size
        return jobs

    def _commit(self, jobs: list[AnyJob]) -> None:
        end = time.monotonic() + COMMIT_SECONDS
        settled: list[Settled] = []
        try:
            self._begin(writes=any(job.writes for job in jobs))
            for unit in _units(jobs):
                settled += self._perform(unit)
                if time.monotonic() > end:
                    break
            self._db.run("COMMIT")
        except StoreAway as error:
            self._roll_back()
            return self._put_off(jobs, error)
        except Exception as error:
            self._roll_back()
            settled = [(job, copy(error)) for job in jobs]
        self._waiting.extendleft(reversed(jobs[len(settled) :]))
        self._follow_up(settled)
        if self.outage.is_on and any(job.writes for job in jobs):
            self._come_back()
        if self._kept:
            self._clear_outbox()
        self._call(self._settle, settled)
        return None

    def _begin(self, *, writes: bool) -> None:
        self._db.run("BEGIN IMMEDIATE" if writes else "BEGIN")
        if writes:
            must_not_be_later(self._db)

    def _perform(self, unit: Sequence[AnyJob]) -> list[Settled]:
        """Raises when the whole transaction is lost."""
        try:
            return list(zip(unit, self._alone(unit), strict=True))
        except Exception as error:
            if not self._db.in_transaction or isinstance(error, StoreAway):
                raise
            if len(unit) > 1:
                return [settled for job in unit for settled in self._perform([job])]
            return [(unit[0], error)]

    def _alone(self, unit: Sequence[AnyJob]) -> Sequence[Any]:
        """All of it, or nothing."""
        self._db.run("SAVEPOINT alone")
        try:
            results = _run(self._db, unit)
        except BaseException:
            if self._db.in_transaction:
                self._db.run("ROLLBACK TO alone")
                self._db.run("RELEASE alone")
            raise
        self._db.run("RELEASE alone")
        return results

    def _roll_back(self) -> None:
        with suppress(StoreError):
            if self._db.in_transaction:
                self._db.run("ROLLBACK")

    # ── while it cannot be written ────────────────────────────────────────────────────────────

    def _put_off(self, jobs: list[AnyJob], error: StoreAway) -> None:
        """It is tried again, in its old place; what can be asked for again is refused in time."""
        self.outage.begins(error)
        for job in jobs:
            if isinstance(job, Append):
                job.again = True
        self._waiting.extendleft(reversed(jobs))
        self._db.wait_for_others(_AGAIN_SECONDS)
        self._keep()
        if self._is_closing and self._gives_up_at is None:
            self._gives_up_at = time.monotonic() + self._limits.close_seconds
        if self._gives_up_at is not None and time.monotonic() > self._gives_up_at:
            self._refuse(lambda job: True)
        elif not is_locked(error) or self.outage.seconds > self._limits.busy_seconds:
            self._refuse(lambda job: not job.lasting)
        if not is_locked(error):
            self._rest()

    def _appends(self) -> list[Append]:
        return [job for job in self._waiting if isinstance(job, Append)]

    def _rest(self) -> None:
        """For a while, or until there is more to keep."""
        with suppress(Empty):
            self._gather(self._queue.get(timeout=self._pause))
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _keep(self) -> None:
        new = [job for job in self._appends() if not job.kept]
        if self._outbox is None or not new:
            return
        if not self._outbox.keeps([(job.lease, job.batch) for job in new]):
            return
        for job in new:
            job.kept = True
            self._kept[job.lease.session_id] = job.batch.first_seq + len(job.batch.events) - 1

    def _refuse(self, which: Callable[[AnyJob], bool]) -> None:
        refused = [job for job in self._waiting if which(job)]
        self._waiting = deque(job for job in self._waiting if not which(job))
        appends = [job for job in refused if isinstance(job, Append)]
        if lost := sum(len(job.batch.events) for job in appends if not job.kept):
            logger.error("%s: %d events could not be stored", self._db.place, lost)
        self._must_stay |= any(job.kept for job in appends)
        self._call(self._settle, [(job, self.outage.error()) for job in refused])

    def _come_back(self) -> None:
        self._pause = _AGAIN_SECONDS
        self._db.wait_for_others(self._locked_seconds())
        self.outage.ends()

    def _try_again(self) -> None:
        """Nothing is waiting that could show that it is over."""
        try:
            self._db.run("BEGIN IMMEDIATE")
            self._db.run(f"PRAGMA user_version = {self._db.rows('PRAGMA user_version')[0][0]}")
            self._db.run("COMMIT")
            self._come_back()
        except StoreError:
            self._roll_back()
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _locked_seconds(self) -> float:
        return min(self._limits.locked_seconds, self._limits.busy_seconds)

    def _clear_outbox(self) -> None:
        """Once nothing in it is waiting."""
        waits = any(job.kept for job in self._appends())
        if self._outbox is not None and not self._must_stay and not waits:
            self._outbox.clear()
            self._kept = {}

    def _set_aside(self, append: Append) -> None:
        """It was kept, and can never be written: a file has what is not on record."""
        try:
            events = off_record(self._db, append.lease, append.batch)
            if events and self._outbox is not None:
                self._outbox.set_aside(append.lease, events)
        except (StoreError, OSError) as error:
            self._must_stay = True
            logger.error("events could not be set aside: %s", error)

    def _follow_up(self, settled: list[Settled]) -> None:
        for job, result in settled:
            if isinstance(result, REFUSALS) and isinstance(job, Append) and job.kept:
                self._set_aside(job)
            if isinstance(result, BaseException):
                continue
            if job.after is not None:
                self._tell(job.after)
            if job.wipes:
                self._wipe_at = time.monotonic()

    def _tell(self, after: Callable[[], None]) -> None:
        try:
            after()
        except Exception:
            # It is stored, and the caller must know.
            logger.exception("work after a commit failed")

    def _wipe_if_due(self) -> None:
        """What was deleted is still in the log of the database; empty that, when nobody waits."""
        if self._wipe_at is None:
            return
        late = time.monotonic() - self._wipe_at
        if late < 0 or (late < _WIPE_SECONDS and not self._queue.empty()):
            return
        self._wipe_at = None if self._emptied_log() else time.monotonic() + _WIPE_SECONDS / 10

    def _emptied_log(self) -> bool:
        self._db.wait_for_others(0)
        try:
            return not self._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        except StoreError:
            return False
        finally:
            self._db.wait_for_others(self._locked_seconds())

    def _look_around(self) -> None:
        with suppress(StoreError):
            if self._watched and (version := self._db.data_version()) != self._seen:
                self._seen, self._last_news = version, time.monotonic()
                self._call(self.on_news)

    def _close(self) -> None:
        self._is_closing = True
        if self._wipe_at is not None:
            self._emptied_log()
        self._db.close()
        if self._outbox is not None:
            self._outbox.close()
        # No caller must wait forever if a bug of ours ended it.
        with suppress(Empty):
            while True:
                self._gather(self._queue.get_nowait())
        error = StoreError(self._db.place, "the store is closed")
        self._call(self._settle, [(job, error) for job in self._waiting])

    def _call(self, callback: Callable[..., None], *args: Any) -> None:
        # A loop that was closed has nobody who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *args)


def _units(jobs: list[AnyJob]) -> Iterator[list[AnyJob]]:
    """Appends that follow each other are one piece of work, every other job is its own."""
    for is_append, group in groupby(jobs, lambda job: isinstance(job, Append)):
        some = list(group)
        yield from [some] if is_append else ([job] for job in some)


def _run(db: Database, unit: Sequence[AnyJob]) -> Sequence[Any]:
    appends = [(job.lease, job.batch, job.again) for job in unit if isinstance(job, Append)]
    if appends:
        return append_all(db, appends)
    return [job.run(db) for job in unit if isinstance(job, WriteJob)]


def resolve(future: asyncio.Future[Any], result: Any) -> None:
    """`result` may be the exception for the caller, who may have been cancelled meanwhile."""
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
