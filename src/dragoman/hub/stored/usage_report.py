"""What was used, in rows by day, agent, project or model."""

from __future__ import annotations

from collections.abc import AsyncIterable
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from dragoman.hub.stored.spent import UsedTurn
from dragoman.session.limits.spending import Spending

Grouping: TypeAlias = Literal["day", "agent", "project", "model"]
GROUPINGS: tuple[Grouping, ...] = ("day", "agent", "project", "model")


class UsageRow(msgspec.Struct, rename="camel"):
    """All turns of one day, agent, project or model. Tokens or money that agents did not report are
    unknown, not 0: of so many turns they are missing."""

    name: str
    spent: Spending = msgspec.field(default_factory=Spending)
    turns_without_tokens: int = 0
    turns_without_cost: int = 0

    def add(self, turn: UsedTurn) -> None:
        self.spent.add(turn.spent)
        if turn.spent.tokens is None:
            self.turns_without_tokens += turn.spent.turns
        if not turn.spent.cost:
            self.turns_without_cost += turn.spent.turns


async def usage_rows(turns: AsyncIterable[UsedTurn], by: Grouping) -> list[UsageRow]:
    """In the order of their names, so that days are in order."""
    rows: dict[str, UsageRow] = {}
    async for turn in turns:
        name = _name(turn, by)
        rows.setdefault(name, UsageRow(name)).add(turn)
    return [rows[name] for name in sorted(rows)]


def _name(turn: UsedTurn, by: Grouping) -> str:
    if by == "day":
        return datetime.fromtimestamp(turn.at).astimezone().date().isoformat()
    return str(getattr(turn, by))
