"""`kill -9` of the owner in mid-turn: nothing acknowledged is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from process.survivors import descendants, lingers
from support.hubs import TestLauncher, seen_until, stored

from dragoman import Policy
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session import events as e
from dragoman.store.base import Store
from dragoman.testing import ScriptedAgent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

PROGRAMS = Path(__file__).parent / "programs"
SEED = 20
SECONDS = 60.0
"""How long anything is waited for: long, because only a failure takes that long."""


def agent(folder: Path) -> TestLauncher:
    command = ScriptedAgent.command(
        f"{PROGRAMS}/agents.py:busy", env={"STORE": str(folder / "agent")}
    )
    return TestLauncher({"busy": command}, policy=Policy(yolo=True))


def run_and_kill(folder: Path, after: int) -> tuple[str, int, set[int]]:
    """The session, the last event that a reader had seen, and what ran below the owner."""
    command = [sys.executable, str(PROGRAMS / "owner.py"), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            session_id = process.stdout.readline().removeprefix("session ").strip()
            seen = 0
            while seen < after:
                seen = int(process.stdout.readline().removeprefix("seen "))
            below = descendants(process.pid)
        finally:
            process.send_signal(signal.SIGKILL)
        rest = [line for line in process.stdout.read().split("\n")[:-1] if line]
    last = max([seen, *(int(line.removeprefix("seen ")) for line in rest)])
    return session_id, last, below


async def check(folder: Path, after: int) -> None:
    session_id, seen, below = run_and_kill(folder, after)
    async with stored(folder) as store:
        stored_then = await store.events(session_id, limit=100_000)
        assert [event.seq for event in stored_then] == list(range(1, len(stored_then) + 1))
        assert len(stored_then) >= seen
        await go_on(store, folder, session_id)
        events = [each.decode() for each in await store.events(session_id, limit=100_000)]
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        started = [event.turn_id for event in events if isinstance(event, e.TurnStarted)]
        ended = [event.turn_id for event in events if isinstance(event, e.TurnEnded)]
        assert ended == started
    effects = (folder / "effects.txt").read_text().splitlines()
    assert len(effects) == len(set(effects))
    deadline = time.monotonic() + SECONDS
    while left := {pid for pid in below if lingers(pid)}:
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.02)


async def go_on(store: Store, folder: Path, session_id: str) -> None:
    """What the next process does: put it right, and continue."""
    async with Hub(store, agent(folder)) as hub:
        await hub.maintenance.recover()
        state = await stored_state(store, session_id)
        assert state.turn is None
        for prompt in state.queue:
            await hub.send(session_id, c.DropQueued(prompt.id))
        after = (await hub.record(session_id)).last_seq
        await hub.send(session_id, c.Prompt("the last"))
        await seen_until(hub.watch(session_id, after), e.TurnEnded)


async def test_the_owner_is_killed_in_mid_turn(tmp_path: Path) -> None:
    await check_many(tmp_path, 4)


@pytest.mark.soak
@pytest.mark.within(900)
async def test_the_owner_is_killed_in_mid_turn_sixty_times(tmp_path: Path) -> None:
    await check_many(tmp_path, 60)


async def check_many(folder: Path, times: int) -> None:
    dice = random.Random(SEED)
    for number in range(times):
        place = folder / str(number)
        place.mkdir()
        await check(place, dice.randrange(1, 120))
