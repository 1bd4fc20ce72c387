"""The one thread that writes: whatever queued while the last commit ran is committed together.

There is no timer: a lone job is committed at once. What waits for the result is told after the
commit, once for all of them. Knows no table but what its jobs bring.
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
from typing import Any, Generic, TypeAlias, TypeVar

from dragoman.errors import StoreError
from dragoman.store.appending import append_all
from dragoman.store.database import BUSY_SECONDS, Database
from dragoman.store.records import Batch, Lease

logger = logging.getLogger("dragoman.store")

T = TypeVar("T")

COMMIT_SECONDS = 0.05
"""A transaction takes no further job after that time, …"""
COMMIT_BYTES = 4 * 1024 * 1024
"""… no more events than that …"""
COMMIT_JOBS = 500
"""… and no more jobs than that."""
POLL_SECONDS = 0.025
"""How often to look for what other processes wrote, while somebody wants to know, …"""
QUIET_POLL_SECONDS = 0.1
"""… and how often when nobody has written anything for a while."""
QUIET_SECONDS = 5.0

_WIPE_SECONDS = 1.0


class Job(Generic[T]):
    """`run` is called in a transaction, `after` once it is committed."""

    def __init__(
        self,
        run: Callable[[Database], T],
        future: asyncio.Future[T],
        *,
        writes: bool = True,
        wipes: bool = False,
        after: Callable[[], None] | None = None,
    ) -> None:
        self.run = run
        self.future = future
        self.writes = writes
        self.wipes = wipes
        """Whether it deletes what should not stay in the log of the database either."""
        self.after = after
        self.size = 0


class Append:
    """A job of the most frequent kind; those that wait one behind the other become one."""

    writes, wipes = True, False

    def __init__(
        self,
        lease: Lease,
        batch: Batch,
        future: asyncio.Future[int],
        after: Callable[[], None] | None,
    ) -> None:
        self.lease = lease
        self.batch = batch
        self.future = future
        self.after = after
        self.size = sum(map(len, batch.events))


AnyJob: TypeAlias = Job[Any] | Append
Settled: TypeAlias = tuple[AnyJob, Any]
"""A job, and its result or the exception for whoever waits."""


class Writer:
    """`on_news` is called in the loop after a commit that wrote something, once what was waited for
    is settled; also when another process wrote something, while `watch` is on."""

    def __init__(self, db: Database) -> None:
        self._db = db
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
            self._queue.put(Job(lambda db: None, self._loop.create_future(), writes=False))

    async def aclose(self) -> None:
        """Everything that was submitted is committed first."""
        if not self._is_closing:
            self._is_closing = True
            self._queue.put(None)
        await asyncio.shield(self._ended)

    def _settle(self, settled: list[Settled]) -> None:
        for job, result in settled:
            if job.future.done():
                continue  # whoever waited was cancelled
            if isinstance(result, BaseException):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)
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
                self._wipe_if_due()
                self._look_around()
        return bool(self._waiting)

    def _patience(self) -> float | None:
        if self._watched:
            is_quiet = time.monotonic() - self._last_news > QUIET_SECONDS
            return QUIET_POLL_SECONDS if is_quiet else POLL_SECONDS
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
            self._db.run("BEGIN IMMEDIATE" if any(job.writes for job in jobs) else "BEGIN")
            for unit in _units(jobs):
                settled += self._perform(unit)
                if time.monotonic() > end:
                    break
            self._db.run("COMMIT")
        except Exception as error:
            self._roll_back()
            settled = [(job, copy(error)) for job in jobs]
        self._waiting.extendleft(reversed(jobs[len(settled) :]))
        self._follow_up(settled)
        self._call(self._settle, settled)

    def _perform(self, unit: Sequence[AnyJob]) -> list[Settled]:
        """Raises when the whole transaction is lost."""
        try:
            return list(zip(unit, self._alone(unit), strict=True))
        except Exception as error:
            if not self._db.in_transaction:
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

    def _follow_up(self, settled: list[Settled]) -> None:
        for job, result in settled:
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
            # It is stored, and whoever waits is to know.
            logger.exception("what follows a commit failed")

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
            self._db.wait_for_others(BUSY_SECONDS)

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
        # Nobody must wait for ever, should it have ended by a fault of ours.
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
    appends = [(job.lease, job.batch) for job in unit if isinstance(job, Append)]
    if appends:
        return append_all(db, appends)
    return [job.run(db) for job in unit if isinstance(job, Job)]
