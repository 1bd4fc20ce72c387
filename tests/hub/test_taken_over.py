"""A session that another host has taken: its agent here stops, or is stopped, on either store."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from process.survivors import exists
from support.hosting import Place, hosting
from support.hubs import seen_until
from support.peers import SECONDS, soon
from support.postgres import empty_database

from dragoman import AgentCommand
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.session import events as e
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.serve import command

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, empty_database() if request.param == "postgresql" else None)


def deaf(folder: Path) -> AgentCommand:
    return command(f"{PROGRAMS}/agents.py:deaf", env={"STORE": str(folder / "agent")})


async def started(hub: Hub, cwd: Path, prompt: str) -> RunningSession:
    os.makedirs(cwd, exist_ok=True)
    live = await hub.create("it", str(cwd))
    await hub.send(live.id, c.Prompt(prompt))
    await seen_until(hub.watch(live.id), e.AgentMessage)
    return live


async def take(hub: Hub, live: RunningSession) -> None:
    """As another host does that has not heard of this one for long; and we come to know it."""
    hub.limits.cancel_seconds = 0.2
    await hub.store.acquire(live.id, this_process(), seconds=60, gone=lambda _: True)
    await hub.maintenance.renew()
    assert live.id not in hub.live
    await soon(hub.running.until_free(live.id))


async def test_an_agent_that_ignores_the_cancel_is_ended(place: Place) -> None:
    async with hosting(place, "one", {"it": deaf(place.folder)}) as hub:
        live = await started(hub, place.folder / "work", "writes")
        (pid,) = live.agent.client.pids
        await take(hub, live)
        assert live.agent.client.connection_error is not None
        written = (place.folder / "work" / "effects.txt").stat().st_size
        await gone(pid)
        assert (place.folder / "work" / "effects.txt").stat().st_size - written < 5


async def test_others_of_the_same_process_start_it_again(place: Place) -> None:
    async with hosting(place, "one", {"it": deaf(place.folder)}) as hub:
        other = await started(hub, place.folder / "other", "hello")
        live = await started(hub, place.folder / "work", "writes")
        assert other.agent is live.agent
        (pid,) = live.agent.client.pids
        await take(hub, live)
        await gone(pid)
        last = (await hub.record(other.id)).last_seq
        await soon(hub.send(other.id, c.Prompt("and again")))
        ended = (await seen_until(hub.watch(other.id, last), e.TurnEnded))[-1]
        assert isinstance(ended, e.TurnEnded)
        assert ended.stop_reason == "end_turn"
        assert other.agent.client.pids != [pid]


async def test_an_agent_that_stops_when_cancelled_is_left_alone(place: Place) -> None:
    async def obeys(turn: AgentTurn) -> None:
        turn.say("I wait")
        await turn.cancelled.wait()

    async with hosting(place, "one", {"it": ScriptedAgent(obeys)}) as hub:
        live = await started(hub, place.folder, "go")
        await take(hub, live)
        assert live.agent.client.connection_error is None


async def test_an_agent_that_stops_when_the_session_is_closed_is_left_alone(place: Place) -> None:
    async def stubborn(turn: AgentTurn) -> None:
        turn.say("I go on")
        turn.ignores_cancel = True
        while "session/close" not in dict(turn.agent.received):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    async with hosting(place, "one", {"it": ScriptedAgent(stubborn)}) as hub:
        live = await started(hub, place.folder, "go")
        await take(hub, live)
        assert live.agent.client.connection_error is None


async def gone(pid: int) -> None:
    async with asyncio.timeout(SECONDS):
        while exists(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
