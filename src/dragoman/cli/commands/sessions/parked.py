"""`dragoman sessions continue`, `drop` and `hand-over`: a prompt that waits for a limit to end."""

from __future__ import annotations

import argparse
import asyncio

from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.run.hub_access import opened_session
from dragoman.errors import CommandRefused
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub


def run(options: argparse.Namespace) -> int:
    asyncio.run(_act(options))
    return 0


async def _act(options: argparse.Namespace) -> None:
    async with opened_session(options) as (hub, record):
        if (await hub.state(record.id)).parked is None:
            raise UsageError(f"no prompt is parked in session {record.id}")
        match options.action:
            case "drop":
                await hub.send(record.id, c.DropParked())
            case "continue":
                await _continue(hub, record.id, now=not options.wait)
            case _:
                await _hand_over(hub, record.id, options.to)


async def _continue(hub: Hub, session_id: str, *, now: bool) -> None:
    try:
        await hub.send(session_id, c.ContinueParked(now), opens=False)
    except CommandRefused as error:
        if error.code != "owner_gone":
            raise
        await hub.parked.schedule(session_id, now=now)
        tell(
            f"no process runs session {session_id}: `dragoman serve` sends the prompt, when it runs"
        )


async def _hand_over(hub: Hub, session_id: str, agent: str) -> None:
    try:
        print(await hub.parked.hand_over(session_id, agent))
    except CommandRefused as error:
        if error.code != "host_gone":
            raise
        raise UsageError(
            f"{error}: start one, or drop the prompt and give it to {agent}"
        ) from error
