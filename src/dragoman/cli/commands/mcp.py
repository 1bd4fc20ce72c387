"""`dragoman mcp`: an MCP server with which agents and programs start other agents."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.options import add_permission_options, add_repeatable, add_settings_option

_EXAMPLES = """\
examples:
  {"mcpServers": {"dragoman": {"command": "dragoman", "args": ["mcp"]}}}
      in the settings of Dragoman, or of any program that speaks MCP

The program that uses it runs this command; there is nothing to type. Started by
an agent of Dragoman, it has that session's rules, folders and limits, and what
it starts has no more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    sessions = parser.add_argument_group("sessions")
    sessions.add_argument(
        "-a",
        "--agent",
        metavar="NAME",
        action="append",
        default=[],
        help="an agent that may be started; repeatable (default: all)",
    )
    sessions.add_argument(
        "--cwd", metavar="DIR", help="the folder to work in (default: the current directory)"
    )
    add_repeatable(sessions.add_argument, "--add-dir", "DIR", "another folder to work in")
    sessions.add_argument(
        "--max-sessions",
        metavar="NUMBER",
        type=int,
        default=8,
        help="how many sessions may be started (default: 8)",
    )
    sessions.add_argument(
        "--on-ask",
        metavar="WHAT",
        choices=("reject", "wait"),
        default="reject",
        help="what happens to requests that no rule decides: reject (the default), or wait for an "
        "answer from a person at the page or in another terminal",
    )
    add_settings_option(sessions.add_argument)
    add_permission_options(parser, "all sessions that are started")


def run(options: argparse.Namespace) -> int:
    from dragoman.agents.settings.settings_file import agent_named, load_settings
    from dragoman.cli.run.agent_setup import given_rules, offer_of, typed_network
    from dragoman.cli.run.given_limits import limits_in
    from dragoman.hub.running.caller import caller_here
    from dragoman.mcp.mcp_service import McpOptions, serve
    from dragoman.testing.agent_stdio import serve_stdio

    settings = load_settings(options.settings)
    for name in options.agent:
        agent_named(name, settings)
    if options.max_sessions < 1:
        raise UsageError("--max-sessions has to be at least 1")
    asked = McpOptions(
        folders=[_folder(each) for each in (options.cwd or ".", *options.add_dir)],
        agents=options.agent,
        most_sessions=options.max_sessions,
        settings=options.settings,
        rules=given_rules(options),
        limits=tuple(limits_in(options.policy, settings.agents)),
        offer=offer_of(options),
        fence=options.fence,
        network=typed_network(options),
        waits=options.on_ask == "wait",
        caller=caller_here(),
    )
    if sys.stdin.isatty():
        tell("this is an MCP server: the program that uses it runs this command")
    serve_stdio(partial(serve, asked))
    return 0


def _folder(path: str) -> str:
    folder = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{path} is not a folder")
    return folder
