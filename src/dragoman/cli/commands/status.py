"""`dragoman status`: the sessions that processes run now, since when, and what that costs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.options import add_json_option

if TYPE_CHECKING:
    from dragoman.cli.warm.running_list import RunningNow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json_option(parser.add_argument)


def run(options: argparse.Namespace) -> int:
    import asyncio

    from dragoman.cli.commands.sessions.session_list import print_json
    from dragoman.cli.warm.running_list import running

    found = asyncio.run(running())
    if options.json:
        print_json([each.public for each in found])
    elif not found:
        print("nothing is running")
    else:
        print("\n".join(_lines(found)))
    return 0


def _lines(found: list[RunningNow]) -> list[str]:
    import time

    from dragoman.cli.commands.sessions.session_list import room, shortened, table
    from dragoman.cli.render.event_text import called

    now, width = time.time(), max(room() // 5, 12)
    headings = ("SESSION", "STATE", "SINCE", "ENDS IN", "AGENT", "PID", "MEMORY", "[NAME] TITLE")
    rows = [
        (
            each.record.id,
            each.state,
            "" if each.since is None else _lasting(now - each.since),
            "" if each.ends_at is None else _lasting(each.ends_at - now),
            shortened(each.record.agent, width),
            str(each.owner.pid),
            "" if each.memory is None else _megabytes(each.memory),
            called(each.record.name, each.record.title),
        )
        for each in found
    ]
    # A process that runs several sessions counts once.
    memory = {each.owner.id: each.memory or 0 for each in found}
    total = f"{len(memory)} process{'' if len(memory) == 1 else 'es'}"
    return [*table(headings, rows), f"{total}, {_megabytes(sum(memory.values()))}"]


def _lasting(seconds: float) -> str:
    from dragoman.cli.render.usage_words import duration

    return duration(max(0.0, seconds))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
