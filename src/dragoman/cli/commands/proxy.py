"""`dragoman proxy`: Dragoman as a proxy in a chain that another program conducts."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from dragoman.cli.exit_codes import tell
from dragoman.cli.options import add_policy_options

_EXAMPLES = """\
examples:
  dragoman proxy -a goose              record; your rules decide first
  dragoman proxy --policy rules.toml   the same with more rules

The conductor of a chain runs this command; there is nothing to type. What
passes through it is in `dragoman sessions` and on the page."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "-a",
        "--agent",
        metavar="NAME",
        help="name of the agent at the end of the chain, for rules and records (default: the name "
        "that the agent gives itself)",
    )
    add_policy_options(parser.add_argument_group("permissions"), "all sessions of this chain")


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.run.agent_setup import given_rules
    from dragoman.proxy.proxy_service import ProxyOptions, serve
    from dragoman.testing.agent_stdio import serve_stdio

    asked = ProxyOptions(agent=options.agent, rules=given_rules(options))
    if sys.stdin.isatty():
        tell("this proxy expects the conductor of a chain of ACP proxies on standard input")
    serve_stdio(partial(serve, asked))
    return 0
