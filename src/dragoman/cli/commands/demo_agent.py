"""`dragoman demo-agent`: runs the agent of `-a demo` for any other ACP client."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from dragoman.cli.exit_codes import tell

_EXAMPLES = """\
examples:
  dragoman --agent-command 'dragoman demo-agent' "hello"

The demo agent is a script without a model. It shows what an agent can do, and
needs no account."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES


def run(options: argparse.Namespace) -> int:
    from dragoman.testing.demo.demo_agent import DemoAgent

    return serve(DemoAgent().serve_stdio, "dragoman -a demo")


def serve(agent: Callable[[], None], how: str) -> int:
    """Run `agent` until its input ends; `how` is the command that talks to it."""
    if sys.stdin.isatty():
        tell(f"this agent expects an ACP client on standard input; to talk to it, run: {how}")
    agent()
    return 0
