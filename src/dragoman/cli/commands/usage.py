"""`dragoman usage`: what sessions have used, by day, agent, project, model or session."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.options import add_json_option, add_settings_option, age

if TYPE_CHECKING:
    from dragoman.hub.stored.usage_report import UsageRow
    from dragoman.session.limits.spending import Spending


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        choices=("day", "agent", "project", "model", "session"),
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

    from dragoman.agents.settings.settings_file import load_settings
    from dragoman.cli.commands.sessions.session_list import print_json
    from dragoman.cli.run.hub_access import opened_store
    from dragoman.hub.stored.spent import used_turns
    from dragoman.hub.stored.usage_report import usage_rows
    from dragoman.session.limits.model_prices import all_prices

    prices = all_prices(load_settings(options.settings).prices)
    since = time.time() - options.since * 86400
    async with opened_store() as store:
        rows = await usage_rows(used_turns(store, since, prices), options.by)
    if options.json:
        print_json(rows)
    elif not rows:
        print("nothing was used")
    else:
        print("\n".join(_lines(rows, options.by)))


_ALWAYS = 0
_COLUMNS = (
    ("TURNS", 50),
    ("CALLS", 70),
    ("TIME", 60),
    ("WAITED", 80),
    ("INPUT", 120),
    ("CACHED", 120),
    ("OUTPUT", 120),
    ("THOUGHT", 120),
    ("TOKENS", _ALWAYS),
    ("COST", _ALWAYS),
)
"""Each with the width of the terminal from which on it is shown."""


def _cells(spent: Spending) -> tuple[str, ...]:
    from dragoman.cli.render.usage_words import cost_sum, duration, token_sum

    parts = ("", "", "", "")
    if (tokens := spent.tokens) is not None:
        counts = (tokens.input, tokens.cached, tokens.output, tokens.thought)
        parts = tuple(f"{count:,}" for count in counts)
    return (
        f"{spent.turns:,}",
        f"{spent.tool_calls:,}",
        duration(spent.seconds),
        duration(spent.waited + spent.parked),
        *parts,
        token_sum(spent),
        cost_sum(spent),
    )


def _lines(rows: list[UsageRow], by: str) -> list[str]:
    """A table with numbers at the right; names get the room that is left."""
    from dragoman.cli.commands.sessions.session_list import room
    from dragoman.cli.render.usage_words import gaps
    from dragoman.hub.stored.usage_report import total_of
    from dragoman.safe_text import columns, single_line

    width, total = room(), total_of(rows)
    headings = tuple(heading for heading, _ in _COLUMNS)
    table = [headings, *(_cells(row.spent) for row in rows)]
    table.append(_cells(total))
    shown = [at for at, (_, least) in enumerate(_COLUMNS) if width >= least]
    numbers = [[cells[at] for cells in table] for at in shown]
    widths = [max(map(columns, cells)) for cells in numbers]
    names = [by.upper(), *(_name(row, by) for row in rows), "total"]
    left = max(10, width - sum(widths) - 2 * len(widths))
    names = [_cut(name, left) for name in names]
    longest = max(map(columns, names))
    lines = [
        "  ".join((_padded(name, longest), *map(_at_right, cells, widths)))
        for name, cells in zip(names, zip(*numbers, strict=True), strict=True)
    ]
    return [single_line(line, width).rstrip() for line in (*lines, *gaps(total))]


def _name(row: UsageRow, by: str) -> str:
    from dragoman.cli.commands.sessions.session_list import short

    if by == "session":
        return f"{row.name}  {row.title}".rstrip() if row.title else row.name
    return short(row.name) if by == "project" else row.name or "unknown"


def _cut(name: str, width: int) -> str:
    """A path keeps its end, anything else its beginning."""
    from dragoman.cli.commands.sessions.session_list import shortened
    from dragoman.safe_text import single_line

    return shortened(name, width) if name[:1] in ("/", "~") else single_line(name, width).rstrip()


def _padded(text: str, width: int) -> str:
    from dragoman.safe_text import columns

    return text + " " * (width - columns(text))


def _at_right(text: str, width: int) -> str:
    from dragoman.safe_text import columns

    return " " * (width - columns(text)) + text
