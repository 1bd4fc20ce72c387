"""`dragoman usage`: what sessions have used, by day, agent, project or model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.options import add_json_option, add_settings_option, age

if TYPE_CHECKING:
    from dragoman.hub.stored.usage_report import UsageRow

_HEADER = ("TURNS", "CALLS", "TIME", "WAITED", "TOKENS", "COST")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        choices=("day", "agent", "project", "model"),
        default="day",
        help="what to group by (default: day)",
    )
    parser.add_argument(
        "--since",
        metavar="AGE",
        type=age,
        default=30.0,
        help="how far to look back, such as 7d, 12w or 36h (default: 30d)",
    )
    add_json_option(parser.add_argument)
    add_settings_option(parser.add_argument)


def run(options: argparse.Namespace) -> int:
    import asyncio

    asyncio.run(_usage(options))
    return 0


async def _usage(options: argparse.Namespace) -> None:
    import time

    from dragoman.agents.settings import load_settings, quirks_of
    from dragoman.cli.commands.sessions.session_list import print_json, table
    from dragoman.cli.run.hub_access import opened_store
    from dragoman.hub.stored.spent import used_turns
    from dragoman.hub.stored.usage_report import usage_rows

    settings = load_settings(options.settings)
    since = time.time() - options.since * 86400
    async with opened_store() as store:
        turns = used_turns(store, since, lambda agent: quirks_of(settings, agent).sums_tokens)
        rows = await usage_rows(turns, options.by)
    if options.json:
        print_json(rows)
    elif not rows:
        print("nothing was used")
    else:
        lines = [_cells(row) for row in (*rows, _total(rows))]
        print("\n".join(table((options.by.upper(), *_HEADER), lines)))


def _total(rows: list[UsageRow]) -> UsageRow:
    from dragoman.hub.stored.usage_report import UsageRow

    total = UsageRow("total")
    for row in rows:
        total.spent.add(row.spent)
        total.turns_without_tokens += row.turns_without_tokens
        total.turns_without_cost += row.turns_without_cost
    return total


def _cells(row: UsageRow) -> tuple[str, ...]:
    spent = row.spent
    tokens = "" if spent.tokens is None else f"{spent.tokens.total:,}"
    cost = ", ".join(f"{spent.cost[name]:.4f} {name}" for name in sorted(spent.cost))
    return (
        row.name or "unknown",
        str(spent.turns),
        str(spent.tool_calls),
        _time(spent.seconds),
        _time(spent.waited),
        _partly(tokens, row.turns_without_tokens),
        _partly(cost, row.turns_without_cost),
    )


def _partly(known: str, missing: int) -> str:
    """What nobody reported is not 0."""
    return known if known and not missing else f"{known} + unknown" if known else "unknown"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
