"""`dragoman bridge`: an agent of this machine, for clients that cannot start it themselves."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from dragoman.cli.exit_codes import UsageError
from dragoman.cli.options import add_proxy_option
from dragoman.cli.server.listen_options import add_address_options, check_address
from dragoman.cli.server.server_log import Lines, keep_journal

if TYPE_CHECKING:
    from dragoman.transport.base import Start

_MOST = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "agent",
        metavar="AGENT",
        nargs="?",
        help="an agent from the settings, else a known one (default: the first in the settings, "
        "else demo)",
    )
    which.add_argument("--agent-command", metavar="'CMD ARGS'", help="run this command instead")
    add_proxy_option(parser.add_argument)
    parser.add_argument("--settings", metavar="PATH", help="the settings file")
    parser.add_argument(
        "--cwd",
        metavar="DIR",
        default=".",
        help="start the agent in this folder (default: the current directory)",
    )
    parser.add_argument(
        "--stdio",
        action="store_true",
        help="serve one client on standard input and output, as `ssh HOST dragoman bridge AGENT "
        "--stdio` does; no address is opened",
    )
    where = add_address_options(parser)
    where.add_argument(
        "--max-connections",
        metavar="N",
        type=_count,
        default=_MOST,
        help=f"each has an agent process of its own (default: {_MOST})",
    )


def run(options: argparse.Namespace) -> int:
    start = _start(options)
    with Lines(sys.stderr.fileno()) as log:
        keep_journal(log, debug=options.debug)
        return _relay(start) if options.stdio else _serve(options, start, log)


def _serve(options: argparse.Namespace, start: Start, log: Lines) -> int:
    check_address(options)
    import_module("dragoman.bridge.runner").serve(
        _announce,
        log,
        start=start,
        host=options.host,
        port=options.port,
        token_file=options.token_file,
        origins=options.allow_origin,
        limit=options.max_connections,
    )
    return 0


def _start(options: argparse.Namespace) -> Start:
    """How to start the agent, and its proxies with it."""
    from dragoman.cli.run.agent_setup import choose_agent
    from dragoman.hub.launcher import run_in
    from dragoman.transport.target import way_to

    if not os.path.isdir(options.cwd):
        raise UsageError(f"--cwd {options.cwd}: there is no such directory")
    choice, folder = choose_agent(options), os.path.abspath(options.cwd)
    proxies = [run_in(proxy, folder) for proxy in choice.agent.proxies]
    return way_to(run_in(choice.command, folder), proxies)


def _relay(start: Start) -> int:
    """What the agent printed before it ended is told on standard error, by whoever runs us."""
    import asyncio

    ended = asyncio.run(import_module("dragoman.bridge.stdio_relay").relay(start))
    if ended is not None:
        raise ended
    return 0


def _announce(address: str) -> None:
    print(address, flush=True)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, not {text}")
    return int(text)
