"""The database of a hub goes away in a turn: that goes on, and nothing of it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.cable import Cable, cable_to
from support.hubs import TestLauncher, seen_until, stored_events
from support.postgres import empty_database

from dragoman.hub import commands as c
from dragoman.hub import recording
from dragoman.hub.hub import Hub
from dragoman.hub.live import Live
from dragoman.session import events as e
from dragoman.store.postgres import link, writer
from dragoman.store.postgres.store import open_postgres
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.testing.turn import AgentTurn


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
async def hub_on(cable: Cable, folder: Path, agent: ScriptedAgent) -> AsyncGenerator[Hub]:
    store = await open_postgres(cable.address, folder)
    try:
        async with Hub(store, TestLauncher({"it": agent})) as hub:
            yield hub
    finally:
        await store.aclose()


async def idle(live: Live) -> None:
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
    monkeypatch.setattr(recording, "SEAL_SECONDS", 1.0)
    monkeypatch.setattr(writer, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(link, "PATIENCE_SECONDS", 0.5)
    talker = Talker()
    async with cable_to(empty_database()) as cable:
        async with hub_on(cable, tmp_path, ScriptedAgent(talker.speak)) as hub:
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
