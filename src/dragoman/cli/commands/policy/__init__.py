"""`dragoman policy`: the permission rules there are, what they would decide, taking one back."""

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
# As in `host.access`, which would cost more to import than the rest of the help.
_OPERATIONS = ("read", "write", "execute", "fetch", "mcp", "other")

_EXAMPLES = """\
  dragoman policy explain --operation write --path src/app.py --write
  dragoman policy explain --policy rules.json -- git push --force
  dragoman policy explain -- 'make && ./run'      one word is a line for a shell
  dragoman policy explain --recording recording.jsonl --policy rules.json

Nothing is read, written or run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, stored=True)
    listing = actions.add("list", 'list the rules that your "always" answers made')
    listing.add_argument("--json", action="store_true", help="as a JSON array of objects")
    listing.add_argument("--names", action="store_true", help="only the ids, one per line")
    checking = actions.add("check", "check a file of rules")
    checking.add_argument("file", metavar="FILE", help="the policy file, JSON or TOML")
    _add_explain(actions)
    revoking = actions.add("revoke", "forget a stored rule")
    revoking.add_argument("id", metavar="ID", help="the rule's id, as `policy list` shows it")


def run(options: argparse.Namespace) -> int:
    return import_module(f"{__name__}.{_MODULES[options.action]}").run(options)


def _add_explain(actions: Actions) -> None:
    parser = actions.add(
        "explain", "say what the rules would decide, and why, rule by rule", _EXAMPLES
    )
    parser.add_argument(
        "command",
        metavar="CMD ARGS",
        nargs="*",
        help="behind --: a command the agent would have us run",
    )
    what = parser.add_argument_group("what is about to happen")
    what.add_argument("--operation", choices=_OPERATIONS, help="of which kind it is")
    what.add_argument("--path", metavar="P", action="append", default=[], help="a path it touches")
    what.add_argument("--host", metavar="HOST", action="append", default=[], help="for fetch")
    what.add_argument("--tool", metavar="TOOL", help="for mcp and other")
    what.add_argument("--agent", metavar="NAME", default="", help="which agent wants it")
    what.add_argument(
        "--recording",
        metavar="FILE",
        help="instead: everything that was asked for in this recording; `dragoman --record FILE` "
        "makes one",
    )
    where = parser.add_argument_group("where, and under which rules")
    where.add_argument(
        "--cwd", metavar="DIR", help="the workspace (default: the current directory)"
    )
    where.add_argument(
        "--add-dir", metavar="DIR", action="append", default=[], help="one more root; repeatable"
    )
    where.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="FILE",
        help="rules beside the stored ones; repeatable",
    )
    for flag in ("write", "exec", "yolo"):
        where.add_argument(f"--{flag}", action="store_true", help=f"as `dragoman --{flag}`")
    where.add_argument("--json", action="store_true", help="as JSON")
