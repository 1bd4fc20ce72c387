"""A connection to PostgreSQL and its transactions. Turns the driver's errors into ours.

A waiting caller is never cancelled in the middle: a connection that does not respond in time is
cut.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Generic, TypeAlias, TypeVar

import psycopg
from psycopg.rows import TupleRow

from dragoman.errors import StoreError
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.failures import connect_error, lost, store_error

# What it says of connections that were lost is said by us.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

SCHEMA = "dragoman"
LOCK_SECONDS = 5
"""Nobody holds a lock for so long who is in order."""
CHANNEL = "dragoman"

# Of a host that was cut off, the server must not keep the locks. And an acknowledged event is on
# the disk, whatever the server's own settings say of other programs.
_SETTINGS = f"""
SET search_path = {SCHEMA};
SET idle_in_transaction_session_timeout = '10s';
SET lock_timeout = '{LOCK_SECONDS}s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3;
SET client_min_messages = warning;
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') = 'off';
SELECT pg_backend_pid(), extract(epoch FROM clock_timestamp())::float8;
"""


class Database:
    """One connection, for one task at a time. Every method raises StoreError; StoreAway when the
    database has gone."""

    def __init__(self, connection: psycopg.AsyncConnection[TupleRow], address: Address) -> None:
        self.place = address.shown
        self.connection = connection
        self.pid = 0
        """Of the server's process for it, as the server says."""
        self.time = 0.0
        """On the server's clock, when it was connected."""
        self._address = address
        self._is_spoiled = False
        self._bound: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def connect(cls, address: Address) -> Database:
        db = cls(await _connected(address), address)
        try:
            with db.within(10.0):
                await db._set_up()
        except BaseException:
            await db.close()
            raise
        return db

    @property
    def is_lost(self) -> bool:
        return self.connection.closed

    async def _set_up(self) -> None:
        cursor = await self._execute(_SETTINGS, ())
        while cursor.nextset():
            pass
        [(self.pid, self.time)] = await cursor.fetchall()

    @property
    def is_spoiled(self) -> bool:
        """Whether something failed in a pipeline: then the driver may take a statement for prepared
        that the server does not know, and every later use of it would fail."""
        return self._is_spoiled

    @property
    def is_pooled(self) -> bool:
        """Whether something in between answers for the server, with a process of its own."""
        return self.pid != self.connection.info.backend_pid

    async def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """The rows that it changed; within `together` that is not known yet."""
        return (await self._execute(statement, values)).rowcount

    async def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = await self._execute(statement, values, binary=True)
        with self._translated():
            return await cursor.fetchall()

    async def row(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first."""
        rows = await self.rows(statement, values)
        return rows[0] if rows else None

    async def ask(
        self, statement: str, values: Sequence[Any] = ()
    ) -> psycopg.AsyncCursor[TupleRow]:
        """For what is read after `together`."""
        return await self._execute(statement, values, binary=True)

    async def _execute(
        self, statement: str, values: Sequence[Any], *, binary: bool = False
    ) -> psycopg.AsyncCursor[TupleRow]:
        with self._translated():
            given = values or None
            cursor = await self.connection.execute(statement.encode(), given, binary=binary)
        self._await_answer()
        return cursor

    @asynccontextmanager
    async def together(self) -> AsyncGenerator[None]:
        """What is run in here is sent at once; only what is read has to be waited for."""
        try:
            with self._translated():
                async with self.connection.pipeline():
                    yield
        except BaseException:
            self._is_spoiled = True
            raise
        self._await_answer()

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """All of it, or nothing."""
        await self.run("BEGIN")
        try:
            yield
            await self.run("COMMIT")
        except BaseException:
            await self.roll_back()
            raise

    async def roll_back(self) -> None:
        """On a connection that was spoiled it is the server that does so, when that is closed."""
        with suppress(StoreError):
            if self._is_spoiled:
                await self._replace()
            elif not self.is_lost:
                await self.run("ROLLBACK")

    async def _replace(self) -> None:
        """Only one that writes rolls back, and it needs no other settings than these."""
        await self.close()
        self.connection = await _connected(self._address)
        self._is_spoiled = False
        self._await_answer()
        await self._set_up()

    @contextmanager
    def within(self, seconds: float) -> Generator[None]:
        """When nothing is answered for so long, whatever is under way fails with StoreAway."""
        self._bound = seconds
        self._await_answer()
        try:
            yield
        finally:
            self._bound = None
            self._await_answer()

    def _await_answer(self) -> None:
        """The next one: the time starts again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._bound is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._bound, cut, self.connection)

    async def close(self) -> None:
        with suppress(psycopg.Error):
            await self.connection.close()

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except (psycopg.Error, OSError) as error:
            raise (lost if self.is_lost else store_error)(self.place, error) from error


async def _connected(address: Address) -> psycopg.AsyncConnection[TupleRow]:
    try:
        return await psycopg.AsyncConnection.connect(address.conninfo, autocommit=True)
    except (psycopg.Error, OSError) as error:
        raise connect_error(address.shown, error) from None


def cut(connection: psycopg.AsyncConnection[TupleRow] | psycopg.Connection[TupleRow]) -> None:
    """Release all callers that wait for a reply. Thread-safe."""
    with suppress(OSError, psycopg.Error):
        wire = socket.socket(fileno=os.dup(connection.fileno()))
        with wire:
            wire.shutdown(socket.SHUT_RDWR)


T = TypeVar("T")

Rows: TypeAlias = list[tuple[Any, ...]]
Statement: TypeAlias = tuple[str, Sequence[Any]]


class Plan(Generic[T]):
    """A transaction of two round trips: all that is `first` is asked in one, and what `decide`
    makes of the answers is written and committed in the other. `decide` has the result too, and
    raises what there is to refuse. One that is `repeatable` does no harm when it is done twice:
    it takes one round trip, and nothing is written afterwards."""

    def __init__(
        self,
        first: Sequence[Statement],
        decide: Callable[[list[Rows]], tuple[T, Sequence[Statement]]],
        *,
        repeatable: bool = False,
    ) -> None:
        self.first = first
        self.decide = decide
        self.repeatable = repeatable
