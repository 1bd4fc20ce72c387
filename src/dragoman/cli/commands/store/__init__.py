"""`dragoman store`: checks, copies and prunes the store in which sessions are recorded."""

from __future__ import annotations

import argparse
import os

from dragoman.cli.options import age
from dragoman.cli.parsers import Actions, run_action

_EXAMPLES = """\
  dragoman store copy postgresql://me@db.example/team    from here to PostgreSQL
  dragoman store copy ~/backup --store postgresql://…    back to a directory

Sessions copied earlier, even in part, are brought up to date. Running sessions
are skipped. Snapshots of folders, uploads and installed agents are not
copied."""


_PRUNING = """\
  dragoman store prune --older-than 90d --dry-run       show what it would do
  dragoman store prune --older-than 2w --project .      only in this project

Sessions that are running, waiting for an answer or archived are kept, and so
are the agents' own copies. With `retention` in the settings, `dragoman serve`
prunes automatically."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__, stored=True)
    actions.add(
        "check",
        "show where sessions are recorded, and check that the store is intact",
        module="store_actions",
    )
    copying = actions.add(
        "copy",
        "copy sessions, events and rules to another store",
        _EXAMPLES,
        module="store_actions",
    )
    copying.add_argument(
        "to", metavar="TO", help="PostgreSQL address, or directory for an SQLite store"
    )
    _add_prune(actions)


def _add_prune(actions: Actions) -> None:
    pruning = actions.add(
        "prune",
        "delete sessions that have been idle for a long time",
        _PRUNING,
        module="store_actions",
    )
    pruning.add_argument(
        "--older-than",
        metavar="AGE",
        type=age,
        required=True,
        help="minimum idle time, such as 90d, 12w or 36h",
    )
    pruning.add_argument(
        "--project",
        metavar="DIR",
        type=os.path.abspath,
        help="only sessions in this directory and below",
    )
    pruning.add_argument("-a", "--agent", metavar="NAME", help="only sessions of this agent")
    pruning.add_argument(
        "--dry-run",
        action="store_true",
        help="only print which sessions would be deleted, and their size",
    )


run = run_action
