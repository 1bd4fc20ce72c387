"""One process for several sessions: what one of them loses costs the others as little as can be."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import cast

import pytest
from process.survivors import exists
from support.clients import until
from support.hubs import hub_with, seen_until, stored_events
from support.peers import soon

from dragoman import AgentCommand, Client, Timeouts
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.running import agent_pool
from dragoman.hub.running.agent_pool import PooledAgent
from dragoman.hub.running.running_session import RunningSession
from dragoman.session import events as e
from dragoman.testing import AgentTurn, ScriptedAgent

IMPATIENT = Timeouts(cancel=2.0)


def shared_agent(folder: Path, name: str = "shared") -> AgentCommand:
    program = Path(__file__).parent / "programs" / "agents.py"
    return ScriptedAgent.command(f"{program}:{name}", env={"STORE": str(folder)})


async def asked(hub: Hub, text: str, folder: Path) -> RunningSession:
    """A session with one turn that waits or runs, or is over."""
    live = await hub.create("it", str(folder))
    await hub.send(live.id, c.Prompt(text))
    if text == "asks":
        await until(lambda: live.state.pending)
    elif text == "yes":
        await until(lambda: live.idle)
    else:
        await until(lambda: live.state.turn)
    return live


async def test_a_kill_names_whoever_would_lose_by_it_and_does_nothing(tmp_path: Path) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path)) as hub:
        stuck = await asked(hub, "stubborn", tmp_path)
        waiting = [await asked(hub, "asks", tmp_path) for _ in range(3)]
        await asked(hub, "yes", tmp_path)  # loses nothing, and is not named
        reply = await hub.send(stuck.id, c.Kill())
        assert [each["id"] for each in reply["others"]] == [live.id for live in waiting]
        assert {each["status"] for each in reply["others"]} == {"waiting"}
        assert {each["title"] for each in reply["others"]} == {"asks"}
        assert stuck.session.busy
        assert all(live.state.pending for live in waiting)


async def test_idle_sessions_are_neither_named_nor_told(tmp_path: Path) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path)) as hub:
        idle = await asked(hub, "yes", tmp_path)
        stuck = await asked(hub, "stubborn", tmp_path)
        assert await hub.send(stuck.id, c.Kill()) == {}
        await until(lambda: stuck.idle)
        assert stuck.state.turns[-1].error == "the agent was stopped on request"
        kinds = [type(event) for event in await stored_events(hub, idle.id)]
        assert e.Notice not in kinds
        after = idle.record.last_seq
        await hub.send(idle.id, c.Prompt("yes"))
        await seen_until(hub.watch(idle.id, after), e.TurnEnded)
        assert idle.state.turns[-1].status == "completed"


async def test_a_forced_kill_fails_the_turns_of_others_and_they_can_go_on(tmp_path: Path) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path)) as hub:
        stuck = await asked(hub, "stubborn", tmp_path)
        waiting = await asked(hub, "asks", tmp_path)
        await hub.send(stuck.id, c.Kill(force=True))
        for live in (stuck, waiting):
            await until(lambda live=live: live.idle)
            assert live.state.turns[-1].error == "the agent was stopped on request"
            assert not live.state.pending
            await hub.send(live.id, c.Prompt("yes"))
            await until(lambda live=live: live.idle)
            assert live.state.turns[-1].status == "completed"


async def test_only_the_session_ends_where_the_agent_can_close_it(tmp_path: Path) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path, "closes")) as hub:
        stuck = await asked(hub, "closable", tmp_path)
        waiting = await asked(hub, "asks", tmp_path)
        await hub.send(stuck.id, c.Prompt("queued"))
        assert await hub.send(stuck.id, c.Kill()) == {}
        assert waiting.state.pending
        assert stuck.idle
        cancelled, unsent = stuck.state.turns
        assert cancelled.status == "cancelled"
        assert unsent.error == ("the prompt was not sent: the session was closed in the agent")
        await hub.send(stuck.id, c.Prompt("yes"))
        await until(lambda: stuck.idle)
        assert stuck.state.turns[-1].status == "completed"
        opened = [x for x in await stored_events(hub, stuck.id) if isinstance(x, e.SessionOpened)]
        assert [event.continuity for event in opened] == ["new", "continued"]


@pytest.mark.parametrize("way", ["close", "delete"])
async def test_an_agent_that_goes_on_without_a_session_is_ended(tmp_path: Path, way: str) -> None:
    """It has no turn that could be cancelled."""
    at_work: list[asyncio.Task[None]] = []

    async def works_on(turn: AgentTurn) -> None:
        async def without_end() -> None:
            while True:
                turn.say("x")
                await asyncio.sleep(0)

        at_work.append(asyncio.create_task(without_end()))

    at_once = HubLimits(stray_seconds=0)
    async with hub_with(tmp_path, ScriptedAgent(works_on), limits=at_once) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go"))
        await until(lambda: live.idle)
        [client] = hub.clients("it")
        await (hub.delete(live.id) if way == "delete" else hub.send(live.id, c.Close()))
        for _ in range(agent_pool._LOOKS):  # pyright: ignore[reportPrivateUsage]
            heard = client.strays
            await until(lambda heard=heard: client.strays > heard or not hub.clients("it"))
            await hub.maintenance.detach_idle()
        assert not hub.clients("it")
        at_work[0].cancel()


class Sender:
    """Of a client, what it has heard from an agent that has no session."""

    strays = 0

    def read_at(self, pace: object) -> None:
        pass


def test_an_agent_without_a_session_has_a_while_to_come_to_rest() -> None:
    now, client = 100.0, Sender()
    running = PooledAgent(cast("Client", client), lambda: None, lambda: now)

    def looked(seconds: float, *, sends: bool) -> bool:
        nonlocal now
        now += seconds
        client.strays += sends
        return running.goes_on(10)

    assert not any(looked(1, sends=True) for _ in range(9))
    assert looked(1, sends=True)
    assert not looked(1, sends=False)
    assert not any(looked(1, sends=True) for _ in range(9))
    running.reset_idle()
    assert not looked(60, sends=True)  # what was on its way
    assert not looked(1, sends=False)
    assert not any(looked(1, sends=True) for _ in range(9))
    assert looked(1, sends=True)
    assert HubLimits().stray_seconds == 10


async def test_an_agent_that_is_quiet_without_a_session_is_kept(tmp_path: Path) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path)) as hub:
        live = await asked(hub, "yes", tmp_path)
        await hub.send(live.id, c.Close())
        for _ in range(10):
            await hub.maintenance.detach_idle()
        assert hub.clients("it")


@pytest.mark.parametrize("name", ["shared", "closes"])
async def test_a_session_that_is_closed_leaves_no_agent_at_work(tmp_path: Path, name: str) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path, name), timeouts=IMPATIENT) as hub:
        idle = await asked(hub, "yes", tmp_path)
        stuck = await asked(hub, "stubborn", tmp_path)
        pids = stuck.agent.client.pids
        await soon(hub.send(stuck.id, c.Close()))
        assert (await hub.record(stuck.id)).status == "closed"
        await until(lambda: not any(map(exists, pids)))
        await hub.send(idle.id, c.Prompt("yes"))
        await until(lambda: idle.idle and len(idle.state.turns) == 2)
        assert idle.state.turns[-1].status == "completed"


async def test_sessions_that_would_lose_by_it_keep_their_process_and_are_its_last(
    tmp_path: Path,
) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path), timeouts=IMPATIENT) as hub:
        stuck = await asked(hub, "stubborn", tmp_path)
        waiting = await asked(hub, "asks", tmp_path)
        pids = stuck.agent.client.pids
        await soon(hub.send(stuck.id, c.Close()))
        assert waiting.state.pending
        assert all(map(exists, pids))
        later = await asked(hub, "yes", tmp_path)
        assert later.agent is not waiting.agent
        await soon(hub.send(waiting.id, c.Close()))
        await until(lambda: not any(map(exists, pids)))
        assert later.agent.client.connection_error is None


async def test_an_agent_that_stops_is_left_alone_when_its_session_is_closed(tmp_path: Path) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path, "closes"), timeouts=IMPATIENT) as hub:
        for text in ("closable", "asks", "yes"):
            live = await asked(hub, text, tmp_path)
            await soon(hub.send(live.id, c.Close()))
            assert live.agent.client.connection_error is None


async def test_a_crash_leaves_idle_sessions_as_they_were(tmp_path: Path) -> None:
    async with hub_with(tmp_path, shared_agent(tmp_path)) as hub:
        idle = await asked(hub, "yes", tmp_path)
        waiting = await asked(hub, "asks", tmp_path)
        before = idle.record.last_seq
        os.kill(idle.agent.client.pids[-1], signal.SIGKILL)
        await until(lambda: waiting.idle)
        assert "SIGKILL" in str(waiting.state.turns[-1].error)
        assert idle.state.last_seq == before
        for live in (idle, waiting):
            await hub.send(live.id, c.Prompt("yes"))
            await until(lambda live=live: live.idle)
            assert live.state.turns[-1].status == "completed"
