"""A connection that reconnects by itself, and how many the database allows.

What all links of a store know together is whether the database is away. Knows no tables.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from dragoman.errors import StoreAway, StoreError
from dragoman.store.outage import Outage
from dragoman.store.postgres.database import Address, Database
from dragoman.store.store_limits import StoreLimits

T = TypeVar("T")

WORK_SECONDS = 60.0
"""After that long without an answer a connection is taken for dead where there is much to be done,
or to be carried."""
READ_SECONDS = 9.0
"""After that long a read is given up."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class Link:
    """One connection for one operation at a time, in the order of the calls; `db` is the first.

    A link that only reads gives up what takes longer than `reads_within`: cutting the connection
    instead would count as an outage, and the read would be repeated forever. A lost connection is
    reopened even if it is not in use, to notice that the database is back.
    """

    def __init__(
        self,
        address: Address,
        outage: Outage,
        db: Database | None = None,
        *,
        reads_within: float | None = None,
    ) -> None:
        self._address = address
        self._outage = outage
        self._db = db
        self._reads_within = reads_within
        self._is_proven = True
        self._must_work = False
        """Whether the database answers, and only what failed can show that it works again."""
        self._lock = asyncio.Lock()
        self._next_try = 0.0
        self._pause = _FIRST_PAUSE
        self._is_closed = False
        self._returning: asyncio.Task[None] | None = None

    async def use(self, work: Callable[[Database], Awaitable[T]]) -> T:
        """For what may be done again when the connection is lost in the middle of it: a short
        outage is waited for. It runs to its end even if its caller is cancelled."""
        task = asyncio.create_task(self._insist(work))
        task.add_done_callback(_seen)
        return await asyncio.shield(task)

    @property
    def limits(self) -> StoreLimits:
        return self._address.limits

    @property
    def is_open(self) -> bool:
        return self._db is not None

    async def open(self) -> None:
        """Have its connection now, not when it is first used. Raises StoreError."""
        async with self._lock:
            if self._db is None:
                self._db = await self._connect()

    async def _insist(self, work: Callable[[Database], Awaitable[T]]) -> T:
        since = time.monotonic()
        while True:
            try:
                return await self.once(work)
            except StoreAway:
                if self._is_closed or self._outage.is_too_long(since):
                    raise
                await asyncio.sleep(self.seconds_to_next_try)

    async def once(self, work: Callable[[Database], Awaitable[T]], *, is_long: bool = False) -> T:
        """Raises StoreAway when there is no connection."""
        result = await self._tried(work, is_long=is_long)
        self._prove()
        return result

    async def _tried(
        self,
        work: Callable[[Database], Awaitable[T]],
        *,
        is_long: bool = False,
        looks: bool = False,
    ) -> T:
        async with self._lock:
            db = await self._connected()
            try:
                with db.within(WORK_SECONDS if is_long else self.limits.answer_seconds):
                    return await work(db)
            except StoreAway as error:
                # A full disk lets us in and answers: only what is written shows that there is room.
                self._must_work |= not (looks or db.is_lost or self._only_reads)
                await self._lose(error)
                raise
            finally:
                await self._drop_spoiled()

    @property
    def _only_reads(self) -> bool:
        return self._reads_within is not None

    @property
    def pid(self) -> int | None:
        """Of the server's process for it, by which the server tells who wrote something."""
        return None if self._db is None else self._db.pid

    @property
    def seconds_to_next_try(self) -> float:
        return max(self._next_try - time.monotonic(), 0.01)

    async def _connected(self) -> Database:
        if self._is_closed:
            raise StoreError(self._address.shown, "the store is closed")
        if self._db is None:
            if self._outage.is_on and time.monotonic() < self._next_try:
                raise self._outage.error()
            try:
                self._db = await self._connect()
            except StoreError as error:
                # It let us in before: a database that is being restored says no for a while.
                away = StoreAway(error.place, error.reason)
                self._put_off(away)
                raise away from error
        return self._db

    async def _connect(self) -> Database:
        db = await Database.connect(self._address)
        try:
            if self._reads_within is not None:
                await db.run(f"SET statement_timeout = {int(self._reads_within * 1000)}")
        except BaseException:
            await db.close()
            raise
        return db

    def _prove(self) -> None:
        """Only what a connection is for shows that the database is back: a copy that cannot be
        written lets us in too."""
        if not self._is_proven:
            self._is_proven, self._must_work, self._pause = True, False, _FIRST_PAUSE
            self._outage.ends()

    def _put_off(self, error: StoreAway) -> None:
        """With some chance in it: hundreds of hosts must not come back in the same moment."""
        self._is_proven = False
        self._outage.begins(error)
        self._next_try = time.monotonic() + self._pause * random.uniform(0.5, 1.5)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        if self._returning is None:
            self._returning = asyncio.create_task(self._return())

    async def _return(self) -> None:
        try:
            while not self._is_proven and not self._is_closed:
                await asyncio.sleep(max(self.seconds_to_next_try, _FIRST_PAUSE))
                with suppress(StoreError):
                    await self._tried(self._look, looks=True)
                    if not self._must_work:
                        self._prove()
        finally:
            self._returning = None

    async def _look(self, db: Database) -> None:
        row = await db.row("SHOW transaction_read_only")
        if not self._only_reads and row == ("on",):
            raise StoreAway(db.place, "the database is read-only")

    async def _lose(self, error: StoreAway) -> None:
        db, self._db = self._db, None
        if db is not None:
            await db.close()
        self._put_off(error)

    async def _drop_spoiled(self) -> None:
        if self._db is not None and (self._db.is_spoiled or self._db.is_lost):
            db, self._db = self._db, None
            await db.close()

    async def aclose(self) -> None:
        """After what is under way."""
        self._is_closed = True
        async with self._lock:
            # It sleeps, or waits for us: nothing is cut in the middle.
            returning, db, self._db = self._returning, self._db, None
            if returning is not None:
                returning.cancel()
            if db is not None:
                await db.close()
        if returning is not None:
            await asyncio.wait([returning])


def _seen(task: asyncio.Task[T]) -> None:
    """Its caller may be gone: then its error is dropped."""
    if not task.cancelled():
        task.exception()


_LIMITS = """
SELECT current_setting('max_connections')::int,
    current_setting('superuser_reserved_connections')::int,
    (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_user::text,
    (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
    (SELECT datconnlimit FROM pg_database WHERE datname = current_database())
"""
_PID = "SELECT pg_backend_pid()"
_LOOKS = 3


async def limits(db: Database) -> list[str]:
    """What the server, the role and the database allow, in words."""
    [(most, reserved, used, role, of_role, of_database)] = await db.rows(_LIMITS)
    words = [f"max_connections is {most}, {reserved} of them reserved and {used} in use"]
    words += [f"the role {role} may have {of_role}"] if of_role >= 0 else []
    return words + ([f"the database allows {of_database}"] if of_database >= 0 else [])


async def must_be_ours_alone(db: Database, address: Address) -> None:
    """Behind a pooler: raises StoreError when it gives connections out by transaction. Then what
    was set on ours, what is listened for and what was prepared belongs to the next user; and
    two that we hold at once may be the same one of the server's."""
    other = await Database.connect(address)
    try:
        for _ in range(_LOOKS):
            [(one,)] = await db.rows(_PID)
            [(two,)] = await other.rows(_PID)
            if one == two or one != db.pid or two != other.pid:
                raise StoreError(db.place, _POOLED)
    finally:
        with suppress(StoreError):
            await other.close()


_POOLED = (
    "the connection goes through a pooler in transaction mode (PgBouncer: pool_mode = "
    "transaction); use the database's own address, or a pool with pool_mode = session"
)
