"""`dragoman policy`: lists, checks, explains and revokes permission rules."""

from __future__ import annotations

import argparse

from dragoman.cli.options import add_folder_options, add_json_option, add_repeatable
from dragoman.cli.parsers import Actions, run_action

# As in `host.rules.access`, which would cost more to import than the rest of the help.
_OPERATIONS = ("read", "write", "execute", "fetch", "mcp", "other")

_EXAMPLES = """\
  dragoman policy explain --operation write --path src/app.py --write
  dragoman policy explain --policy rules.json -- git push --force
  dragoman policy explain -- 'make && ./run'     one argument: a shell command
  dragoman policy explain --recording recording.jsonl --policy rules.json

This command does not access the paths or run the command."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__, stored=True)
    listing = actions.add("list", 'list the rules created by your "always" answers', module="rules")
    add_json_option(listing.add_argument)
    listing.add_argument("--names", action="store_true", help="print only the ids, one per line")
    checking = actions.add("check", "check a policy file", module="rules")
    checking.add_argument("file", metavar="FILE", help="policy file, JSON or TOML")
    _add_explain(actions)
    revoking = actions.add("revoke", "delete a stored rule", module="rules")
    revoking.add_argument("id", metavar="ID", help="rule id, as printed by `policy list`")


run = run_action


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
    add_repeatable(what.add_argument, "--path", "P", "path that the operation affects")
    add_repeatable(what.add_argument, "--host", "HOST", "host to fetch from")
    what.add_argument("--tool", metavar="TOOL", help="name of the tool, for mcp and other")
    what.add_argument("--agent", metavar="NAME", default="", help="agent that makes the request")
    what.add_argument(
        "--recording",
        metavar="FILE",
        help="explain every request in this recording instead; `dragoman --record FILE` makes one",
    )
    where = parser.add_argument_group("workspace and rules")
    add_folder_options(where.add_argument)
    text = "file of permission rules in addition to the stored ones"
    add_repeatable(where.add_argument, "--policy", "FILE", text)
    for flag in ("write", "exec", "yolo"):
        where.add_argument(f"--{flag}", action="store_true", help=f"assume `dragoman --{flag}`")
    add_json_option(where.add_argument, "print the explanation as JSON")
