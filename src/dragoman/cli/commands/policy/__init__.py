"""`dragoman policy`: lists, adds, revokes, explains and tests permission rules; shows fences."""

from __future__ import annotations

import argparse

from dragoman.cli.options import (
    AGENT_HELP,
    add_folder_options,
    add_json_option,
    add_repeatable,
    add_settings_option,
    age,
)
from dragoman.cli.parsers import Actions, run_action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dragoman.cli.options import AddArgument

# As in `host.rules.access`, which would cost more to import than the rest of the help.
_OPERATIONS = ("read", "write", "execute", "fetch", "mcp", "other")

_EXAMPLES = """\
  dragoman policy explain --operation write --path src/app.py --write
  dragoman policy explain --policy rules.json -- git push --force
  dragoman policy explain -- 'make && ./run'     one argument: a shell command
  dragoman policy explain --exit-code -- make deploy && make deploy
  dragoman policy explain --recording recording.jsonl --policy rules.json

Nothing is opened or executed. Rules judge what a request names; what an agent
really does may differ, and only a fence limits that (--fenced)."""

_ADDING = """\
  dragoman policy add --allow --operation write --path 'src/**'
  dragoman policy add --allow --prefix -- git status
  dragoman policy add --deny --scope user --prefix -- git push
  dragoman policy add --ask --operation fetch --host '*.org' --expires 7d

Deny beats ask, and ask beats allow. `policy revoke ID` deletes the rule."""

_TESTING = """\
  dragoman policy test cases.toml --policy rules.toml

A case is a request and what is expected:
  [[cases]]
  expect = "deny"
  command = "git push --force"

  [[cases]]
  expect = "allow"
  operation = "write"
  path = "src/app.py"

Exit codes: 0 all as expected, 1 a case differs, 2 a file is invalid."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__, stored=True)
    listing = actions.add("list", "list the stored rules", module="rules")
    add_json_option(listing.add_argument)
    listing.add_argument("--names", action="store_true", help="print only the ids, one per line")
    checking = actions.add("check", "check a policy file", module="rules")
    checking.add_argument("file", metavar="FILE", help="policy file, JSON or TOML")
    _add_add(actions)
    _add_explain(actions)
    _add_test(actions)
    fencing = actions.add(
        "fence", "show the fence that would be built around an agent", module="fence_floor"
    )
    which = fencing.add_mutually_exclusive_group()
    which.add_argument("-a", "--agent", metavar="NAME", help=AGENT_HELP)
    which.add_argument("--agent-command", metavar="'CMD ARGS'", help="the agent's command line")
    add_settings_option(fencing.add_argument)
    add_folder_options(fencing.add_argument)
    add_json_option(fencing.add_argument, "print the fence as JSON")
    trusting = actions.add(
        "trust", "trust the rules in .dragoman/policy.toml as they are now, so that they apply"
    )
    trusting.add_argument("--cwd", metavar="DIR", help="project (default: the current directory)")
    revoking = actions.add("revoke", "delete a stored rule", module="rules", alias="remove")
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
    add_repeatable(
        what.add_argument, "--path", "P", "path that the operation affects", dest="paths"
    )
    add_repeatable(what.add_argument, "--host", "HOST", "host to fetch from", dest="hosts")
    what.add_argument("--tool", metavar="TOOL", help="name of the tool, for mcp and other")
    what.add_argument("--agent", metavar="NAME", default="", help="agent that makes the request")
    what.add_argument(
        "--recording",
        metavar="FILE",
        help="explain every request in this recording instead; `dragoman --record FILE` makes one",
    )
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 0 if it is allowed, 10 if you would be asked, 11 if it is denied",
    )
    where = parser.add_argument_group("workspace and rules")
    add_folder_options(where.add_argument)
    text = "file of permission rules in addition to the stored ones"
    add_repeatable(where.add_argument, "--policy", "FILE", text)
    _add_flags(where.add_argument)
    where.add_argument(
        "--fenced",
        action="store_true",
        help="also say what the kernel would allow an agent in a fence",
    )
    add_json_option(where.add_argument, "print the explanation as JSON")


def _add_flags(add: AddArgument) -> None:
    for flag in ("write", "exec", "yolo"):
        add(f"--{flag}", action="store_true", help=f"assume `dragoman --{flag}`")


def _add_add(actions: Actions) -> None:
    parser = actions.add("add", "store a permission rule", _ADDING)
    parser.add_argument(
        "command", metavar="CMD ARGS", nargs="*", help="the command that the rule names, after --"
    )
    effects = parser.add_mutually_exclusive_group(required=True)
    for effect, text in (
        ("allow", "allow it without asking"),
        ("ask", "ask each time, even if a flag or another rule allows it"),
        ("deny", "refuse it"),
    ):
        effects.add_argument(
            f"--{effect}", dest="effect", action="store_const", const=effect, help=text
        )
    what = parser.add_argument_group("what the rule is about")
    what.add_argument("--operation", choices=_OPERATIONS, help="the operation (default: any)")
    what.add_argument("--path", metavar="GLOB", help="files, absolute or relative to the workspace")
    what.add_argument(
        "--prefix",
        action="store_true",
        help="the rule also covers the command with further arguments",
    )
    what.add_argument("--in", dest="folder", metavar="GLOB", help="folder that a command runs in")
    what.add_argument("--host", metavar="GLOB", help="host to fetch from")
    what.add_argument("--tool", metavar="GLOB", help="name of the tool, for mcp and other")
    what.add_argument("--agent", metavar="GLOB", help="agent that makes the request (default: any)")
    where = parser.add_argument_group("where and how long it applies")
    where.add_argument(
        "--scope",
        choices=("project", "user"),
        default="project",
        help="this project, or all of your projects (default: project)",
    )
    where.add_argument("--cwd", metavar="DIR", help="the project (default: the current directory)")
    where.add_argument(
        "--expires", metavar="AGE", type=age, help="how long it applies, such as 8h, 7d or 2w"
    )
    add_json_option(where.add_argument, "print the rule as JSON")


def _add_test(actions: Actions) -> None:
    parser = actions.add(
        "test",
        "check that policy files decide each case in a file as expected",
        _TESTING,
        module="cases",
    )
    parser.add_argument("file", metavar="FILE", help="file of cases, JSON or TOML")
    where = parser.add_argument_group("workspace and rules")
    add_folder_options(where.add_argument)
    text = "file of permission rules to test; stored rules are ignored"
    add_repeatable(where.add_argument, "--policy", "FILE", text)
    _add_flags(where.add_argument)
    add_json_option(where.add_argument)
