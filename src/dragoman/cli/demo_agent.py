"""`dragoman demo-agent`: the agent that `-a demo` talks to, for any other client."""

from __future__ import annotations

import argparse

_EXAMPLES = """\
examples:
  dragoman --agent-command 'dragoman demo-agent' "hello"

It has no model behind it and says so: it shows what an agent can do, and needs
no account."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.serving import serve
    from dragoman.testing.demo.agent import DemoAgent

    return serve(DemoAgent().serve_stdio, "dragoman -a demo")
