"""The stored permission rules in SQL, and a host's cached copy of them.

Such a program waits for the database, some seconds at most. Where a store is open they are at hand:
`kept_rules`.

They are read again when a change is heard of, and every few seconds without that. While the
database is away, or does not get to it, those last known hold. Knows no policy.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow

from dragoman.errors import StoreAway, StoreCorrupt, StoreError
from dragoman.host.rules.policy import CountingRules, StoredRule
from dragoman.host.rules.rule import Rule
from dragoman.store.outage import Outage
from dragoman.store.postgres.database import (
    CHANNEL,
    SCHEMA,
    Address,
    Database,
    connect_error,
    cut,
    lost,
    store_error,
    took_too_long,
)
from dragoman.store.postgres.link import Link
from dragoman.store.postgres.news import RULES
from dragoman.store.postgres.writer import StoreWriter, WriteJob
from dragoman.store.sqlite.rules import must_last

logger = logging.getLogger("dragoman.store")

T = TypeVar("T")
_Connection = psycopg.Connection[TupleRow]

_SETTINGS = f"SET search_path = {SCHEMA}; SET statement_timeout = '9s'"
_ANY = f"SELECT to_regclass('{SCHEMA}.rules') IS NOT NULL"
LOAD = "SELECT body, created_at, used_at, home FROM rules ORDER BY place"
REMOVE = "DELETE FROM rules WHERE id = %s"
INSERT = "INSERT INTO rules (id, body, created_at, home) VALUES (%s, %s, %s, %s)"
USED = "UPDATE rules SET used_at = %s WHERE id = %s"
TELL_OF_RULES = f"SELECT pg_notify('{CHANNEL}', '{RULES}')"

_rule = msgspec.json.Decoder(Rule)


def stored_rule(place: str, row: tuple[Any, ...], here: str) -> StoredRule:
    """As the machine `here` sees it. An allow rule counts only on the machine whose files the
    person saw; deny and ask rules count on all machines. Raises StoreCorrupt."""
    body, created_at, used_at, home = row
    try:
        rule = _rule.decode(body)
        counts = rule.effect != "allow" or home == here
        return StoredRule(rule, created_at, used_at, home, counts)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(place, f"a rule cannot be read: {error}") from error


class PostgresRules:
    """The stored rules. Connects on first use; synchronous, for any thread. While the database is
    unreachable, the last known rules apply, and none can be added."""

    def __init__(self, address: Address, home: str) -> None:
        self._address = address
        self._home = home
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._known: tuple[StoredRule, ...] | None = None
        self._counting = CountingRules()

    def list(self) -> Sequence[Rule]:
        """The rules that count here, in the order in which they were made."""
        return self._counting.of(self.load())

    def load(self) -> tuple[StoredRule, ...]:
        """All that is stored, expired rules too."""
        with self._lock:
            try:
                self._known = self._do(self._read)
            except StoreAway:
                if self._known is None:
                    raise
            return self._known

    def add(self, rule: Rule, home: str | None = None) -> None:
        """Store a rule; one with the same id is replaced."""
        must_last(rule)
        values = rule.id, msgspec.json.encode(rule), time.time(), home or self._home

        def write(connection: _Connection) -> None:
            connection.execute(REMOVE, (rule.id,))
            connection.execute(INSERT, values)

        self._write(write)

    def revoke(self, rule_id: str) -> bool:
        """Forget a rule; whether there was one."""
        return self._write(lambda connection: connection.execute(REMOVE, (rule_id,)).rowcount > 0)

    def used(self, rule_id: str) -> None:
        """Remember that the rule has just decided something. Not worth an error: it is for people
        who wonder whether a rule is still of use."""
        try:
            with self._lock:
                self._do(lambda connection: connection.execute(USED, (time.time(), rule_id)))
        except StoreError as error:
            logger.warning("could not record the use of a rule: %s", error)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _read(self, connection: _Connection) -> tuple[StoredRule, ...]:
        if connection.execute(_ANY).fetchone() != (True,):
            return ()
        rows, place = connection.execute(LOAD), self._address.shown
        return tuple(stored_rule(place, row, self._home) for row in rows)

    def _write(self, work: Callable[[_Connection], T]) -> T:
        def told(connection: _Connection) -> T:
            with connection.transaction():
                result = work(connection)
                connection.execute(TELL_OF_RULES)
                return result

        with self._lock:
            return self._do(told)

    def _do(self, work: Callable[[_Connection], T]) -> T:
        """Once more on a new connection when the one that was kept turns out to be dead."""
        is_kept = self._connection is not None
        try:
            return self._tried(work)
        except StoreAway:
            if not is_kept:
                raise
        return self._tried(work)

    def _tried(self, work: Callable[[_Connection], T]) -> T:
        place = self._address.shown
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connected()
        try:
            with _bounded(connection, self._address.limits.answer_seconds):
                return work(connection)
        except (psycopg.Error, OSError) as error:
            failed = (lost if connection.closed else store_error)(place, error)
            if isinstance(failed, StoreAway):
                self._drop()
            raise failed from error

    def _connected(self) -> _Connection:
        try:
            connection = psycopg.connect(self._address.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise connect_error(self._address.shown, error) from None
        try:
            with _bounded(connection, self._address.limits.answer_seconds):
                connection.execute(_SETTINGS)
        except psycopg.Error as error:
            connection.close()
            raise lost(self._address.shown, error) from error
        return connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@contextmanager
def _bounded(connection: _Connection, seconds: float) -> Generator[None]:
    """The server has bounds of its own; this one is for a server that does not answer at all."""
    timer = threading.Timer(seconds, cut, (connection,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


_AGAIN_SECONDS = 1.0

_Change = Callable[[Database], Awaitable[bool]]


class KeptRules:
    """For any thread. In the loop nothing waits: a change counts here at once and is written behind
    whatever waits already, before what is recorded after it. Other threads wait until it is."""

    def __init__(self, reading: Link, writer: StoreWriter, outage: Outage, home: str) -> None:
        self._home = home
        self._reading = reading
        self._writer = writer
        self._outage = outage
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._known: tuple[StoredRule, ...] = ()
        self._counting = CountingRules()
        self._error: StoreError | None = StoreError(outage.place, "the rules are not loaded yet")
        self._may_be_old = asyncio.Event()
        self._on_their_way: dict[asyncio.Future[bool], tuple[str, tuple[StoredRule, ...]]] = {}
        self._changes = 0
        self._task: asyncio.Task[None] | None = None

    # ── reading ───────────────────────────────────────────────────────────────────────────────

    def list(self) -> Sequence[Rule]:
        """The rules that count here, in the order in which they were made."""
        return self._counting.of(self.load())

    def load(self) -> tuple[StoredRule, ...]:
        """All that is stored, expired rules too. Raises StoreError when they are there and cannot
        be read: to continue without them might allow what one of them forbids."""
        if self._error is not None:
            raise copy(self._error)
        return self._known

    def heard(self) -> None:
        """They may have changed."""
        self._may_be_old.set()

    async def begin(self) -> None:
        """Read them, and again from now on. Raises StoreAway; other failures are reported to those
        who ask for them."""
        try:
            await self.read()
        except StoreAway:
            raise
        except StoreError:
            self.heard()
        self._task = asyncio.create_task(self._keep_up())

    async def _keep_up(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._reading.limits.news_seconds):
                    await self._may_be_old.wait()
            try:
                await self.read()
            except StoreError:
                self.heard()
                await asyncio.sleep(_AGAIN_SECONDS)

    async def read(self) -> None:
        """Once. What is on its way from here is not undone. Raises StoreError."""
        self._may_be_old.clear()
        changes = self._changes
        try:
            found = await self._reading.use(partial(loaded, home=self._home))
        except StoreError as error:
            self._not_read(error)
            raise
        if changes != self._changes:
            return self.heard()
        for rule_id, now in self._on_their_way.values():
            found = _replaced(found, rule_id, now)
        self._error = None
        if found != self._known:
            self._known = found  # else the same, so that nobody looks through them again
        return None

    def _not_read(self, error: StoreError) -> None:
        if took_too_long(error):
            logger.warning("the last known permission rules remain in force: %s", error)
        elif not isinstance(error, StoreAway):
            self._error = error

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # ── changing ──────────────────────────────────────────────────────────────────────────────

    def add(self, rule: Rule, home: str | None = None) -> None:
        """Store a rule; one with the same id is replaced. Raises StoreAway while the database is:
        then it would be nowhere but here."""
        must_last(rule)
        counts = rule.effect != "allow" or home in (None, self._home)
        stored = StoredRule(rule, time.time(), None, home or self._home, counts)
        self._change(rule.id, partial(_add, stored=stored), stored)

    def revoke(self, rule_id: str) -> bool:
        """Forget a rule; whether there was one. Raises StoreAway."""
        return self._change(rule_id, partial(_remove, rule_id=rule_id))

    def used(self, rule_id: str) -> None:
        """Remember that the rule has just decided something, some time. Not worth an error: it is
        for people who wonder whether a rule is still of use."""
        if threading.get_ident() != self._thread:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.used, rule_id)
            return
        with suppress(StoreError):
            noted = self._submit(partial(_note, rule_id=rule_id, now=time.time()))
            noted.add_done_callback(self._noted)

    def _noted(self, future: asyncio.Future[bool]) -> None:
        if not future.cancelled() and future.exception() is None:
            self.heard()

    def _change(self, rule_id: str, change: _Change, *now: StoredRule) -> bool:
        if threading.get_ident() != self._thread:
            changed = self._changed(rule_id, change, *now)
            return asyncio.run_coroutine_threadsafe(changed, self._loop).result()
        stored = self._submit(change, lasting=True)
        stored.add_done_callback(partial(_tell_of_failure, rule_id))
        return self._replace(stored, rule_id, now)

    async def _changed(self, rule_id: str, change: _Change, *now: StoredRule) -> bool:
        stored = self._submit(change)
        self._replace(stored, rule_id, now)
        return await stored

    def _replace(
        self, stored: asyncio.Future[bool], rule_id: str, now: tuple[StoredRule, ...]
    ) -> bool:
        """Here, before it is stored; whether there was one."""
        self._changes += 1
        self._on_their_way[stored] = rule_id, now
        stored.add_done_callback(self._arrived)
        had = any(known.rule.id == rule_id for known in self._known)
        self._known = _replaced(self._known, rule_id, now)
        return had

    def _arrived(self, stored: asyncio.Future[bool]) -> None:
        """In the database, or nowhere; what was read meanwhile may not have it."""
        self._changes += 1
        del self._on_their_way[stored]
        if not stored.cancelled():
            stored.exception()  # reported to its caller
        self.heard()

    def _submit(self, change: _Change, *, lasting: bool = False) -> asyncio.Future[bool]:
        """On its way into the database, behind all that waits already."""
        if self._outage.is_on:
            raise self._outage.error()
        future: asyncio.Future[bool] = self._loop.create_future()
        self._writer.submit(WriteJob(change, future, lasting=lasting))
        return future


def _tell_of_failure(rule_id: str, stored: asyncio.Future[bool]) -> None:
    if not stored.cancelled() and (error := stored.exception()) is not None:
        logger.error("the permission rules are unchanged, without %s: %s", rule_id, error)


def _replaced(
    rules: tuple[StoredRule, ...], rule_id: str, now: tuple[StoredRule, ...]
) -> tuple[StoredRule, ...]:
    return (*(stored for stored in rules if stored.rule.id != rule_id), *now)


async def loaded(db: Database, home: str) -> tuple[StoredRule, ...]:
    return tuple(stored_rule(db.place, row, home) for row in await db.rows(LOAD))


async def _add(db: Database, stored: StoredRule) -> bool:
    body = msgspec.json.encode(stored.rule)
    await db.run(REMOVE, (stored.rule.id,))
    await db.run(INSERT, (stored.rule.id, body, stored.created_at, stored.home))
    await db.run(TELL_OF_RULES)
    return True


async def _remove(db: Database, rule_id: str) -> bool:
    removed = await db.run(REMOVE, (rule_id,))
    await db.run(TELL_OF_RULES)
    return removed > 0


async def _note(db: Database, rule_id: str, now: float) -> bool:
    return await db.run(USED, (now, rule_id)) > 0
