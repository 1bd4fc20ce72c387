"""Watches so many pieces of text for limits, as a session does, and prints what it cost."""

from __future__ import annotations

import asyncio
import sys

import dragoman
from bench.clients.gauge import Gauge
from dragoman.events import AgentMessage, Event
from dragoman.session.content import Text
from dragoman.testing import ScriptedAgent

_AT_ONCE = 20
"""Events of one read."""


async def main(count: int) -> None:
    limits = [dragoman.SpendingLimit(measure="cost", most=1)]
    transport = ScriptedAgent([]).connect()
    async with dragoman.Client.start(transport, limits=limits) as client:
        session = await client.new_session("/")
        watch, gauge = session.log.watch, Gauge()
        assert watch is not None
        read: list[Event] = [AgentMessage(Text("a few words ")) for _ in range(_AT_ONCE)]
        gauge.start()
        for _ in range(count // _AT_ONCE):
            watch(read)
        gauge.stop()


asyncio.run(main(int(sys.argv[1])))
