"""`dragoman store`: where sessions are recorded, whether that is in order, and moving it."""

from __future__ import annotations

import argparse

from dragoman.cli.actions import Actions

_EXAMPLES = """\
  dragoman store copy postgresql://me@db.example/team    from here to there
  dragoman store copy ~/backup --store postgresql://…    and back, into a folder

What is there already is gone on with; a session that runs is left out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, stored=True)
    actions.add("check", "say where sessions are recorded, and whether all of it fits together")
    copying = actions.add("copy", "copy sessions, events and rules into another store", _EXAMPLES)
    copying.add_argument(
        "to", metavar="TO", help="a PostgreSQL address, or a directory for a store in SQLite"
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    from dragoman.cli import store_acts

    if options.action == "check":
        return asyncio.run(store_acts.check())
    return asyncio.run(store_acts.copy(options.to))
