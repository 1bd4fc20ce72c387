"""The stored rules as a host has them: at hand, so that no decision waits for the database.

They are read again when a change is heard of. While the database is away those last known hold:
whoever could change them cannot reach it either, or will be heard when it is back. Knows no policy.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial

import msgspec

from dragoman.errors import StoreAway, StoreError
from dragoman.host.matching import Rule
from dragoman.host.rulebook import StoredRule
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.jobs import Job
from dragoman.store.postgres.link import Link, Outage
from dragoman.store.postgres.rules import (
    INSERT,
    LOAD,
    REMOVE,
    TELL_OF_RULES,
    USED,
    stored_rule,
)
from dragoman.store.postgres.writer import Writer
from dragoman.store.rules import must_last

logger = logging.getLogger("dragoman.store")

_AGAIN_SECONDS = 1.0

_Change = Callable[[Database], Awaitable[bool]]


class KeptRules:
    """For any thread. In the loop nothing waits: a change counts here at once and is written behind
    whatever waits already, before what is recorded after it. Other threads wait until it is."""

    def __init__(self, reading: Link, writer: Writer, outage: Outage) -> None:
        self._reading = reading
        self._writer = writer
        self._outage = outage
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._known: tuple[StoredRule, ...] = ()
        self._error: StoreError | None = None
        self._is_old = True
        self._on_their_way = 0
        self._task: asyncio.Task[None] | None = None

    # ── reading ───────────────────────────────────────────────────────────────────────────────

    def list(self) -> Sequence[Rule]:
        """The rules alone, in the order in which they were made."""
        return [stored.rule for stored in self.load()]

    def load(self) -> tuple[StoredRule, ...]:
        """All that is stored, expired rules too. Raises StoreError when they are there and cannot
        be read: to go on without them might allow what one of them forbids."""
        if self._error is not None:
            raise copy(self._error)
        return self._known

    def heard(self) -> None:
        """They may have changed."""
        self._is_old = True
        if self._task is None:
            self._task = asyncio.create_task(self._keep_up())

    async def _keep_up(self) -> None:
        try:
            while self._is_old and not self._on_their_way:
                try:
                    await self.read()
                except StoreAway:
                    await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            self._task = None

    async def read(self) -> None:
        """Once. What is on its way from here meanwhile is not undone: it makes them old again.
        Raises StoreAway."""
        self._is_old = False
        found, error = self._known, None
        try:
            found = await self._reading.use(_loaded)
        except StoreAway:
            self._is_old = True
            raise
        except StoreError as failure:
            error = failure
        if not self._is_old:
            self._known, self._error = found, error

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # ── changing ──────────────────────────────────────────────────────────────────────────────

    def add(self, rule: Rule) -> None:
        """Store a rule; one with the same id is replaced. Raises StoreAway while the database is:
        then it would be nowhere but here."""
        must_last(rule)
        stored = StoredRule(rule, time.time())
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
            self._begin(partial(_note, rule_id=rule_id, now=time.time()))

    def _change(self, rule_id: str, change: _Change, *now: StoredRule) -> bool:
        if threading.get_ident() != self._thread:
            changed = self._changed(rule_id, change, *now)
            return asyncio.run_coroutine_threadsafe(changed, self._loop).result()
        self._begin(change, lasting=True).add_done_callback(_tell_of_failure)
        return self._replace(rule_id, *now)

    async def _changed(self, rule_id: str, change: _Change, *now: StoredRule) -> bool:
        stored = self._begin(change)
        self._replace(rule_id, *now)
        return await stored

    def _replace(self, rule_id: str, *now: StoredRule) -> bool:
        """Here, before the database has it; whether there was one."""
        others = tuple(stored for stored in self._known if stored.rule.id != rule_id)
        had = len(others) < len(self._known)
        self._known = (*others, *now)
        return had

    def _begin(self, change: _Change, *, lasting: bool = False) -> asyncio.Future[bool]:
        """On its way into the database, behind all that waits already."""
        if self._outage.is_on:
            raise self._outage.error()
        future: asyncio.Future[bool] = self._loop.create_future()
        self._writer.submit(Job(change, future, lasting=lasting))
        self._is_old = True
        self._on_their_way += 1
        future.add_done_callback(self._arrived)
        return future

    def _arrived(self, future: asyncio.Future[bool]) -> None:
        self._on_their_way -= 1
        if not future.cancelled():
            future.exception()  # who waits for it is told
        self.heard()


def _tell_of_failure(future: asyncio.Future[bool]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        logger.error("the permission rules stay as they were: %s", error)


async def _loaded(db: Database) -> tuple[StoredRule, ...]:
    return tuple(stored_rule(db.place, row) for row in await db.rows(LOAD))


async def _add(db: Database, stored: StoredRule) -> bool:
    body = msgspec.json.encode(stored.rule)
    await db.run(REMOVE, (stored.rule.id,))
    await db.run(INSERT, (stored.rule.id, body, stored.created_at))
    await db.run(TELL_OF_RULES)
    return True


async def _remove(db: Database, rule_id: str) -> bool:
    removed = await db.run(REMOVE, (rule_id,))
    await db.run(TELL_OF_RULES)
    return removed > 0


async def _note(db: Database, rule_id: str, now: float) -> bool:
    return await db.run(USED, (now, rule_id)) > 0
