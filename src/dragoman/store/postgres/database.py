"""A connection to PostgreSQL: its address, its transactions, the errors of the driver as ours.

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
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from dragoman.errors import (
    RowDuplicate,
    RowRefused,
    StoreAway,
    StoreCorrupt,
    StoreCrowded,
    StoreError,
    StoreFull,
)
from dragoman.store.store_limits import StoreLimits

# What it says of connections that were lost is said by us.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

SCHEMA = "dragoman"
LOCK_SECONDS = 5
"""Nobody holds a lock for so long who is in order."""
CHANNEL = "dragoman"
CONNECT_SECONDS = 5
# A network that is cut must be noticed by both sides within seconds, not within hours.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "dragoman",
    "client_encoding": "UTF8",
}

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


class Address:
    """`shown` is for people, `conninfo` for the driver alone; `limits` apply to its connections.
    Raises StoreError."""

    def __init__(self, address: str, limits: StoreLimits | None = None) -> None:
        self.limits = limits or StoreLimits()
        try:
            given = conninfo_to_dict(address)
        except psycopg.Error:
            # What the driver says of it may quote the password.
            raise _not_understood() from None
        if _is_torn(given):
            raise _not_understood("; percent-encode the password")
        self.conninfo = make_conninfo("", **(_DEFAULTS | given))
        self.shown = _shown(given)

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def _not_understood(advice: str = "") -> StoreError:
    reason = "is not valid; expected postgresql://user@host:port/database"
    return StoreError("the address of the PostgreSQL store", reason + advice)


def _is_torn(given: dict[str, Any]) -> bool:
    """Whether a piece of the password may be where something else belongs: one with a `/` or an
    `@` in it ends too early."""
    others = (str(given.get(name) or "") for name in ("host", "hostaddr", "port", "dbname"))
    ports = str(given.get("port") or "").split(",")
    return any("@" in each for each in others) or any(
        each and not (each.isascii() and each.isdigit()) for each in ports
    )


def _shown(given: dict[str, Any]) -> str:
    user = f"{given['user']}@" if given.get("user") else ""
    host = str(given.get("host") or given.get("hostaddr") or "")
    where = "" if host.startswith("/") else host
    ports = str(given.get("port") or "").strip(",")
    port = f":{ports}" if ports and where else ""
    return f"postgresql://{user}{where}{port}/{given.get('dbname') or ''}"


class Database:
    """One connection, for one task at a time. Every method raises StoreError; StoreAway if the
    connection is lost."""

    def __init__(self, connection: psycopg.AsyncConnection[TupleRow], address: Address) -> None:
        self.place = address.shown
        self.limits = address.limits
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
    """A transaction of two round trips: the queries in `first` are sent in one, and what `decide`
    makes of the answers is written and committed in the other. `decide` also has the result, and
    raises an error to refuse. A `repeatable` plan may safely run twice: it takes one round trip,
    and nothing is written afterwards."""

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


Meaning: TypeAlias = Literal[
    "away", "full", "data", "duplicate", "again", "slow", "damaged", "statement"
]

MEANINGS: dict[str, tuple[Meaning, str]] = {
    "": ("away", "no word of the server at all: the driver's own error, and nobody knows the rest"),
    "0A": ("away", "a plan made before the tables changed; a new connection makes a new one"),
    "08": ("away", "the line, or what is spoken on it, is broken"),
    "22": ("data", "a value that does not fit its type"),
    "23": ("data", "a row that breaks a constraint"),
    "23505": ("duplicate", "a row that there is already, such as the name of a session"),
    "25": ("away", "its transaction is not what we believe, or it can only be read"),
    "26": ("away", "a prepared statement that only the driver knows of"),
    "27": ("data", "a trigger refused the row"),
    "3F": ("statement", "the schema is not there"),
    "40": ("again", "two transactions got in each other's way; the one that lost did nothing"),
    "40002": ("data", "a constraint that is checked at the commit"),
    "40003": ("away", "it does not know itself what became of the statement"),
    "42": ("statement", "no such table, no such right: true of the statement, whatever its values"),
    "44": ("data", "a view refused the row"),
    "53": ("away", "short of memory or connections"),
    "53100": ("full", "no room on its disk"),
    "54": ("data", "a value that is larger than it can take"),
    "55": ("away", "something is not in the state for it yet"),
    "55P03": ("again", "another process held a lock for too long"),
    "57": ("away", "an operator: shutting down, starting, dropping the database"),
    "57014": ("slow", "given up after the time that it had"),
    "58": ("away", "its disk or its system failed"),
    "P0": ("data", "a trigger raised an exception about the row"),
    "XX": ("away", "a fault inside the server"),
    "XX001": ("damaged", "a page that cannot be read"),
    "XX002": ("damaged", "an index that cannot be trusted"),
}
"""What an error means, by its SQLSTATE or the beginning of that: the longest that fits counts. Any
other is an outage: whatever is not the database's word on one statement does not justify giving up
what should be written, but the connection."""

_NEVER = (
    errors.InvalidPassword,
    errors.InvalidAuthorizationSpecification,
    errors.InvalidCatalogName,
)
BLOCKED = errors.LockNotAvailable


def meaning(error: psycopg.Error | OSError) -> Meaning:
    state = getattr(error, "sqlstate", None) or ""
    if not state and isinstance(error, psycopg.DataError):
        return "data"  # the driver cannot put a value into a statement, and has sent nothing
    known = (MEANINGS[state[:end]] for end in (5, 2) if state[:end] in MEANINGS)
    return next(known, ("away", ""))[0]


def is_worth_another_try(error: StoreError) -> bool:
    return isinstance(error.__cause__, psycopg.Error) and meaning(error.__cause__) == "again"


def took_too_long(error: StoreError) -> bool:
    cause = error.__cause__
    return isinstance(cause, psycopg.Error) and meaning(cause) in ("again", "slow")


def store_error(place: str, error: psycopg.Error | OSError) -> StoreError:
    """The exception for callers; `place` is the address without its password."""
    kind, reason = _SENTENCES[meaning(error)]
    return kind(place, reason.format(_words(error)))


_SENTENCES: dict[Meaning, tuple[Callable[[str, str], StoreError], str]] = {
    "away": (StoreAway, "the database is unavailable: {}"),
    "full": (StoreFull, "no space left to store events"),
    "data": (RowRefused, "the database rejected a row: {}"),
    "duplicate": (RowDuplicate, "the database rejected a row: {}"),
    "again": (StoreError, "the database took too long"),
    "slow": (StoreError, "the database took too long"),
    "damaged": (StoreCorrupt, "the database is damaged: {}"),
    "statement": (StoreError, "the database does not allow it: {}"),
}


def connect_error(place: str, error: psycopg.Error | OSError) -> StoreError:
    if any(word in str(error) for word in _FULL):
        return StoreCrowded(place, f"the database has no free connections: {_words(error)}")
    if isinstance(error, _NEVER) or any(word in str(error) for word in _REFUSALS):
        return StoreError(place, f"the database refused the login: {_words(error)}")
    return StoreAway(place, f"the database cannot be reached: {_words(error)}")


# Before a connection is there, the driver has words for a refusal but no code.
_FULL = ("too many clients", "too many connections", "remaining connection slots")
_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password")


def lost(place: str, error: psycopg.Error | OSError) -> StoreAway:
    return StoreAway(place, f"the connection to the database was lost: {_words(error)}")


def _words(error: psycopg.Error | OSError) -> str:
    """Its first line; what the server adds may quote what should be stored."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else error.strerror
    return (said or str(error)).strip().partition("\n")[0] or type(error).__name__
