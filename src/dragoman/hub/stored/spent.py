"""What stored sessions have used, counted from their events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec

from dragoman.session.events import ConfigChanged, Event, TurnStarted
from dragoman.session.limits.spending import Meter, Spending
from dragoman.store.base import Store, events_of_types, session_pages
from dragoman.store.records import SessionFilter, SessionRecord, StoredEvent

_SESSIONS = 200
COUNTED_TYPES = (
    "turn_started",
    "turn_ended",
    "tool_call",
    "subagent_event",
    "usage",
    "permission_requested",
    "permission_settled",
    "elicitation_requested",
    "elicitation_settled",
    "limit_reached",
)


async def count_stored(store: Store, record: SessionRecord, meter: Meter) -> None:
    """Have the meter count what is on record."""
    async for event in counted_events(store, record, COUNTED_TYPES):
        meter.see(event)


class UsedTurn(msgspec.Struct, frozen=True):
    """What one turn has used, and when it began; "" for a model that the agent does not name."""

    at: float
    agent: str
    project: str
    model: str
    spent: Spending


async def used_turns(
    store: Store, since: float, sums_tokens: Callable[[str], bool]
) -> AsyncGenerator[UsedTurn]:
    """The turns that began since then, in all sessions; `sums_tokens` says of which agents the
    tokens are those of the session so far."""
    pages = session_pages(store, SessionFilter(limit=_SESSIONS))
    async with aclosing(pages):
        async for page in pages:
            for record in page:
                if record.updated_at < since:
                    return  # the newest come first
                meter = Meter(sums_tokens=sums_tokens(record.agent))
                async for turn in _turns(store, record, meter):
                    if turn.at >= since:
                        yield turn


async def _turns(store: Store, record: SessionRecord, meter: Meter) -> AsyncGenerator[UsedTurn]:
    """What is used between two turns belongs to the one before."""
    model, used_model, began = "", "", record.created_at
    async for event in counted_events(store, record, (*COUNTED_TYPES, "config")):
        if isinstance(event, ConfigChanged):
            model = _model(event) or model
        elif isinstance(event, TurnStarted) and not event.replay:
            if meter.turn != Spending():
                yield UsedTurn(began, record.agent, record.cwd, used_model, meter.turn)
            began, used_model = event.at, model
        meter.see(event)
    if meter.turn != Spending():
        yield UsedTurn(began, record.agent, record.cwd, used_model, meter.turn)


def _model(event: ConfigChanged) -> str:
    found = (option.value for option in event.options if option.category == "model")
    return next((value for value in found if isinstance(value, str)), "")


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
    is_copy = record.parent is not None or record.imported is not None
    async for stored in events_of_types(store, record.id, types, after=after, until=until):
        if (event := _readable(stored)) is not None:
            event.replay |= is_copy and event.at < record.created_at
            yield event


def _readable(stored: StoredEvent) -> Event | None:
    """None for one that is damaged, or of another version."""
    try:
        return stored.decode()
    except msgspec.DecodeError:
        return None
