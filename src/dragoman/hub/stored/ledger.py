"""What the sessions of a store have used together, for limits of a day, an agent or a project.

The store is what counts, so that the sums hold across processes and restarts. Of each session only
what was added since the last look is read.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import date, datetime

from dragoman.hub.stored.spent import COUNTED_TYPES, counted_events
from dragoman.session import events as e
from dragoman.session.facts import LimitScope
from dragoman.session.limits.spending import Meter, Spending
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.store.base import Store, session_pages
from dragoman.store.records import SessionFilter, SessionRecord

_PAGE = 200
_OVERLAP = 300.0
"""Seconds by which the clocks of two hosts may differ, and a commit may be late."""


class _Account:
    """One session, as far as it was read. What is used between two turns belongs to the one
    before."""

    def __init__(self, record: SessionRecord) -> None:
        self.agent, self.cwd = record.agent, record.cwd
        self.last_seq = 0
        self._meter = Meter()
        self._began = date.fromtimestamp(record.created_at)
        self._days: dict[date, Spending] = {}
        self._turn_id = ""

    def see(self, event: e.Event) -> None:
        if isinstance(event, e.TurnStarted) and not event.replay:
            self._days.setdefault(self._began, Spending(cost={})).add(self._meter.turn)
            self._began, self._turn_id = date.fromtimestamp(event.at), event.turn_id
        self._meter.see(event)

    def spent(self, day: date | None, turn_id: str) -> Spending:
        """On that day, or ever; but not in this turn."""
        spent = Spending(cost={})
        for each, sum_ in self._days.items():
            if day in (None, each):
                spent.add(sum_)
        if day in (None, self._began) and self._turn_id != turn_id:
            spent.add(self._meter.turn)
        return spent


class StoreLedger:
    """Of one store; `seconds` is how often to look at it while a turn runs."""

    def __init__(self, store: Store, *, seconds: float) -> None:
        self.seconds = seconds
        self._store = store
        self._accounts: dict[str, _Account] = {}
        self._read_until: dict[tuple[str | None, str | None], float] = {}

    def of(self, record: SessionRecord) -> SessionLedger:
        return SessionLedger(self, record)

    async def spent(self, limit: SpendingLimit, record: SessionRecord, turn_id: str) -> Spending:
        """By all turns that the limit of this session is about, except this one."""
        today = date.fromtimestamp(time.time()) if limit.per == "day" else None
        agent, cwd = _only(limit.per, record)
        await self._read(agent, cwd, today)
        spent = Spending(cost={})
        for account in self._accounts.values():
            is_meant = agent in (None, account.agent) and cwd in (None, account.cwd)
            if is_meant and limit.concerns(account.agent, account.cwd):
                spent.add(account.spent(today, turn_id))
        return spent

    async def _read(self, agent: str | None, cwd: str | None, day: date | None) -> None:
        """What is new in sessions that were used since it was last read; of a day, since then."""
        earliest = 0.0
        if day is not None:
            earliest = datetime(day.year, day.month, day.day).astimezone().timestamp()
        since = max(earliest, self._read_until.get((agent, cwd), 0.0) - _OVERLAP)
        now = self._store.now()
        async for record in self._sessions(agent, cwd, since):
            await self._update(record)
        if day is None:
            self._read_until[agent, cwd] = now

    async def _sessions(
        self, agent: str | None, cwd: str | None, since: float
    ) -> AsyncGenerator[SessionRecord]:
        wanted = SessionFilter(agent=agent, cwd=cwd, limit=_PAGE)
        async with aclosing(session_pages(self._store, wanted)) as pages:
            async for page in pages:
                for record in page:
                    if record.updated_at < since:
                        return  # the newest come first
                    yield record

    async def _update(self, record: SessionRecord) -> None:
        account = self._accounts.get(record.id)
        if account is None:
            account = self._accounts[record.id] = _Account(record)
        after, until = account.last_seq, record.last_seq
        if after < until:
            events = counted_events(self._store, record, COUNTED_TYPES, after=after, until=until)
            async for event in events:
                account.see(event)
            account.last_seq = until


def _only(per: LimitScope, record: SessionRecord) -> tuple[str | None, str | None]:
    """The agent and the folder whose sessions count, if not all do."""
    return (
        record.agent if per == "agent" else None,
        record.cwd if per == "project" else None,
    )


class SessionLedger:
    """The same as one session sees it."""

    def __init__(self, ledger: StoreLedger, record: SessionRecord) -> None:
        self.seconds = ledger.seconds
        self._ledger = ledger
        self._record = record

    async def spent(self, limit: SpendingLimit, turn_id: str) -> Spending:
        return await self._ledger.spent(limit, self._record, turn_id)
