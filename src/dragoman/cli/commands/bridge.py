"""`dragoman bridge`: offers an agent on this machine to clients that cannot start it themselves."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from dragoman.cli.options import (
    AGENT_HELP,
    add_optional,
    add_proxy_option,
    add_server_folder_option,
    add_settings_option,
    count,
)
from dragoman.cli.server_address import add_address_options, address_of, announce
from dragoman.cli.server_log import Lines, keep_journal

if TYPE_CHECKING:
    from dragoman.transport.transport import Start

_MOST = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    add_optional(which.add_argument, "agent", "AGENT", AGENT_HELP)
    which.add_argument(
        "--agent-command", metavar="'CMD ARGS'", help="run this command as the agent instead"
    )
    add_proxy_option(parser.add_argument)
    add_settings_option(parser.add_argument)
    add_server_folder_option(parser.add_argument, "directory to start the agent in")
    parser.add_argument(
        "--stdio",
        action="store_true",
        help="serve one client over standard input and output instead of a network address, as in "
        "`ssh HOST dragoman bridge AGENT --stdio`",
    )
    where = add_address_options(parser)
    where.add_argument(
        "--max-connections",
        metavar="N",
        type=count,
        default=_MOST,
        help="maximum number of simultaneous connections; each gets its own agent process "
        f"(default: {_MOST})",
    )


def run(options: argparse.Namespace) -> int:
    start = _start(options)
    with Lines(sys.stderr.fileno()) as log:
        keep_journal(log, debug=options.debug)
        return _relay(start) if options.stdio else _serve(options, start, log)


def _serve(options: argparse.Namespace, start: Start, log: Lines) -> int:
    address = address_of(options)
    from dragoman.bridge.bridge_server import BridgeOptions, serve

    settings = BridgeOptions(start=start, limit=options.max_connections, **address)
    serve(settings, announce, log)
    return 0


def _start(options: argparse.Namespace) -> Start:
    """How to start the agent and its proxies."""
    from dragoman.cli.run.agent_setup import choose_agent, folder
    from dragoman.hub.running.settings_launcher import run_in
    from dragoman.transport.target import way_to

    cwd = folder("--cwd", options.cwd)
    choice = choose_agent(options)
    proxies = [run_in(proxy, cwd) for proxy in choice.agent.proxies]
    return way_to(run_in(choice.command, cwd), proxies)


def _relay(start: Start) -> int:
    """Relay until the agent ends; its last output becomes our error message."""
    import asyncio

    from dragoman.bridge.agent_processes import relay

    ended = asyncio.run(relay(start))
    if ended is not None:
        raise ended
    return 0
