"""The stored rules as a host has them: at hand, so that no decision waits for the database.

They are read again when a change is heard of, and every few seconds without that. While the
database is away, or does not get to it, those last known hold. Knows no policy.
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
from dragoman.host.rules.policy import StoredRule
from dragoman.host.rules.rule import Rule
from dragoman.store.outage import Outage
from dragoman.store.postgres import news
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.failures import took_too_long
from dragoman.store.postgres.link import Link
from dragoman.store.postgres.rules import (
    INSERT,
    LOAD,
    REMOVE,
    TELL_OF_RULES,
    USED,
    stored_rule,
)
from dragoman.store.postgres.writer import StoreWriter, WriteJob
from dragoman.store.sqlite.rules import must_last

logger = logging.getLogger("dragoman.store")

_AGAIN_SECONDS = 1.0

_Change = Callable[[Database], Awaitable[bool]]


class KeptRules:
    """For any thread. In the loop nothing waits: a change counts here at once and is written behind
    whatever waits already, before what is recorded after it. Other threads wait until it is."""

    def __init__(self, reading: Link, writer: StoreWriter, outage: Outage) -> None:
        self._reading = reading
        self._writer = writer
        self._outage = outage
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._known: tuple[StoredRule, ...] = ()
        self._error: StoreError | None = StoreError(outage.place, "the rules are not loaded yet")
        self._may_be_old = asyncio.Event()
        self._on_their_way: dict[asyncio.Future[bool], tuple[str, tuple[StoredRule, ...]]] = {}
        self._changes = 0
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
                async with asyncio.timeout(news.POLL_SECONDS):
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
            found = await self._reading.use(loaded)
        except StoreError as error:
            self._not_read(error)
            raise
        if changes != self._changes:
            return self.heard()
        for rule_id, now in self._on_their_way.values():
            found = _replaced(found, rule_id, now)
        self._known, self._error = found, None
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


async def loaded(db: Database) -> tuple[StoredRule, ...]:
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
