"""`dragoman demo-agent`: the agent that `-a demo` talks to, for any other client."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from dragoman.cli.exit_codes import tell

_EXAMPLES = """\
examples:
  dragoman --agent-command 'dragoman demo-agent' "hello"

It has no model behind it and says so: it shows what an agent can do, and needs
no account."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES


def run(options: argparse.Namespace) -> int:
    from dragoman.testing.demo.demo_agent import DemoAgent

    return serve(DemoAgent().serve_stdio, "dragoman -a demo")


def serve(agent: Callable[[], None], how: str) -> int:
    """`agent` serves until its input ends; `how` is what one types to talk to it."""
    if sys.stdin.isatty():
        tell(f"an agent waits here for a client that speaks ACP; to talk to it, run: {how}")
    agent()
    return 0
