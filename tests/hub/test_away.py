"""The database of a hub goes away in a turn: that goes on, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from store.postgres.stores import until
from support.database_cable import Cable, cable_to
from support.hubs import TestLauncher, seen_until, stored_events
from support.peers import soon
from support.postgres import empty_database

from dragoman.errors import StoreAway
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.maintenance import told_of_outages
from dragoman.hub.running.running_session import RunningSession
from dragoman.session import events as e
from dragoman.store.outage import Outbox
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import Batch, Lease
from dragoman.store.store_limits import StoreLimits
from dragoman.testing import ScriptedAgent
from dragoman.testing.scripted_turn import AgentTurn
from dragoman.testing.steps import say


class Talker:
    """Says a hundred words, the rest of them after it was told to go on."""

    def __init__(self) -> None:
        self.has_begun, self.may_go_on, self.is_done = (asyncio.Event() for _ in range(3))

    async def speak(self, turn: AgentTurn) -> None:
        turn.say("word1 ")
        self.has_begun.set()
        await self.may_go_on.wait()
        for number in range(2, 101):
            turn.say(f"word{number} ")
        self.is_done.set()


@asynccontextmanager
async def hub_on(
    cable: Cable, folder: Path, agent: ScriptedAgent, limits: StoreLimits | None = None
) -> AsyncGenerator[Hub]:
    store = await open_postgres(cable.address, folder, limits)
    try:
        async with Hub(store, TestLauncher({"it": agent})) as hub:
            yield hub
    finally:
        await store.aclose()


async def idle(live: RunningSession) -> None:
    while not live.idle:  # noqa: ASYNC110 - what tells of it is what is not stored yet
        await asyncio.sleep(0.01)


def said(events: list[e.Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, e.AgentMessage))


ALL = "".join(f"word{number} " for number in range(1, 101))


async def test_a_turn_goes_on_and_is_delivered_when_the_database_is_back(tmp_path: Path) -> None:
    talker = Talker()
    async with (
        cable_to(empty_database()) as cable,
        hub_on(cable, tmp_path, ScriptedAgent(talker.speak)) as hub,
    ):
        live = await hub.create("it", str(tmp_path))
        reader = asyncio.create_task(seen_until(hub.watch(live.id), e.TurnEnded))
        await hub.send(live.id, c.Prompt("go"))
        await talker.has_begun.wait()
        cable.cut()
        talker.may_go_on.set()
        await talker.is_done.wait()
        await idle(live)
        assert live.recording.error is None
        assert not reader.done(), "seen before it was stored"
        cable.mend()
        seen = await reader
        assert said(seen) == ALL
        assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
        await live.recording.settled()
        assert said(await stored_events(hub, live.id)) == ALL


async def test_a_hub_that_is_closed_meanwhile_leaves_all_of_it_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = StoreLimits(close_seconds=0.1, outage_seconds=0.5)
    talker = Talker()
    async with cable_to(empty_database()) as cable:
        async with hub_on(cable, tmp_path, ScriptedAgent(talker.speak), limits) as hub:
            hub.limits.seal_seconds = 1.0
            live = await hub.create("it", str(tmp_path))
            await hub.send(live.id, c.Prompt("go"))
            await talker.has_begun.wait()
            cable.cut()
            talker.may_go_on.set()
            await talker.is_done.wait()
            await idle(live)
        cable.mend()
        async with hub_on(cable, tmp_path, ScriptedAgent([say("more")])) as hub:
            assert said(await stored_events(hub, live.id)) == ALL


async def test_a_prompt_meanwhile_is_said_to_be_delayed_and_carried_out_once_it_is_back(
    tmp_path: Path,
) -> None:
    agent = ScriptedAgent([say("yes")])
    async with cable_to(empty_database()) as cable, hub_on(cable, tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await live.recording.settled()
        cable.cut()
        reply = await soon(hub.send(live.id, c.Prompt("go")))
        assert reply["delayed"].startswith("the database cannot be reached: the command is")
        assert "session/prompt" not in [method for method, _ in agent.received]
        later = await soon(hub.send(live.id, c.Prompt("again")))
        assert later["queued"]
        assert later["delayed"]
        cable.mend()
        await seen_until(hub.watch(live.id), e.TurnEnded, 2)
        assert "delayed" not in await soon(hub.send(live.id, c.Prompt("now")))
        await seen_until(hub.watch(live.id), e.TurnEnded, 3)
        started = [x for x in await stored_events(hub, live.id) if isinstance(x, e.TurnStarted)]
        assert [turn.text for turn in started] == ["go", "again", "now"]


async def test_a_prompt_is_said_to_be_kept_only_once_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, may_keep = Outbox.keep, threading.Event()

    def keep(box: Outbox, sent: list[tuple[Lease, Batch]]) -> None:
        may_keep.wait(30)
        original(box, sent)

    monkeypatch.setattr(Outbox, "keep", keep)
    agent = ScriptedAgent([say("yes")])
    async with cable_to(empty_database()) as cable, hub_on(cable, tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await live.recording.settled()
        cable.cut()
        try:
            asked = asyncio.create_task(hub.send(live.id, c.Prompt("go")))
            await until(lambda: hub.store.away is not None)
            done, _ = await asyncio.wait([asked], timeout=1.5)
            assert not done
        finally:
            may_keep.set()
        assert (await soon(asked))["delayed"]
        assert hub.store.has_kept(live.id, live.state.last_seq)
        cable.mend()
        await seen_until(hub.watch(live.id), e.TurnEnded)


async def test_what_another_host_asks_for_is_answered_only_when_it_is_on_record(
    tmp_path: Path,
) -> None:
    """Its answer goes through the same database: it cannot come earlier, and must not lie."""
    agent = ScriptedAgent([say("yes")])
    async with cable_to(empty_database()) as cable, hub_on(cable, tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await live.recording.settled()
        cable.cut()
        asked = asyncio.create_task(live.execute(c.Prompt("go"), patiently=True))
        await until(lambda: hub.store.away is not None)
        done, _ = await asyncio.wait([asked], timeout=1.0)
        assert not done
        cable.mend()
        assert "delayed" not in await soon(asked)


async def test_whoever_looks_is_told_within_seconds_that_it_is_away(tmp_path: Path) -> None:
    talker, limits = Talker(), StoreLimits(outage_seconds=0.5)
    told: list[str] = []
    async with (
        cable_to(empty_database()) as cable,
        hub_on(cable, tmp_path, ScriptedAgent(talker.speak), limits) as hub,
        told_of_outages(hub.store, told.append),
    ):
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go"))
        await talker.has_begun.wait()
        cable.cut()
        talker.may_go_on.set()
        await idle(live)
        with pytest.raises(StoreAway):
            await soon(hub.state(live.id))
        await until(lambda: bool(told))
        assert told[0].startswith("the database cannot be reached: running turns continue")
        cable.mend()
        await until(lambda: len(told) > 1)
        assert told[1] == "the database is back"


async def test_readers_wait_however_long_it_takes(tmp_path: Path) -> None:
    agent, limits = ScriptedAgent([say("yes")]), StoreLimits(outage_seconds=0.1)
    async with (
        cable_to(empty_database()) as cable,
        hub_on(cable, tmp_path / "a", agent, limits) as hub,
        hub_on(cable, tmp_path / "b", agent, limits) as other,
    ):
        live = await hub.create("it", str(tmp_path))
        await live.recording.settled()
        readers = [
            asyncio.create_task(seen_until(pages, e.TurnEnded))
            for pages in (other.watch(live.id), other.watch_all(0), hub.watch_all(0))
        ]
        cable.cut()
        await until(lambda: other.store.away is not None)
        other.news.tell_all()
        with pytest.raises(StoreAway):
            await soon(other.store.session(live.id))
        cable.mend()
        await until(lambda: hub.store.away is None)
        await soon(hub.send(live.id, c.Prompt("go")))
        for reader in readers:
            assert said(await soon(reader)) == "yes"
