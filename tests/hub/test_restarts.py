"""The database is restarted under load, as an operator does it: no turn ends, no word is lost."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.hubs import TestLauncher
from support.postgres import Server, own_server

from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.store.base import Store
from dragoman.store.postgres import writer
from dragoman.store.postgres.store import open_postgres
from dragoman.testing import AgentTurn, ScriptedAgent

SESSIONS = 8
PAUSE = 0.02
"""Between two words of a session: at most 50 events a second."""
SEED = 17


class Talkers:
    """Agents that talk until they are stopped, and remember how much they have said."""

    def __init__(self) -> None:
        self.said: dict[str, int] = {}
        self.stopping = asyncio.Event()

    async def speak(self, turn: AgentTurn) -> None:
        name = turn.text
        self.said[name] = 0
        while not self.stopping.is_set():
            self.said[name] += 1
            turn.say(f"{name}-{self.said[name]} ")
            await asyncio.sleep(PAUSE)

    async def heard_from_all(self, more: int = 5) -> None:
        """All of them have said that much more: a turn that was cut would not."""
        wanted = {name: count + more for name, count in self.said.items()}
        while any(self.said[name] < count for name, count in wanted.items()):  # noqa: ASYNC110
            await asyncio.sleep(PAUSE)


async def restarted(server: Server, how: signal.Signals) -> None:
    await asyncio.to_thread(server.stop, how)
    await asyncio.to_thread(server.start)


async def all_events(store: Store, session_id: str) -> list[e.Event]:
    found: list[e.Event] = []
    while page := await store.events(session_id, after=len(found)):
        assert [event.seq for event in page] == list(
            range(len(found) + 1, len(found) + 1 + len(page))
        )
        found += [event.decode() for event in page]
    return found


async def check(store: Store, session_id: str, name: str, count: int) -> None:
    events = await all_events(store, session_id)
    said = "".join(event.text for event in events if isinstance(event, e.AgentMessage))
    assert said == "".join(f"{name}-{number} " for number in range(1, count + 1))
    [ended] = [event for event in events if isinstance(event, e.TurnEnded)]
    assert (ended.stop_reason, ended.error) == ("end_turn", None)


async def under_load(folder: Path, restarts: list[signal.Signals]) -> None:
    """Eight turns that talk through all of these."""
    chance, talkers, server = random.Random(SEED), Talkers(), own_server()
    try:
        store = await open_postgres(server.address(), folder)
        try:
            agents = {"it": ScriptedAgent(talkers.speak)}
            async with Hub(store, TestLauncher(agents)) as hub:
                lives = [await hub.create("it", str(folder)) for _ in range(SESSIONS)]
                for number, live in enumerate(lives):
                    await hub.send(live.id, c.Prompt(f"s{number}"))
                while len(talkers.said) < SESSIONS:  # noqa: ASYNC110 - each begins by itself
                    await asyncio.sleep(PAUSE)
                for how in restarts:
                    await asyncio.sleep(chance.uniform(0.05, 0.5))
                    await restarted(server, how)
                    await talkers.heard_from_all()
                talkers.stopping.set()
                for live in lives:
                    while not live.idle:  # noqa: ASYNC110 - what tells of it may not be stored
                        await asyncio.sleep(PAUSE)
                    await live.recording.settled()
                    assert live.recording.error is None
                assert set(hub.live) == {live.id for live in lives}
            for number, live in enumerate(lives):
                await check(store, live.id, f"s{number}", talkers.said[f"s{number}"])
        finally:
            await store.aclose()
    finally:
        await asyncio.to_thread(server.remove)


async def test_a_restart_and_a_crash_under_load_end_no_turn(tmp_path: Path) -> None:
    await under_load(tmp_path, [signal.SIGINT, signal.SIGQUIT])


async def test_an_error_that_is_not_the_databases_own_word_ends_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What psycopg reports for a connection that failed in a pipeline but is still open."""
    talkers, server, failures, appending = Talkers(), own_server(), 4, False
    leave, append_all = psycopg.AsyncPipeline.__aexit__, writer.append_all

    async def left(pipeline: psycopg.AsyncPipeline, *error: Any) -> None:
        nonlocal failures
        await leave(pipeline, *error)
        if appending and failures:
            failures -= 1
            raise psycopg.OperationalError("cannot exit pipeline mode while busy")

    async def appended(*given: Any) -> Any:
        nonlocal appending
        appending = True
        try:
            return await append_all(*given)
        finally:
            appending = False

    try:
        store = await open_postgres(server.address(), tmp_path)
        try:
            async with Hub(store, TestLauncher({"it": ScriptedAgent(talkers.speak)})) as hub:
                live = await hub.create("it", str(tmp_path))
                await hub.send(live.id, c.Prompt("s"))
                while not talkers.said:  # noqa: ASYNC110 - it begins by itself
                    await asyncio.sleep(PAUSE)
                monkeypatch.setattr(writer, "append_all", appended)
                monkeypatch.setattr(psycopg.AsyncPipeline, "__aexit__", left)
                while failures and live.recording.error is None:  # noqa: ASYNC110
                    await asyncio.sleep(PAUSE)
                assert live.recording.error is None
                await talkers.heard_from_all()
                talkers.stopping.set()
                while not live.idle:  # noqa: ASYNC110 - what tells of it may not be stored
                    await asyncio.sleep(PAUSE)
                await live.recording.settled()
                assert live.recording.error is None
            await check(store, live.id, "s", talkers.said["s"])
        finally:
            await store.aclose()
    finally:
        await asyncio.to_thread(server.remove)


@pytest.mark.soak
@pytest.mark.within(300)
async def test_six_restarts_under_load_end_no_turn(tmp_path: Path) -> None:
    await under_load(tmp_path, [signal.SIGINT, signal.SIGINT, signal.SIGQUIT] * 2)
