"""What sessions have cost since a given time, as their agents reported.

An agent reports what its session has cost so far; only the increase counts. A smaller sum than
before means that the agent started over. Sums that an agent replays on load count as known.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from dragoman.hub.stored.spent import brought_along
from dragoman.session.events import UsageChanged
from dragoman.store.base import Store, events_of_types, session_pages
from dragoman.store.records import SessionFilter, SessionRecord, StoredEvent

_SESSIONS = 200
_WINDOW = 500
_LOOK_BACK = 20_000
"""Events in which an earlier sum is looked for."""
_CURRENCIES = 16
"""That one session may have been paid in."""


class _Stamp(msgspec.Struct):
    at: float = 0.0


@dataclass
class _Tally:
    """Of one session: how far it was read, the last sums told, and by how much they grew."""

    seq: int
    last: dict[str, float] = field(default_factory=dict[str, float])
    grown: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, event: UsageChanged) -> None:
        told = event.cost
        if told is None or (told.currency not in self.last and len(self.last) >= _CURRENCIES):
            return
        known = self.last.get(told.currency, 0.0)
        if not event.replay:
            growth = told.amount - known if told.amount >= known else told.amount
            self.grown[told.currency] = self.grown.get(told.currency, 0.0) + growth
        self.last[told.currency] = told.amount


class Costs:
    """Reads each event once for each start time that is asked for; the last result is kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since = 0.0
        self._tallies: dict[str, _Tally] = {}
        self._reading = asyncio.Lock()

    async def since(self, moment: float) -> dict[str, float]:
        """Amounts by currency, of the sessions in which anything happened since then."""
        async with self._reading:
            if moment != self._since:
                self._since, self._tallies = moment, {}
            totals: dict[str, float] = {}
            for record in await self._recent(moment):
                for currency, amount in (await self._grown(record)).items():
                    totals[currency] = totals.get(currency, 0.0) + amount
            return totals

    async def _recent(self, moment: float) -> list[SessionRecord]:
        found: list[SessionRecord] = []
        pages = session_pages(self._store, SessionFilter(limit=_SESSIONS))
        async with aclosing(pages):
            async for page in pages:
                recent = [record for record in page if record.updated_at >= moment]
                found += recent
                if len(recent) < len(page):
                    break
        return found

    async def _grown(self, record: SessionRecord) -> dict[str, float]:
        tally = self._tallies.get(record.id)
        if tally is None:
            tally = self._tallies[record.id] = await self._begun(record)
        usages = events_of_types(self._store, record.id, ["usage"], after=tally.seq)
        async for stored in usages:
            if (event := _usage(stored)) is not None:
                tally.add(event)
            tally.seq = stored.seq
        tally.seq = max(tally.seq, record.last_seq)
        return tally.grown

    async def _begun(self, record: SessionRecord) -> _Tally:
        # What a fork remembers of its parent was paid for there, and what an import has elsewhere.
        is_fork, brought = record.parent is not None, brought_along(record)
        is_vague = is_fork and not record.copied
        moment = max(self._since, record.created_at) if is_vague else self._since
        if record.created_at >= moment and not (is_fork or brought):
            return _Tally(0)
        seq = await self._last_before(record, moment, brought)
        return _Tally(seq, await self._told_before(record.id, seq))

    async def _last_before(self, record: SessionRecord, moment: float, brought: int) -> int:
        """The number of the last event before a moment: after those that were brought along, events
        are in the order of time."""
        low, high = min(brought, record.last_seq), record.last_seq
        while low < high:
            middle = (low + high) // 2
            page = await self._store.events(record.id, after=middle, limit=1)
            if page and _at(page[0].body) < moment:
                low = page[0].seq
            else:
                high = middle
        return low

    async def _told_before(self, session_id: str, seq: int) -> dict[str, float]:
        """The last reported sums, up to an event."""
        window = _WINDOW
        end = seq
        while end > max(0, seq - _LOOK_BACK):
            start = max(0, end - window)
            told: dict[str, float] = {}
            async for stored in events_of_types(
                self._store, session_id, ["usage"], after=start, until=end
            ):
                event = _usage(stored)
                if event is not None and event.cost is not None:
                    told[event.cost.currency] = event.cost.amount
            if told:
                return dict(islice(told.items(), _CURRENCIES))
            end, window = start, window * 4
        return {}


def _usage(stored: StoredEvent) -> UsageChanged | None:
    """None for one that is damaged, of another version, or beyond belief."""
    try:
        event = stored.decode()
    except msgspec.DecodeError:
        return None
    if not isinstance(event, UsageChanged) or event.cost is None:
        return None
    return event if event.cost.is_credible else None


def _at(body: bytes) -> float:
    return msgspec.json.decode(body, type=_Stamp).at
