"""`dragoman races`: lists, shows, exports, replays and merges races."""

from __future__ import annotations

import argparse

from dragoman.cli.options import add_json_option
from dragoman.cli.parsers import Actions, run_action

_MODULE = "race_actions"
_ID = "its id, the beginning of it, or `last`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__, stored=True)
    listed = actions.add("list", "list races, the newest first", module=_MODULE)
    add_json_option(listed.add_argument)
    show = actions.add("show", "show how a race went", module=_MODULE)
    _add_race(show)
    add_json_option(show.add_argument, "print its record as one JSON object")
    export = actions.add("export", "print the record of a race, for `replay`", module=_MODULE)
    _add_race(export)
    replay = actions.add(
        "replay", "make the verdict again from the record, and compare it", module=_MODULE
    )
    replay.add_argument("race", metavar="RACE", help=f"{_ID}, or an exported file")
    merge = actions.add("merge", "merge the winner into the checkout", module=_MODULE)
    _add_race(merge)
    add_json_option(merge.add_argument, "print a JSON object: what was changed, or the conflicts")
    delete = actions.add(
        "delete", "delete races, with the branches of their entrants", module=_MODULE
    )
    delete.add_argument("races", metavar="RACE", nargs="+", help=_ID)


run = run_action


def _add_race(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("race", metavar="RACE", nargs="?", default="last", help=f"{_ID} (default)")
