"""Prompts that wait when their owner ends: they keep their place, and nobody sends them unasked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.clients import until
from support.hosting import Place
from support.hubs import TestLauncher, hub_with
from support.peers import soon
from support.postgres import empty_database

from dragoman.errors import CommandRefused, SessionBusy
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session.state import SessionState, UserEntry
from dragoman.store.base import Store
from dragoman.testing import AgentTurn, ScriptedAgent


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, empty_database() if request.param == "postgresql" else None)


def asked(state: SessionState) -> list[str]:
    return [entry.text for entry in state.entries if isinstance(entry, UserEntry)]


def waiting(state: SessionState) -> list[str]:
    return [prompt.content[0].text for prompt in state.queue]


async def waits(turn: AgentTurn) -> None:
    if turn.text == "one":
        await turn.cancelled.wait()


async def left_behind(store: Store, launcher: TestLauncher, cwd: str) -> str:
    """A session whose owner has vanished in the first of three prompts; its id."""
    hub = Hub(store, launcher, home="here")
    await hub.__aenter__()
    live = await hub.create("it", cwd)
    for text in ("one", "two", "three"):
        await soon(hub.send(live.id, c.Prompt(text)))
    await until(lambda: live.is_stored)
    # As after a kill: nothing is put right, and nobody has it any more.
    live.recording.fail(SessionBusy(live.id))
    await hub.aclose()
    await store.release(live.recording.lease)
    return live.id


async def test_what_waited_goes_before_what_comes_next(place: Place) -> None:
    launcher = TestLauncher({"it": ScriptedAgent(waits)})
    async with place.store() as store:
        session_id = await left_behind(store, launcher, place.cwd)
        async with Hub(store, launcher, home="here") as hub:
            await hub.maintenance.recover()
            assert waiting(await stored_state(store, session_id)) == ["two", "three"]
            live = await hub.open(session_id)
            # Whoever only opens the session has not asked for them.
            await asyncio.sleep(0)
            assert (live.session.busy, asked(live.state)) == (False, ["one"])
            sent = await soon(hub.send(session_id, c.Prompt("four")))
            assert sent["queued"]
            await until(lambda: live.idle)
            assert asked(live.state) == ["one", "two", "three", "four"]
            assert live.state.turns[-1].id == sent["turn"]


async def test_one_that_was_dropped_or_changed_is_not_sent_as_it_was(place: Place) -> None:
    launcher = TestLauncher({"it": ScriptedAgent(waits)})
    async with place.store() as store:
        session_id = await left_behind(store, launcher, place.cwd)
        async with Hub(store, launcher, home="here") as hub:
            first, second = (await stored_state(store, session_id)).queue
            await soon(hub.send(session_id, c.DropQueued(first.id)))
            await soon(hub.send(session_id, c.EditQueued(second.id, "changed")))
            live = hub.live[session_id]
            assert not live.session.busy
            with pytest.raises(SessionBusy):
                live.session.prompt("now", when_busy="raise")
            await soon(hub.send(session_id, c.Prompt("four")))
            await until(lambda: live.idle)
            assert asked(live.state) == ["one", "changed", "four"]


# ── how much may wait ─────────────────────────────────────────────────────────────────────────


async def refused(hub: Hub, session_id: str, command: c.Command) -> None:
    with pytest.raises(CommandRefused, match="the queue is full") as caught:
        await soon(hub.send(session_id, command))
    assert caught.value.code == "queue_full"


async def test_no_more_prompts_wait_than_there_is_room_for(tmp_path: Path) -> None:
    limits = HubLimits(queued_prompts=3)
    async with hub_with(tmp_path, ScriptedAgent(waits), limits=limits) as hub:
        live = await hub.create("it", str(tmp_path))
        for text in ("one", "two", "three", "four"):
            await soon(hub.send(live.id, c.Prompt(text)))
        await refused(hub, live.id, c.Prompt("five"))
        assert waiting(live.state) == ["two", "three", "four"]
        await soon(hub.send(live.id, c.EditQueued(live.state.queue[1].id, "3")))
        await soon(hub.send(live.id, c.DropQueued(live.state.queue[0].id)))
        await soon(hub.send(live.id, c.Prompt("five")))
        assert waiting(live.state) == ["3", "four", "five"]


async def test_no_more_bytes_wait_than_there_is_room_for(tmp_path: Path) -> None:
    limits = HubLimits(queued_bytes=1000)
    async with hub_with(tmp_path, ScriptedAgent(waits), limits=limits) as hub:
        live = await hub.create("it", str(tmp_path))
        for text in ("one", "two", "x" * 1000):
            await soon(hub.send(live.id, c.Prompt(text)))
        await refused(hub, live.id, c.Prompt("four"))
        two, large = live.state.queue
        await refused(hub, live.id, c.EditQueued(two.id, "y" * 1000))
        await soon(hub.send(live.id, c.EditQueued(large.id, "three")))
        await soon(hub.send(live.id, c.Prompt("four")))
        assert waiting(live.state) == ["two", "three", "four"]


async def test_a_full_queue_that_was_left_behind_is_sent_with_the_next_prompt(
    tmp_path: Path,
) -> None:
    launcher = TestLauncher({"it": ScriptedAgent(waits)})
    place = Place(tmp_path)
    async with place.store() as store:
        session_id = await left_behind(store, launcher, place.cwd)
        limits = HubLimits(queued_prompts=2)
        async with Hub(store, launcher, home="here", limits=limits) as hub:
            await soon(hub.send(session_id, c.Prompt("four")))
            await until(lambda: hub.live[session_id].idle)
            assert asked(hub.live[session_id].state) == ["one", "two", "three", "four"]
