"""Whoever asked is cancelled, at any moment: no lease, no agent and no half of a session stays."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.hubs import TestLauncher, hub_with, stored

from dragoman.errors import ConnectionClosed, UnknownSession
from dragoman.hub.hub import Hub
from dragoman.store.records import SessionFilter
from dragoman.testing import ScriptedAgent
from dragoman.testing.scripted_connection import NEVER
from dragoman.testing.steps import say

MOMENTS = 25


async def cut_off(work: Coroutine[Any, Any, Any], moments: int) -> Any:
    """What came of it, None when it was cancelled after so many moments."""
    task = asyncio.create_task(work)
    for _ in range(moments):
        await asyncio.sleep(0.0003)
    task.cancel()
    with suppress(asyncio.CancelledError):
        return await task
    return None


async def in_order(hub: Hub, known: set[str]) -> None:
    """What is stored are the sessions that are known, and what is owned runs here."""
    await hub.maintenance.recover()  # what was cut off while it was recovered
    assert {record.id for record in await hub.store.sessions(SessionFilter())} == known
    assert {session_id for session_id, _ in await hub.store.owned()} == set(hub.live)
    running = {live.agent for live in hub.live.values()}
    assert sum(each.users for each in running) == len(hub.live)


async def test_a_session_is_created_or_it_is_not(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        for moments in range(MOMENTS):
            await cut_off(hub.create("it", str(tmp_path)), moments)
            await in_order(hub, set(hub.live))


async def test_a_session_that_is_given_up_before_its_first_step_leaves_nothing(
    tmp_path: Path,
) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        creating = asyncio.create_task(hub.create("it", str(tmp_path)))
        await asyncio.sleep(0)  # its work is about to begin, no more
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
        await in_order(hub, set())


async def test_a_session_is_opened_or_it_is_not(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        live = await hub.create("it", str(tmp_path))
        for moments in range(MOMENTS):
            await hub.detach(hub.live.get(live.id, live))
            await cut_off(hub.open(live.id), moments)
            await in_order(hub, {live.id})


async def test_a_session_is_forked_or_it_is_not(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        live = await hub.create("it", str(tmp_path))
        for moments in range(MOMENTS):
            await cut_off(hub.fork(live.id), moments)
            await in_order(hub, set(hub.live))


async def test_a_session_is_deleted_or_it_can_be_used(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")])) as hub:
        for moments in range(MOMENTS):
            live = await hub.create("it", str(tmp_path))
            await cut_off(hub.delete(live.id), moments)
            with suppress(UnknownSession):  # then it is deleted
                await hub.open(live.id)
                await hub.delete(live.id)
            await in_order(hub, set())


def silent() -> ScriptedAgent:
    return ScriptedAgent(answers={"session/new": NEVER})


def was_asked(agent: ScriptedAgent) -> bool:
    return any(method == "session/new" for method, _ in agent.received)


async def test_what_an_agent_never_answers_leaves_nothing(tmp_path: Path) -> None:
    agent = silent()
    async with hub_with(tmp_path, agent) as hub:
        opening = asyncio.create_task(hub.create("it", str(tmp_path)))
        await until(lambda: was_asked(agent))
        opening.cancel()
        await asyncio.wait([opening])
        await in_order(hub, set())


async def test_a_hub_that_is_closed_ends_what_was_being_opened(tmp_path: Path) -> None:
    agent = silent()
    async with stored(tmp_path) as store:
        async with Hub(store, TestLauncher({"it": agent})) as hub:
            opening = asyncio.create_task(hub.create("it", str(tmp_path)))
            await until(lambda: was_asked(agent))
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert await store.sessions(SessionFilter()) == []
        with pytest.raises(ConnectionClosed):
            await hub.create("it", str(tmp_path))
