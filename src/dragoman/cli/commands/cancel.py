"""`dragoman cancel`: stops the turn of a session, or one part of it, wherever it runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.hub import commands as c


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        help="its id or the beginning of it, its name, or the agent's id",
    )
    part = parser.add_mutually_exclusive_group()
    part.add_argument(
        "--tool-call",
        metavar="ID",
        help="stop this tool call alone, where the agent offers it; the turn goes on",
    )
    part.add_argument(
        "--terminal",
        metavar="ID",
        help="stop what runs in this terminal of the agent's own, where it offers it",
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    asyncio.run(_cancel(options))
    return 0


async def _cancel(options: argparse.Namespace) -> None:
    from dragoman.cli.run.command_hub import meant, opened_hub

    async with opened_hub() as hub:
        record = await meant(hub.store, options)
        reply = await hub.send(record.id, _command(options))
    print("cancelled" if reply.get("cancelled") else _nothing_to_stop(options, record.id))


def _command(options: argparse.Namespace) -> c.Cancel | c.CancelToolCall | c.CancelTerminal:
    from dragoman.hub import commands as c

    if options.tool_call is not None:
        return c.CancelToolCall(options.tool_call)
    if options.terminal is not None:
        return c.CancelTerminal(options.terminal)
    return c.Cancel()


def _nothing_to_stop(options: argparse.Namespace, session_id: str) -> str:
    part = options.tool_call or options.terminal
    return f"nothing runs in session {session_id}" if part is None else f"{part} does not run"
