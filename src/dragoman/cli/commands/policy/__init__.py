"""`dragoman policy`: lists, checks, explains and revokes permission rules."""

from __future__ import annotations

import argparse
from importlib import import_module

from dragoman.cli.parsers import Actions

_MODULES = {
    "list": "rules",
    "check": "rules",
    "revoke": "rules",
    "explain": "explain",
}
# As in `host.rules.access`, which would cost more to import than the rest of the help.
_OPERATIONS = ("read", "write", "execute", "fetch", "mcp", "other")

_EXAMPLES = """\
  dragoman policy explain --operation write --path src/app.py --write
  dragoman policy explain --policy rules.json -- git push --force
  dragoman policy explain -- 'make && ./run'     one argument: a shell command
  dragoman policy explain --recording recording.jsonl --policy rules.json

This command does not access the paths or run the command."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, stored=True)
    listing = actions.add("list", 'list the rules created by your "always" answers')
    listing.add_argument("--json", action="store_true", help="print a JSON array of objects")
    listing.add_argument("--names", action="store_true", help="print only the ids, one per line")
    checking = actions.add("check", "check a policy file")
    checking.add_argument("file", metavar="FILE", help="policy file, JSON or TOML")
    _add_explain(actions)
    revoking = actions.add("revoke", "delete a stored rule")
    revoking.add_argument("id", metavar="ID", help="rule id, as printed by `policy list`")


def run(options: argparse.Namespace) -> int:
    return import_module(f"{__name__}.{_MODULES[options.action]}").run(options)


def _add_explain(actions: Actions) -> None:
    parser = actions.add(
        "explain", "show what the rules would decide, and why, rule by rule", _EXAMPLES
    )
    parser.add_argument(
        "command",
        metavar="CMD ARGS",
        nargs="*",
        help="command to explain, after --",
    )
    what = parser.add_argument_group("request")
    what.add_argument("--operation", choices=_OPERATIONS, help="the operation to explain")
    what.add_argument(
        "--path",
        metavar="P",
        action="append",
        default=[],
        help="path that the operation affects; repeatable",
    )
    what.add_argument(
        "--host", metavar="HOST", action="append", default=[], help="host to fetch from; repeatable"
    )
    what.add_argument("--tool", metavar="TOOL", help="name of the tool, for mcp and other")
    what.add_argument("--agent", metavar="NAME", default="", help="agent that makes the request")
    what.add_argument(
        "--recording",
        metavar="FILE",
        help="explain every request in this recording instead; `dragoman --record FILE` makes one",
    )
    where = parser.add_argument_group("workspace and rules")
    where.add_argument("--cwd", metavar="DIR", help="workspace (default: the current directory)")
    where.add_argument(
        "--add-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="additional workspace root; repeatable",
    )
    where.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="FILE",
        help="file of permission rules in addition to the stored ones; repeatable",
    )
    for flag in ("write", "exec", "yolo"):
        where.add_argument(f"--{flag}", action="store_true", help=f"assume `dragoman --{flag}`")
    where.add_argument("--json", action="store_true", help="print the explanation as JSON")
