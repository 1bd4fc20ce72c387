"""What stored sessions have used, counted from their events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from dragoman.session.events import Event, TurnStarted
from dragoman.session.limits.prices import Prices
from dragoman.session.limits.spending import Meter, Spending
from dragoman.store.base import Store, events_of_types, session_pages
from dragoman.store.records import SessionFilter, SessionRecord, StoredEvent

_SESSIONS = 200
_MONEY = ("turn_started", "turn_ended", "usage", "config", "limit_reached")
"""Enough for turns, tokens, money and time."""
COUNTED_TYPES = (
    *_MONEY,
    "tool_call",
    "subagent_event",
    "permission_requested",
    "permission_settled",
    "elicitation_requested",
    "elicitation_settled",
    "turn_limited",
    "parking_changed",
)


async def count_stored(store: Store, record: SessionRecord, meter: Meter) -> None:
    """Have the meter count what is on record."""
    async for event in counted_events(store, record, COUNTED_TYPES):
        meter.see(event)


async def spent_by(store: Store, record: SessionRecord, prices: Prices) -> Spending:
    """What one session has used; of tool calls and waiting nothing."""
    meter = Meter(prices)
    async for event in counted_events(store, record, _MONEY):
        meter.see(event)
    return meter.session


class UsedTurn(msgspec.Struct, frozen=True):
    """What one turn has used, and when it began; "" for a model that the agent does not name."""

    at: float
    session: str
    title: str | None
    agent: str
    project: str
    model: str
    spent: Spending


async def used_turns(
    store: Store, since: float, prices: Prices, *, briefly: bool = False
) -> AsyncGenerator[UsedTurn]:
    """The turns that began since then, in all sessions; `briefly`, without tool calls and waiting,
    which are most of what there is to read."""
    types = _MONEY if briefly else COUNTED_TYPES
    pages = session_pages(store, SessionFilter(limit=_SESSIONS))
    async with aclosing(pages):
        async for page in pages:
            for record in page:
                if record.updated_at < since:
                    return  # the newest come first
                async for turn in _turns(store, record, Meter(prices), types):
                    if turn.at >= since:
                        yield turn


async def _turns(
    store: Store, record: SessionRecord, meter: Meter, types: tuple[str, ...]
) -> AsyncGenerator[UsedTurn]:
    """What is used between two turns belongs to the one before."""
    began = record.created_at

    def used() -> UsedTurn:
        return UsedTurn(
            began,
            record.id,
            record.name or record.title,
            record.agent,
            record.cwd,
            meter.model,
            meter.turn,
        )

    async for event in counted_events(store, record, types):
        if isinstance(event, TurnStarted) and not event.replay:
            if _used_something(meter.turn):
                yield used()
            began = event.at
        meter.see(event)
    if _used_something(meter.turn):
        yield used()


def _used_something(spent: Spending) -> bool:
    """Not when its prompt was not sent because a limit was reached."""
    return spent.turns > 0 or bool(spent.tool_calls or spent.tokens or spent.cost or spent.parked)


async def counted_events(
    store: Store,
    record: SessionRecord,
    types: tuple[str, ...],
    *,
    after: int = 0,
    until: int | None = None,
) -> AsyncGenerator[Event]:
    """What a fork or an import had in its history when it was made was used elsewhere: as if the
    agent had sent it again."""
    brought = brought_along(record)
    # Where the number is not known, the clocks have to say: those of two hosts may differ.
    forked_at = record.created_at if record.parent is not None and not record.copied else 0.0
    async for stored in events_of_types(store, record.id, types, after=after, until=until):
        if (event := _readable(stored)) is not None:
            event.replay |= stored.seq <= brought or event.at < forked_at
            yield event


def brought_along(record: SessionRecord) -> int:
    """The number of the last event that a fork has from its parent, or an import from its file. A
    fork of an import has at least what came with the file."""
    return max(record.copied, 0 if record.imported is None else record.imported.events)


def _readable(stored: StoredEvent) -> Event | None:
    """None for one that is damaged, or of another version."""
    try:
        return stored.decode()
    except msgspec.DecodeError:
        return None
