"""Steers to a session of a hub, from its own process or another: once, and on record first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from hub.test_two_windows import two_windows
from support.clients import until
from support.hubs import TestLauncher, hub_with, stored
from support.peers import soon

from dragoman.errors import CommandRefused
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session.state import SessionState, UserEntry
from dragoman.testing import AgentTurn, ScriptedAgent, faults
from dragoman.testing.scripted_agent import EVERYTHING

STEERABLE = msgspec.structs.replace(EVERYTHING, meta={"steering": {"supported": True}})


async def waits(turn: AgentTurn) -> None:
    if turn.text == "one":
        await turn.cancelled.wait()


def steerable(
    answer: object = {"outcome": "injected"},
    script: Callable[[AgentTurn], Awaitable[None]] = waits,
) -> ScriptedAgent:
    answers = {"_session/steering": answer}
    return ScriptedAgent(script, capabilities=STEERABLE, answers=answers)


def said(state: SessionState) -> list[tuple[str, str | None]]:
    return [(each.text, each.steer) for each in state.entries if isinstance(each, UserEntry)]


async def test_another_window_steers_once(tmp_path: Path) -> None:
    agent = steerable()
    async with two_windows(tmp_path, agent) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("one"))
        await until(lambda: live.session.running and live.session.running.sent)
        reply = await soon(other.send(live.id, c.SteerTurn("rather blue")))
        assert (reply["outcome"], reply["way"], reply["turn"]) == ("delivered", "steering", None)
        assert len([1 for method, _ in agent.received if method == "_session/steering"]) == 1
        assert said(await other.state(live.id)) == [("one", None), ("rather blue", "delivered")]


async def test_where_nothing_is_offered_the_reply_has_the_turn_it_becomes(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent(waits)) as hub:
        live = await hub.create("it", str(tmp_path))
        await soon(hub.send(live.id, c.Prompt("one")))
        reply = await soon(hub.send(live.id, c.SteerTurn("two")))
        assert (reply["outcome"], reply["way"]) == ("queued", "queue")
        await soon(hub.send(live.id, c.Cancel()))
        await until(lambda: live.idle)
        assert [turn.id for turn in live.state.turns][1:] == [reply["turn"]]


async def test_a_steer_counts_towards_the_limit_of_the_queue(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent(waits), limits=HubLimits(queued_prompts=1)) as hub:
        live = await hub.create("it", str(tmp_path))
        await soon(hub.send(live.id, c.Prompt("one")))
        await soon(hub.send(live.id, c.SteerTurn("two")))
        with pytest.raises(CommandRefused, match="the queue is full"):
            await soon(hub.send(live.id, c.SteerTurn("three")))


async def test_a_steer_that_the_agent_has_is_not_dropped(tmp_path: Path) -> None:
    async with hub_with(tmp_path, steerable(faults.NEVER)) as hub:
        live = await hub.create("it", str(tmp_path))
        await soon(hub.send(live.id, c.Prompt("one")))
        await until(lambda: live.session.running and live.session.running.sent)
        steering = live.session.spawn(_ignored(live.session.steer("two")))
        await until(lambda: live.state.queue and live.state.queue[0].steer == "sent")
        with pytest.raises(CommandRefused, match="already settled"):
            await soon(hub.send(live.id, c.DropQueued(live.state.queue[0].id)))
        steering.cancel()


async def test_a_steer_that_is_not_answered_holds_the_queue_for_a_moment_and_its_limit_holds(
    tmp_path: Path,
) -> None:
    ended, limits = asyncio.Event(), HubLimits(queued_prompts=2)

    async def until_ended(turn: AgentTurn) -> None:
        await ended.wait()

    agent = steerable(faults.NEVER, until_ended)
    async with hub_with(tmp_path, agent, limits=limits) as hub:
        live = await hub.create("it", str(tmp_path))
        await soon(hub.send(live.id, c.Prompt("one")))
        await until(lambda: live.session.running and live.session.running.sent)
        steering = live.session.spawn(_ignored(live.session.steer("two")))
        await until(lambda: any(m == "_session/steering" for m, _ in agent.received))
        ended.set()
        await until(lambda: not live.session.busy)
        await soon(hub.send(live.id, c.Prompt("three")))
        with pytest.raises(CommandRefused, match="the queue is full"):
            await soon(hub.send(live.id, c.Prompt("four")))
        await soon(steering)  # long before the request itself is given up
        await until(lambda: live.idle)
        assert said(live.state) == [("one", None), ("two", "unsure"), ("three", None)]


async def test_a_steer_of_a_dead_owner_is_kept_and_not_repeated(tmp_path: Path) -> None:
    agent = steerable(faults.NEVER)
    launcher = TestLauncher({"it": agent})
    async with stored(tmp_path) as store:
        hub = Hub(store, launcher)
        await hub.__aenter__()
        live = await hub.create("it", str(tmp_path))
        await soon(hub.send(live.id, c.Prompt("one")))
        await until(lambda: live.session.running and live.session.running.sent)
        steering = live.session.spawn(_ignored(live.session.steer("rather blue")))
        await until(lambda: any(m == "_session/steering" for m, _ in agent.received))
        await until(lambda: live.is_stored)
        body = await store.events(live.id, after=0, limit=100)
        steering.cancel()
        await soon(hub.__aexit__(None, None, None))
        found = await stored_state(store, live.id)
    assert any(b'"steer":"sent"' in each.body for each in body), "it was not on record in time"
    assert ("rather blue", "unsure") in said(found)
    assert not found.queue


async def _ignored(steering: object) -> None:
    await steering  # type: ignore[misc]
