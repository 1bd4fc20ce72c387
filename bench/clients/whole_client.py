"""Our column with everything on: `dragoman.Client`, a tap, the fold, and a reader of the turn."""

from __future__ import annotations

import asyncio
import sys
from typing import Literal

import dragoman
from bench.clients.gauge import Gauge
from dragoman.events import AgentMessage, AgentThought, ToolCallUpdated


async def main(command: str, *args: str) -> None:
    gauge, tapped = Gauge(), 0

    def tap(direction: Literal["sent", "received"], frame: bytes) -> None:
        nonlocal tapped
        tapped += len(frame)

    agent = dragoman.AgentCommand(command, args)
    async with dragoman.Client.start(agent, tap=tap) as client:
        session = await client.new_session("/")
        turn = session.prompt("go")
        gauge.start()
        async for event in turn:
            match event:
                case AgentMessage() | AgentThought() | ToolCallUpdated():
                    gauge.saw(len(event.text))
                case _:
                    pass
        gauge.stop()


asyncio.run(main(*sys.argv[1:]))
