"""`dragoman acp`: Dragoman as an agent on standard input and output, for editors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from functools import partial

from dragoman.cli.commands.acp.editor_config import EDITORS
from dragoman.cli.options import add_permission_options, add_settings_option

_EXAMPLES = """\
examples:
  dragoman acp --print-config zed                  the entry for Zed's settings
  dragoman acp -a gemini                           new sessions run gemini
  dragoman bridge --agent-command 'dragoman acp'   the same over the network

An editor runs this command; there is nothing to type. It shares its sessions
with `dragoman sessions`, the page and all other windows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--print-config",
        metavar="EDITOR",
        choices=tuple(EDITORS),
        help=f"print the settings entry for an editor and exit: {', '.join(EDITORS)}",
    )
    sessions = parser.add_argument_group("sessions")
    sessions.add_argument(
        "-a",
        "--agent",
        metavar="NAME",
        help="agent for new sessions (default: the default agent; the editor can choose another "
        "one with the config option Agent)",
    )
    sessions.add_argument(
        "--on-close",
        metavar="WHAT",
        choices=("continue", "cancel"),
        default="continue",
        help="what happens to a running turn when the editor closes the session or exits: continue "
        "(the default) or cancel",
    )
    add_settings_option(sessions.add_argument)
    add_permission_options(parser, "all sessions of this editor")


def run(options: argparse.Namespace) -> int:
    if options.print_config is not None:
        print(EDITORS[options.print_config](_command(options)))
        return 0
    from dragoman.agents.settings.settings_file import agent_named, load_settings
    from dragoman.cli.commands.demo_agent import serve as serve_agent
    from dragoman.cli.run.agent_setup import given_rules, offer_of, typed_network, typed_rules
    from dragoman.cli.run.given_limits import limits_in
    from dragoman.editor.own_terms import OwnTerms
    from dragoman.editor.stdio_service import EditorOptions, serve
    from dragoman.testing.agent_stdio import serve_stdio

    settings = load_settings(options.settings)
    if options.agent is not None:
        agent_named(options.agent, settings)
    rules, limits = given_rules(options), limits_in(options.policy, settings.agents)
    alone = [*_alone(options), *(each.source for each in limits[:1])]
    asked = EditorOptions(
        agent=options.agent,
        settings=options.settings,
        rules=rules,
        offer=offer_of(options),
        limits=limits,
        terms=OwnTerms(rules=rules, typed=typed_rules(options), alone=alone),
        fence=options.fence,
        network=typed_network(options),
        on_close=options.on_close,
    )
    return serve_agent(partial(serve_stdio, partial(serve, asked)), "dragoman chat")


def _alone(options: argparse.Namespace) -> Iterator[str]:
    """Those that only the process that runs an agent can carry out, as they were typed."""
    for name in ("no_files", "no_terminals"):
        if getattr(options, name):
            yield f"--{name.replace('_', '-')}"
    for name in ("fence", "fence_network"):
        if getattr(options, name) is not None:
            yield f"--{name.replace('_', '-')}"


def _command(options: argparse.Namespace) -> list[str]:
    """This command as an editor should start it: by its full path, since an editor may have another
    PATH than a shell."""
    program = os.path.abspath(sys.argv[0])
    if os.path.basename(program) == "__main__.py":
        start = [sys.executable, "-m", "dragoman"]
    else:
        start = [program]
    return [*start, "acp", *_typed(options)]


def _typed(options: argparse.Namespace) -> Iterator[str]:
    """The options as they were typed, in an order of ours, with the full paths of files."""
    if options.agent is not None:
        yield from ("-a", options.agent)
    if options.settings is not None:
        yield from ("--settings", os.path.abspath(options.settings))
    if options.on_close != "continue":
        yield from ("--on-close", options.on_close)
    for name in ("no_files", "no_terminals", "write", "exec", "yolo"):
        if getattr(options, name):
            yield f"--{name.replace('_', '-')}"
    for path in options.policy:
        yield from ("--policy", os.path.abspath(path))
    for name in ("fence", "fence_network"):
        if (value := getattr(options, name)) is not None:
            yield f"--{name.replace('_', '-')}={value}"
