"""`dragoman race`: several agents, one task, judged by tests."""

from __future__ import annotations

import argparse

from dragoman.cli import options as shared

TYPE_CHECKING = False  # that of `typing` would cost `--help` the import
if TYPE_CHECKING:
    from argparse import _ArgumentGroup as ArgumentGroup  # pyright: ignore[reportPrivateUsage]

    from dragoman.cli.options import AddArgument

_EXAMPLES = """\
examples:
  dragoman race "fix the failing test" -a claude -a gemini:2 --check "pytest -q"
  dragoman race -f task.md -a goose:3 --check "npm test" --max-cost 2 --pick

Each entrant works in a git worktree of its own, in a fence. The check then runs
on each result in a clean checkout, with the tests of the base in place of those
an entrant changed. Exit code 0: an entrant passed; 1: none did."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    add = parser.add_argument
    shared.add_optional(add, "task", "TASK", "what is to be done")
    add("-f", "--file", metavar="FILE", help="read the task from a file")
    add(
        "-a",
        "--agent",
        metavar="NAME[:N]",
        action="append",
        default=[],
        help="an entrant, by the name of an agent; x:2 enters twice; repeatable",
    )
    add("--check", metavar="CMD", help="shell command that judges: 0 is a pass; required")
    add(
        "--junit",
        metavar="FILE",
        default="",
        help="JUnit XML file that the check writes (default: pytest is asked for one; TAP on "
        "standard output is read as well)",
    )
    add("--cwd", metavar="DIR", default=".", help="a folder of the repository (default: here)")
    shared.add_settings_option(add)
    add("--setup", metavar="CMD", help="prepares each worktree (default: from the settings)")
    text = "begin with the uncommitted changes of the checkout"
    add("--uncommitted", action="store_true", help=text)
    _add_limits(parser.add_argument_group("limits").add_argument)
    _add_ends(parser.add_argument_group("at the end"))


def _add_limits(add: AddArgument) -> None:
    text = "maximum cost of each entrant, as in 2.50 (USD) or 2.50EUR"
    add("--max-cost", metavar="AMOUNT", type=shared.money, help=text)
    text = "maximum time of each entrant, such as 10m (default: 30m)"
    add("--max-time", metavar="TIME", type=shared.duration, default=1800.0, help=text)
    text = "maximum time of each run of the check (default: 10m)"
    add("--check-time", metavar="TIME", type=shared.duration, default=600.0, help=text)
    text = "how many entrants run at once (default: 4)"
    add("-j", "--jobs", metavar="N", type=shared.count, default=4, help=text)
    add(
        "--fence",
        choices=("require", "on", "off"),
        default="require",
        help="whether entrants and the check run in a fence: always, if this system can build one, "
        "or never (default: require)",
    )


def _add_ends(group: ArgumentGroup) -> None:
    which = group.add_mutually_exclusive_group()
    which.add_argument("--pick", action="store_true", help="merge the winner into the checkout")
    which.add_argument(
        "--keep",
        action="store_true",
        help="merge nothing (the default): `dragoman races merge ID` does it later",
    )
    group.add_argument(
        "--reviewer",
        metavar="NAME",
        help="ask this agent which of those that passed is best: it sees the diffs without names, "
        "in both orders, and counts only if it names the same one twice",
    )
    shared.add_json_option(group.add_argument, "print the record of the race as JSON")


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.commands.races.race_run import run_race

    return run_race(options)
