"""The one task that writes to PostgreSQL: everything queued during a commit forms the next one.

There is no timer: a lone job is committed at once. While the database is away, events gather in the
outbox and are not acknowledged; when it is back they are delivered in their order.
What can never be delivered is set aside.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow

from dragoman.errors import (
    DragomanError,
    RowRefused,
    StoreAway,
    StoreError,
)
from dragoman.store.outage import REFUSALS, Outage, Outbox
from dragoman.store.postgres.database import (
    BLOCKED,
    LOCK_SECONDS,
    SCHEMA,
    Database,
    Plan,
    Rows,
    Statement,
    is_worth_another_try,
)
from dragoman.store.postgres.events import TELL_OF, Sent, append_all, off_record
from dragoman.store.postgres.link import Link
from dragoman.store.records import Batch, Lease
from dragoman.store.sqlite.writer import COMMIT_BYTES, COMMIT_JOBS, resolve

logger = logging.getLogger("dragoman.store")

T = TypeVar("T")

_TRIES = 5
_LOSSES = 3
"""A job in which the connection is lost so often is given up: it may be what takes too long."""
_LOOK_SECONDS = 0.25
"""How often to look for what is to be kept while one that is away is being tried."""
_XID = "SELECT pg_current_xact_id()::text"
_STATUS = "SELECT pg_xact_status(%s::text::xid8)"
# A host that was stopped in the middle of a commit, and holds what all the others wait for. One
# that stopped between two statements which it sends together is not idle for the server; of other
# programs only an idle one can be distinguished from a busy one.
_CUT_OFF = f"""
SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.usename = current_user AND a.pid <> pg_backend_pid()
    AND a.wait_event_type = 'Client' AND a.backend_xid IS NOT NULL
    AND (a.state = 'idle in transaction'
        OR a.application_name = current_setting('application_name'))
    AND a.xact_start < now() - interval '{LOCK_SECONDS} seconds'
    AND EXISTS (
        SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
        WHERE l.pid = a.pid AND l.granted AND l.mode <> 'AccessShareLock'
            AND c.relnamespace = '{SCHEMA}'::regnamespace
    )
"""


class StoreWriter:
    """`on_news` is called after a commit, once what was waited for is settled, with what to report
    to other hosts."""

    def __init__(self, link: Link, outage: Outage, outbox: Outbox) -> None:
        self.on_news: Callable[[set[str]], None] = lambda told: None
        self.on_back: Callable[[Database], Awaitable[None]] | None = None
        """Called when the database was unavailable, before anything else is written."""
        self._link = link
        self._outage = outage
        self._outbox = outbox
        self._waiting: deque[AnyJob] = deque()
        self._unit: list[AnyJob] = []
        """What is being written."""
        self._fresh = asyncio.Event()
        self._doubt: Doubt[Any] | None = None
        self._was_away = self._is_closing = self._must_stay = False
        self._task = asyncio.create_task(self._run())

    def submit(self, job: AnyJob) -> None:
        """Raises StoreError when the store is closed."""
        if self._is_closing:
            raise StoreError(self._outage.place, "the store is closed")
        self._waiting.append(job)
        self._fresh.set()

    async def write(
        self,
        work: Callable[[Database], Awaitable[T]] | Plan[T],
        *,
        tells: str | None = "",
        lasting: bool = False,
        is_long: bool = False,
    ) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.submit(WriteJob(work, future, tells=tells, lasting=lasting, is_long=is_long))
        return await future

    async def append(self, lease: Lease, batch: Batch) -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.submit(Append(Sent(lease, batch), future))
        return await future

    def has_kept(self, session_id: str, seq: int) -> bool:
        """Whether an event that is not written yet is on this host's disk meanwhile."""
        return any(append.kept and append.sent.has(session_id, seq) for append in self._appends())

    async def deliver(self, entries: Sequence[tuple[Lease, Batch]]) -> None:
        """Recover what an ended process left; what nobody may own is set aside.
        Raises StoreError when some of it is nowhere else yet."""
        loop = asyncio.get_running_loop()
        appends = [Append(Sent(*entry, again=True), loop.create_future()) for entry in entries]
        for append in appends:
            append.kept = True
            self.submit(append)
        results = await asyncio.gather(*(each.future for each in appends), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, REFUSALS):
                raise result
        if any(append.is_stuck for append in appends):
            reason = "events kept while the database was unavailable could not be set aside"
            raise StoreError(self._outage.place, reason)

    async def aclose(self) -> None:
        """Everything that was submitted is committed first, if the database is there in time; if
        not, the outbox has what matters of it."""
        self._is_closing = True
        self._fresh.set()
        await asyncio.wait([self._task])

    # ── the task ──────────────────────────────────────────────────────────────────────────────

    async def _run(self) -> None:
        while self._waiting or not self._is_closing:
            if not self._waiting:
                self._fresh.clear()
                await self._fresh.wait()
                continue
            self._unit = self._next_unit()
            try:
                written = self._link.once(self._carry_out, is_long=is_much(self._unit))
                await self._keeping_meanwhile(written)
                self._clear_outbox()
            except StoreAway as error:
                self._was_away = True
                self._put_back(error)
                await self._wait_out()
            except Exception as error:
                logger.exception("the store could not write")
                self._must_stay |= any(append.kept for append in self._appends())
                self._fail(self._unit, StoreError(self._outage.place, f"it could not: {error!r}"))
            self._unit = []
        self._outbox.close()

    async def _keeping_meanwhile(self, work: Coroutine[Any, Any, None]) -> None:
        """A connection may take long to come, or to be given up: what happens until then must not
        be in memory alone."""
        task = asyncio.create_task(work)
        while not (await asyncio.wait([task], timeout=_LOOK_SECONDS))[0]:
            if self._outage.is_on:
                await self._keep()
        await task

    def _put_back(self, error: StoreAway) -> None:
        """It is tried again, in its old place."""
        unit, self._unit = self._unit, []
        for job in unit:
            in_doubt = self._doubt is not None and self._doubt.job is job
            if isinstance(job, WriteJob) and job.lost >= _LOSSES and not in_doubt:
                settle(job, error)
        self._waiting.extendleft(reversed([job for job in unit if not job.is_settled]))

    def _next_unit(self) -> list[AnyJob]:
        """A job, or as many batches as one transaction should have."""
        unit = [self._waiting.popleft()]
        size = unit[0].size if isinstance(unit[0], Append) else COMMIT_BYTES
        while self._waiting and size < COMMIT_BYTES and len(unit) < COMMIT_JOBS:
            if not isinstance(following := self._waiting[0], Append):
                break
            size += following.size
            unit.append(self._waiting.popleft())
        return unit

    async def _carry_out(self, db: Database) -> None:
        unit = self._unit
        if self._doubt is not None:
            await self._resolve(self._doubt, db)
        if self._was_away:
            await self._come_back(db)
        appends = [job for job in unit if isinstance(job, Append)]
        if appends:
            await self._append(appends, db)
        for job in unit:
            if isinstance(job, WriteJob) and not job.is_settled:
                await self._perform(job, db)
        told = {job.tells for job in unit if job.tells is not None and has_succeeded(job)}
        if told:
            self.on_news(told)

    async def _come_back(self, db: Database) -> None:
        self._was_away = False
        try:
            if self.on_back is not None:
                await self.on_back(db)
        except StoreAway:
            raise
        except StoreError as error:
            logger.warning("%s", error)

    async def _perform(self, job: WriteJob[Any], db: Database) -> None:
        for tried in range(1, _TRIES + 1):
            try:
                result = await self._committed(job, db)
                settle(job, result)
                return
            except StoreAway:
                job.lost += 1
                raise
            except StoreError as error:
                if not is_worth_another_try(error) or tried == _TRIES:
                    settle(job, error)
                    return
                await self._make_way(error, db)
            except Exception as error:
                settle(job, error)
                return

    async def _committed(self, job: WriteJob[T], db: Database) -> T:
        try:
            last: Sequence[Statement] = ()
            if callable(job.work):
                async with db.together():
                    await db.run("BEGIN")
                    number = await db.ask(_XID)
                [(xid,)] = await number.fetchall()
                result = await job.work(db)
            elif job.work.repeatable:
                return await _in_one_trip(job.work, job.tells, db)
            else:
                xid, result, last = await _asked(job.work, db)
            self._doubt = Doubt(xid, job, result)
            async with db.together():
                for statement in last:
                    await db.run(*statement)
                await _end(job.tells, db)
            self._doubt = None
            return result
        except StoreAway:
            raise
        except BaseException:
            self._doubt = None
            await db.roll_back()
            raise

    async def _resolve(self, doubt: Doubt[Any], db: Database) -> None:
        """The connection was lost in a commit: the database knows what became of it."""
        status = "in progress"
        while status == "in progress":
            try:
                row = await db.row(_STATUS, (doubt.xid,))
            except StoreAway:
                raise
            except StoreError:
                row = None  # another server has taken its place, and never saw it
            status = None if row is None else row[0]
            if status == "in progress":
                await asyncio.sleep(0.05)
        self._doubt = None
        if status == "committed":
            settle(doubt.job, doubt.result)

    async def _append(self, appends: Sequence[Append], db: Database, tried: int = 1) -> None:
        try:
            results = await append_all(db, [append.sent for append in appends])
        except Exception as error:
            await self._not_appended(appends, error, db, tried)
        else:
            await self._settle_all(appends, results, db)

    async def _not_appended(
        self, appends: Sequence[Append], error: Exception, db: Database, tried: int
    ) -> None:
        """A batch is given up only for what is wrong with itself; anything else is an outage."""
        if isinstance(error, StoreError) and not isinstance(error, RowRefused):
            if not is_worth_another_try(error) or tried == _TRIES:
                for append in appends:
                    append.sent.again = True
                raise error if isinstance(error, StoreAway) else _outage(error) from error
            await self._make_way(error, db)
            await self._append(appends, db, tried + 1)
        elif len(appends) > 1:
            for append in appends:
                await self._append([append], db)
        else:
            await self._settle_all(appends, [_unfit(db.place, error)], db)

    async def _settle_all(
        self, appends: Sequence[Append], results: Sequence[int | DragomanError], db: Database
    ) -> None:
        refused: dict[Lease, list[tuple[Append, DragomanError]]] = {}
        for append, result in zip(appends, results, strict=True):
            if isinstance(result, REFUSALS):
                refused.setdefault(append.sent.lease, []).append((append, result))
                continue
            # Not by us, and so it stays for the next process.
            self._must_stay |= append.kept and isinstance(result, DragomanError)
            settle(append, result)
        for given in refused.values():
            await self._set_aside(given, db)

    async def _set_aside(
        self, refused: Sequence[tuple[Append, DragomanError]], db: Database
    ) -> None:
        """The batches of one lease: they can never be delivered, and so a file has them."""
        events = await off_record(db, [append.sent for append, _ in refused])
        try:
            if events:
                lease = refused[0][0].sent.lease
                await asyncio.to_thread(self._outbox.set_aside, lease, events)
        except OSError as failure:
            for append, _ in refused:
                append.is_stuck = True
                self._must_stay |= append.kept
            logger.error("%s; and it could not be set aside: %s", refused[0][1], failure)
        for append, error in refused:
            settle(append, error)

    async def _make_way(self, error: Exception, db: Database) -> None:
        if isinstance(error.__cause__, BLOCKED) and await db.rows(_CUT_OFF):
            logger.warning("%s: disconnected another host, which was blocking all others", db.place)

    def _clear_outbox(self) -> None:
        """Once nothing in it is waiting."""
        if not self._must_stay and not any(append.kept for append in self._appends()):
            self._outbox.clear()

    def _appends(self) -> Iterator[Append]:
        """All that are not settled."""
        for job in (*self._unit, *self._waiting):
            if isinstance(job, Append) and not job.is_settled:
                yield job

    # ── while the database is away ────────────────────────────────────────────────────────────

    async def _wait_out(self) -> None:
        """One step of it: keep what is new, refuse what cannot wait, until the next try."""
        await self._keep()
        self._refuse()
        if self._is_closing and self._outage.seconds > self._link.limits.close_seconds:
            return self._fail(list(self._waiting), self._outage.error())
        self._fresh.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._link.seconds_to_next_try):
                await self._fresh.wait()
        return None

    async def _keep(self) -> None:
        new = [append for append in self._appends() if not append.kept]
        if not new:
            return
        sent = [(job.sent.lease, job.sent.batch) for job in new]
        if await asyncio.to_thread(self._outbox.keeps, sent):
            for job in new:
                job.kept = True

    def _refuse(self) -> None:
        """What cannot wait; but not what may have been done, before that is known."""
        in_doubt = None if self._doubt is None else self._doubt.job
        impatient = (job for job in self._waiting if isinstance(job, WriteJob) and not job.lasting)
        given_up = [
            job for job in impatient if job is not in_doubt and self._outage.is_too_long(job.since)
        ]
        if given_up:
            self._fail(given_up, self._outage.error())

    def _fail(self, jobs: Sequence[AnyJob], error: Exception) -> None:
        gone = set(map(id, jobs))
        self._waiting = deque(job for job in self._waiting if id(job) not in gone)
        for job in jobs:
            settle(job, copy(error))


async def _asked(plan: Plan[T], db: Database) -> tuple[str, T, Sequence[Statement]]:
    """Begin a transaction: its number, its result, and what is still to be written."""
    async with db.together():
        await db.run("BEGIN")
        number = await db.ask(_XID)
        asked = [await db.ask(*statement) for statement in plan.first]
    [(xid,)] = await _rows(number)
    result, last = plan.decide([await _rows(each) for each in asked])
    return xid, result, last


async def _in_one_trip(plan: Plan[T], tells: str | None, db: Database) -> T:
    async with db.together():
        await db.run("BEGIN")
        asked = [await db.ask(*statement) for statement in plan.first]
        await _end(tells, db)
    result, _ = plan.decide([await _rows(each) for each in asked])
    return result


async def _rows(cursor: psycopg.AsyncCursor[TupleRow]) -> Rows:
    """None of what answers with no rows at all."""
    return [] if cursor.description is None else await cursor.fetchall()


async def _end(tells: str | None, db: Database) -> None:
    if tells is not None:
        await db.run(TELL_OF, (tells,))
    await db.run("COMMIT")


def _outage(error: StoreError) -> StoreAway:
    return StoreAway(error.place, error.reason)


def _unfit(place: str, error: Exception) -> RowRefused:
    """A batch that could not even be sent: a fault of ours, and no other session pays for it."""
    logger.error("events cannot be stored", exc_info=error)
    return RowRefused(place, f"the event cannot be stored: {type(error).__name__}")


_MUCH_BYTES = 1024 * 1024


class WriteJob(msgspec.Struct, Generic[T], eq=False):
    """`work` is called, or carried out, in a transaction of its own, and other hosts are notified
    of what it `tells`, unless that is None. One that is `lasting` waits for a database that is away
    for as long as it takes; one that `is_long` has it do much at once."""

    work: Callable[[Database], Awaitable[T]] | Plan[T]
    future: asyncio.Future[T]
    tells: str | None = ""
    lasting: bool = False
    is_long: bool = False
    is_settled: bool = False
    since: float = msgspec.field(default_factory=time.monotonic)
    lost: int = 0
    """How often the connection was lost while it ran."""


class Append(msgspec.Struct, eq=False):
    """A batch of events; adjacent ones in the queue are written together."""

    lasting: ClassVar = True
    tells: ClassVar = ""

    sent: Sent
    future: asyncio.Future[int]
    is_settled: bool = False
    kept: bool = False
    """Whether it is in the outbox, or comes from there."""
    is_stuck: bool = False
    """Whether it can neither be delivered nor be set aside."""
    size: int = 0

    def __post_init__(self) -> None:
        self.size = self.sent.batch.size


AnyJob: TypeAlias = WriteJob[Any] | Append


class Doubt(msgspec.Struct, Generic[T], eq=False):
    """A transaction whose commit was sent, and perhaps carried out."""

    xid: str
    job: WriteJob[T]
    result: T


def is_much(unit: Sequence[AnyJob]) -> bool:
    """Whether it may take a while, on a slow line too."""
    if any(isinstance(job, WriteJob) and job.is_long for job in unit):
        return True
    return sum(job.size for job in unit if isinstance(job, Append)) > _MUCH_BYTES


def settle(job: AnyJob, result: Any) -> None:
    """`result` may be the exception for the caller."""
    job.is_settled = True
    resolve(job.future, result)


def has_succeeded(job: AnyJob) -> bool:
    future = job.future
    return job.is_settled and (future.cancelled() or future.exception() is None)
