"""`dragoman store`: where sessions are recorded, whether that is in order, and moving it."""

from __future__ import annotations

import argparse
import os
import re

from dragoman.cli.parsers import Actions

_EXAMPLES = """\
  dragoman store copy postgresql://me@db.example/team    from here to there
  dragoman store copy ~/backup --store postgresql://…    and back, into a folder

What is there already is gone on with; a session that runs is left out."""


_PRUNING = """\
  dragoman store prune --older-than 90d --dry-run       what that would be
  dragoman store prune --older-than 2w --project .      this project alone

A session that runs, waits for an answer or is archived is kept. No agent is
asked to forget anything. With `retention` in the settings, `dragoman serve`
does the same by itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, stored=True)
    actions.add("check", "say where sessions are recorded, and whether all of it fits together")
    copying = actions.add("copy", "copy sessions, events and rules into another store", _EXAMPLES)
    pruning = actions.add(
        "prune", "delete sessions that nothing has happened in for long", _PRUNING
    )
    pruning.add_argument(
        "--older-than", metavar="AGE", type=_age, required=True, help="such as 90d, 12w or 36h"
    )
    pruning.add_argument(
        "--project",
        metavar="DIR",
        type=os.path.abspath,
        help="those of this folder and beneath alone",
    )
    pruning.add_argument("-a", "--agent", metavar="NAME", help="those of this agent alone")
    pruning.add_argument(
        "--dry-run", action="store_true", help="only say which, and how much that would be"
    )
    copying.add_argument(
        "to", metavar="TO", help="a PostgreSQL address, or a directory for a store in SQLite"
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    from dragoman.cli.commands import store_actions

    if options.action == "check":
        return asyncio.run(store_actions.check())
    if options.action == "prune":
        return asyncio.run(store_actions.prune(options))
    return asyncio.run(store_actions.copy(options.to))


def _age(text: str) -> float:
    """In days."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw])", text)
    days = 0.0 if found is None else float(found[1]) * {"h": 1 / 24, "d": 1.0, "w": 7.0}[found[2]]
    if not days:
        raise argparse.ArgumentTypeError(f"expected an age such as 90d, 12w or 36h, not {text!r}")
    return days
