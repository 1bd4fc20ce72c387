"""Two hubs, or two windows, that want the same session at the same moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from hub.test_recovery import abandon
from hub.test_two_windows import two_windows
from support.clients import until
from support.hubs import TestLauncher, hub_with, seen_until, stored
from support.peers import SECONDS, soon

from dragoman.errors import CommandRefused, SessionOwned, UnknownSession
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import has_ended, started, this_process
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.store.records import Owner
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.scripted_connection import NEVER
from dragoman.testing.steps import say


async def test_of_two_hubs_that_open_a_session_one_wins(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent()) as (a, b):
        live = await a.create("it", str(tmp_path))
        for _ in range(5):
            await a.detach(a.live.get(live.id, live))
            await b.detach(b.live.get(live.id, live))
            results = await asyncio.gather(a.open(live.id), b.open(live.id), return_exceptions=True)
            assert sorted(type(each).__name__ for each in results) == [
                "RunningSession",
                "SessionOwned",
            ]
            assert len(a.live) + len(b.live) == 1


async def test_a_session_that_another_hub_opens_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("yes")], answers={"session/delete": NEVER})
    async with two_windows(tmp_path, agent) as (a, b):
        live = await a.create("it", str(tmp_path))
        await a.detach(live)
        deleting = asyncio.create_task(a.delete(live.id))
        await until(lambda: any(method == "session/delete" for method, _ in agent.received))
        with pytest.raises(SessionOwned):
            await b.open(live.id)
        with pytest.raises(SessionOwned):
            await b.delete(live.id)
        deleting.cancel()


async def test_what_was_changed_before_the_lease_was_had_is_known(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (a, b):
        live = await a.create("it", str(tmp_path))
        await a.detach(live)
        lock = b.running.opening(live.id)
        async with lock:
            opening = asyncio.create_task(b.open(live.id))
            await asyncio.sleep(0)
            await a.rename(live.id, "a better name")
        opened = await soon(opening)
        assert (opened.record.title, opened.record.renamed) == ("a better name", True)


async def test_a_prompt_for_a_session_that_is_still_being_made_waits_for_it(
    tmp_path: Path,
) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("yes")])) as hub:
        creating = asyncio.create_task(hub.create("it", str(tmp_path), session_id="s-1"))
        async with asyncio.timeout(SECONDS):
            while await hub.store.session("s-1") is None:
                continue
        await soon(hub.send("s-1", c.Prompt("already?")))
        live = await soon(creating)
        assert hub.live == {"s-1": live}


async def test_a_session_is_closed_once_however_many_ask_for_it(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        live = await hub.create("it", str(tmp_path))
        await asyncio.gather(*(hub.send(live.id, c.Close()) for _ in range(3)))
        record = await hub.store.session(live.id)
        assert record is not None
        assert record.status == "closed"
        assert live.agent.users == 0


# ── owners that cannot be told to be there ────────────────────────────────────────────────────


def test_of_a_hub_of_this_process_only_its_lease_tells() -> None:
    here = this_process()
    assert has_ended(here) is None
    assert has_ended(Owner("x", here.machine, here.pid, "earlier")) is True
    assert has_ended(Owner("x", "another machine", 1, "once")) is None
    shared = this_process(alone=False)
    assert has_ended(Owner("x", shared.machine, shared.pid, "earlier")) is True
    clone = f"{here.machine} booted at another time"
    assert has_ended(Owner("x", clone, here.pid, "earlier")) is None
    assert has_ended(Owner("x", here.machine, 1, started(1))) is False


def test_of_a_process_with_another_home_that_has_stopped_only_its_lease_tells() -> None:
    ours = this_process(alone=False, home="ours")
    theirs = msgspec.structs.replace(ours, home="theirs", started="earlier")
    assert has_ended(theirs, "ours") is None
    assert has_ended(theirs, "theirs") is True
    # One that runs cannot be robbed, and one of an older version did not say where it is at home.
    there = Owner("x", ours.machine, 1, started(1), home="theirs")
    assert has_ended(there, "ours") is False
    assert has_ended(msgspec.structs.replace(theirs, home=None), "ours") is True


def test_of_a_process_here_that_is_silent_only_its_lease_tells_on_a_shared_store() -> None:
    shared, alone = this_process(alone=False), this_process()
    there = Owner("x", shared.machine, 1, started(1), home="theirs")
    assert has_ended(there) is False
    assert has_ended(msgspec.structs.replace(there, alive=False)) is None
    silent = Owner("x", alone.machine, 1, started(1), alive=False)
    assert has_ended(silent) is False, "clocks jump, and a file has no other"


async def test_a_living_owner_is_not_robbed_when_the_clock_jumps(tmp_path: Path) -> None:
    here = this_process()
    neighbour = Owner("neighbour", here.machine, 1, started(1))
    async with stored(tmp_path) as store:
        await abandon(store, neighbour)
        await store.renew(neighbour, seconds=-3600)
        async with Hub(store, TestLauncher({"it": ScriptedAgent()})) as hub:
            await hub.maintenance.recover()
            with pytest.raises(SessionOwned):
                await hub.open("s-1")
            with pytest.raises(SessionOwned):
                await hub.delete("s-1")
            kept = await store.owner("s-1")
            assert kept is not None
            assert kept.id == neighbour.id


async def test_a_stranger_that_does_not_renew_its_lease_is_given_up_after_a_while(
    tmp_path: Path,
) -> None:
    stranger = Owner("stranger", "elsewhere", 1, "once")
    async with stored(tmp_path) as store:
        await abandon(store, stranger)
        await store.renew(stranger, seconds=-1)
        async with Hub(store, TestLauncher({})) as hub:
            await hub.maintenance.recover()
            kept = await store.owner("s-1")
            assert kept is not None, "it may just have woken up"
            assert (kept.id, kept.alive) == ("stranger", False)
            hub.limits.silence_seconds = -1.0
            await hub.maintenance.recover()
            assert await store.owner("s-1") is None
            assert (await hub.record("s-1")).status == "interrupted"


async def until_it_is(state: str, hub: Hub) -> None:
    """The first command."""
    async with asyncio.timeout(SECONDS):
        while (await hub.store.outcome(1)).state != state:
            continue


# ── commands ──────────────────────────────────────────────────────────────────────────────────


async def test_what_an_owner_took_and_did_not_finish_is_said_to_be_unsure(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.detach(live)
        lease = await owner.store.acquire(live.id, this_process(), seconds=60, gone=lambda _: None)
        sending = asyncio.create_task(other.send(live.id, c.Prompt("go on")))
        while not await owner.store.take([lease]):
            assert not sending.done()
        await owner.store.release(lease)
        await owner.open(live.id)
        with pytest.raises(CommandRefused) as refused:
            await soon(sending)
        assert refused.value.code == "unsure"
        assert owner.live[live.id].state.turns == []


async def test_a_command_whose_sender_went_away_is_not_carried_out(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.detach(live)
        lease = await owner.store.acquire(live.id, this_process(), seconds=60, gone=lambda _: None)
        sending = asyncio.create_task(other.send(live.id, c.Prompt("go on")))
        await until_it_is("waiting", other)
        sending.cancel()
        await asyncio.wait([sending])
        await until_it_is("unknown", other)
        assert await owner.store.take([lease]) == []


async def test_closing_a_session_from_another_window_is_never_unsure(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent()) as (owner, other):
        for _ in range(5):
            live = await owner.create("it", str(tmp_path))
            assert await soon(other.send(live.id, c.Close())) == {}


async def test_an_answer_does_not_wait_for_the_end_of_a_flood(tmp_path: Path) -> None:
    async def floods(turn: AgentTurn) -> None:
        while not turn.cancelled.is_set():
            turn.say("x")
            await asyncio.sleep(0.001)

    async with hub_with(tmp_path, ScriptedAgent(floods)) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go on"))
        await seen_until(hub.watch(live.id), e.AgentMessage)
        queued = await soon(hub.send(live.id, c.Prompt("and then")))
        assert live.session.busy
        await soon(hub.send(live.id, c.DropQueued(queued["turn"])))
        await soon(hub.state(live.id))
        await hub.send(live.id, c.Cancel())


async def test_a_session_that_is_unknown_cannot_be_asked(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent()) as hub:
        for ask in (hub.open, hub.delete, hub.fork, hub.state):
            with pytest.raises(UnknownSession):
                await ask("s-none")
