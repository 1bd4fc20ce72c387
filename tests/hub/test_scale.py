"""Many sessions at once, and readers that come and go: within time and memory, and exact."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from store.stores import begin, record
from support.hubs import TestLauncher, hub_with, seen_until, stored

from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.event_recorder import EventRecorder
from dragoman.hub.stored.event_readers import News, watch_session
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.testing import AgentTurn, ScriptedAgent

UPDATES = 20
PROGRAMS = Path(__file__).parent / "programs"


async def test_many_sessions_share_their_agents(tmp_path: Path) -> None:
    await run_sessions(tmp_path, sessions=30, agents=3)


@pytest.mark.soak
def test_five_hundred_sessions_on_ten_agents(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAMS / "many_sessions.py"), str(tmp_path), "500", "10"]
    environ = os.environ | {"PYTHONPATH": str(PROGRAMS.parent.parent)}
    before = time.monotonic()
    done = subprocess.run(command, env=environ, check=True, timeout=120, stdout=subprocess.PIPE)
    assert time.monotonic() - before <= 30
    assert int(done.stdout) <= 300 * 1024


async def run_sessions(folder: Path, *, sessions: int, agents: int) -> None:
    command = ScriptedAgent.command(f"{PROGRAMS}/agents.py:talks")
    launcher = TestLauncher({f"agent-{number}": command for number in range(agents)})
    async with stored(folder) as store, Hub(store, launcher) as hub:
        names = [f"agent-{number % agents}" for number in range(sessions)]
        lives = await asyncio.gather(*(hub.create(name, str(folder)) for name in names))
        await asyncio.gather(*(hub.send(live.id, c.Prompt("go on")) for live in lives))
        for live in lives:
            seen = await seen_until(hub.watch(live.id), e.TurnEnded)
            told = [event for event in seen if isinstance(event, e.AgentMessage)]
            assert len(told) == UPDATES
        assert len(launcher.started) == agents


async def test_readers_that_come_and_go_see_the_exact_log(tmp_path: Path) -> None:
    await read_in_bits(tmp_path, readers=20, updates=500)


@pytest.mark.soak
@pytest.mark.within(300)
async def test_two_hundred_readers_of_five_thousand_events_see_the_exact_log(
    tmp_path: Path,
) -> None:
    await read_in_bits(tmp_path, readers=200, updates=5_000)


async def read_in_bits(folder: Path, *, readers: int, updates: int) -> None:
    """Each reader leaves at random and comes back with its cursor."""
    dice = random.Random(7)

    async def talks(turn: AgentTurn) -> None:
        for number in range(updates):
            turn.say(f"{number} ")
            if number % 50 == 0:
                await asyncio.sleep(0)

    async with hub_with(folder, ScriptedAgent(talks)) as hub:
        live = await hub.create("it", str(folder))
        reading = [
            asyncio.create_task(_read(hub, live.id, dice.randrange(1, 40))) for _ in range(readers)
        ]
        await hub.send(live.id, c.Prompt("go on"))
        logs = await asyncio.gather(*reading)
        stored_events: list[int] = []
        while more := await hub.store.events(live.id, after=len(stored_events)):
            stored_events += [event.seq for event in more]
        assert stored_events == list(range(1, len(stored_events) + 1))
        ended = len(stored_events)
        assert all(log == list(range(1, ended + 1)) for log in logs)


async def test_readers_that_stall_cost_next_to_nothing(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        lease, news = await begin(store), News()
        recording = EventRecorder(store, record(), lease, on_stored=news.tell)
        readers = [watch_session(store, news, "s", 0, lambda: recording.tail) for _ in range(20)]
        await tell(recording, 1, 100)
        seen = [[event.seq for event in await anext(reader)] for reader in readers]
        tracemalloc.start()
        await tell(recording, 101, 4_000)
        grown = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert grown <= 16 * 1024 * 1024
        # And the one that goes on sees all of it.
        while seen[0][-1] < 4_100:
            seen[0] += [event.seq for event in await anext(readers[0])]
        assert seen[0] == list(range(1, 4_101))


async def tell(recording: EventRecorder, first: int, count: int) -> None:
    """10 kB with each event."""
    for seq in range(first, first + count):
        recording.take([e.AgentMessage(Text("x" * 10_000), seq=seq)])
        if seq % 50 == 0:
            await recording.settled()
    await recording.settled()


async def _read(hub: Hub, session_id: str, pages: int) -> list[int]:
    seen: list[int] = []
    while True:
        left = pages
        async for page in hub.watch(session_id, seen[-1] if seen else 0):
            seen += [event.seq for event in page]
            if isinstance(page[-1].decode(), e.TurnEnded):
                return seen
            left -= 1
            if not left:
                break
