"""`dragoman cancel`: stops a session's turn, or a part of it, wherever it is running."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.options import SESSION_HELP

if TYPE_CHECKING:
    from dragoman.hub.cluster import commands as c

_PARTS = {
    "--tool-call": "stop only this tool call and continue the turn",
    "--terminal": "stop the command in this terminal of the agent",
    "--subagent": "stop only this subagent and those it started",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help=SESSION_HELP)
    part = parser.add_mutually_exclusive_group()
    for name, effect in _PARTS.items():
        part.add_argument(name, metavar="ID", help=f"{effect}, if the agent supports that")


def run(options: argparse.Namespace) -> int:
    import asyncio

    asyncio.run(_cancel(options))
    return 0


async def _cancel(options: argparse.Namespace) -> None:
    from dragoman.cli.run.hub_access import opened_session

    async with opened_session(options) as (hub, record):
        reply = await hub.send(record.id, _command(options))
    print("cancelled" if reply.get("cancelled") else _nothing_to_stop(options, record.id))


def _command(options: argparse.Namespace) -> c.Command:
    from dragoman.hub.cluster import commands as c

    if options.tool_call is not None:
        return c.CancelToolCall(options.tool_call)
    if options.terminal is not None:
        return c.CancelTerminal(options.terminal)
    if options.subagent is not None:
        return c.CancelSubagent(options.subagent)
    return c.Cancel()


def _nothing_to_stop(options: argparse.Namespace, session_id: str) -> str:
    part = options.tool_call or options.terminal or options.subagent
    return f"session {session_id} is not running" if part is None else f"{part} is not running"
