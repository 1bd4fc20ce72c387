"""What was used, in rows by day, agent, project, model or session."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from dragoman.hub.stored.spent import UsedTurn, spent_by, used_turns
from dragoman.session.limits.prices import Prices
from dragoman.session.limits.spending import Spending
from dragoman.store.base import Store

Grouping: TypeAlias = Literal["day", "agent", "project", "model", "session"]
GROUPINGS: tuple[Grouping, ...] = ("day", "agent", "project", "model", "session")


class UsageRow(msgspec.Struct, rename="camel"):
    """All turns of one day, agent, project, model or session. Tokens or money that agents did not
    report are unknown, not 0: `spent` says of how many turns they are missing."""

    name: str
    title: str | None = None
    """Of a session: what it is called."""
    spent: Spending = msgspec.field(default_factory=Spending)


def total_of(rows: Iterable[UsageRow]) -> Spending:
    total = Spending()
    for row in rows:
        total.add(row.spent)
    return total


async def usage_rows(turns: AsyncIterable[UsedTurn], by: Grouping) -> list[UsageRow]:
    """In the order of their names, so that days are in order."""
    rows: dict[str, UsageRow] = {}
    async for turn in turns:
        name = _name(turn, by)
        title = turn.title if by == "session" else None
        rows.setdefault(name, UsageRow(name, title)).spent.add(turn.spent)
    return [rows[name] for name in sorted(rows)]


def _name(turn: UsedTurn, by: Grouping) -> str:
    if by == "day":
        return datetime.fromtimestamp(turn.at).astimezone().date().isoformat()
    return str(getattr(turn, by))


async def session_and_day(store: Store, session_id: str, prices: Prices) -> list[Spending]:
    """What the session has used, and all sessions today, without tool calls and waiting; nothing of
    a session that is gone."""
    record = await store.session(session_id)
    if record is None:
        return []
    return [await spent_by(store, record, prices), await used_today(store, prices)]


async def used_today(store: Store, prices: Prices) -> Spending:
    """What all sessions have used since midnight, without tool calls and waiting."""
    now = datetime.fromtimestamp(store.now())
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    day = Spending()
    async for turn in used_turns(store, midnight, prices, briefly=True):
        day.add(turn.spent)
    return day
