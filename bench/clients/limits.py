"""Watches so many updates for limits, as a session does, and prints what it cost: text, or with
`mix` all kinds that agents send, of which some count."""

from __future__ import annotations

import asyncio
import sys

import dragoman
from bench.clients.gauge import Gauge
from dragoman.events import (
    AgentMessage,
    Event,
    ToolCallUpdated,
    TurnStarted,
)
from dragoman.session.content import Text
from dragoman.testing import ScriptedAgent

_AT_ONCE = 20
"""Events of one read."""


def _read(scene: str) -> list[Event]:
    """What comes in one read; the mixture is that of the agent that the whole client is measured
    with."""
    text: list[Event] = [AgentMessage(Text("a few words ")) for _ in range(_AT_ONCE)]
    for at in (3, 13) if scene == "mix" else ():
        text[at] = ToolCallUpdated("call", title="Read a file", status="pending")
        text[at + 1] = ToolCallUpdated("call", status="in_progress")
        text[at + 2] = ToolCallUpdated("call", status="completed")
    return text


async def main(count: int, scene: str) -> None:
    limits = [dragoman.SpendingLimit(measure="cost", most=1)]
    transport = ScriptedAgent([]).connect()
    async with dragoman.Client.start(transport, limits=limits) as client:
        session = await client.new_session("/")
        watch, gauge = session.log.watch, Gauge()
        assert watch is not None
        read = _read(scene)
        watch([TurnStarted("turn", [Text("go")])])
        gauge.start()
        for _ in range(count // _AT_ONCE):
            watch(read)
        gauge.stop()


asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
