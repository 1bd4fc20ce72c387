"""Limits of a day, an agent or a project: what all sessions of a store have used together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.hosting import Place
from support.hubs import TestLauncher, seen_until, stored
from support.postgres import empty_database

from dragoman import SpendingLimit
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.stored.spent import spent_by
from dragoman.session import events as e
from dragoman.session.facts import Cost, LimitScope, ReachedLimit
from dragoman.store.archive import Archive, import_session
from dragoman.store.base import Store
from dragoman.store.records import SessionRecord, encode_event
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import tool_call, usage
from dragoman.web.spent_today import Costs

STEPS = [tool_call("a", "A"), usage(1, 10, 0.4)]


def calls(most: int, per: LimitScope, **more: Any) -> SpendingLimit:
    return SpendingLimit(measure="tool_calls", most=most, per=per, source="the limit", **more)


@asynccontextmanager
async def hub_on(store: Store, *limits: SpendingLimit, agent: Any = None) -> AsyncGenerator[Hub]:
    reached = agent or ScriptedAgent(STEPS)
    launcher = TestLauncher({"it": reached, "other": reached}, limits=limits)
    fast = HubLimits(spent_seconds=0.02)
    async with Hub(store, launcher, limits=fast) as hub:
        yield hub


async def begun(hub: Hub, folder: Path, agent: str = "it") -> RunningSession:
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    return await hub.create(agent, str(folder))


async def outcome(hub: Hub, session_id: str) -> tuple[str, float] | None:
    """Of one turn: what a limit made of it, and what was used then."""
    after = (await hub.state(session_id)).last_seq
    await hub.send(session_id, c.Prompt("hi"))
    events = await seen_until(hub.watch(session_id, after), e.TurnEnded)
    reached = [event.limit for event in events if isinstance(event, e.LimitReached)]
    return (reached[0].outcome, reached[0].value) if reached else None


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_a_limit_of_a_day_counts_the_turns_of_all_sessions(
    tmp_path: Path, database: str
) -> None:
    place = Place(tmp_path, empty_database() if database == "postgresql" else None)
    async with place.store() as store:
        for each in range(3):
            async with hub_on(store, calls(2, "day")) as hub:
                live = await begun(hub, tmp_path / str(each))
                found = await outcome(hub, live.id)
                assert found == (("stopped", 3) if each == 2 else None), each
        async with hub_on(store, calls(3, "day")) as hub:
            live = await begun(hub, tmp_path / "more")
            assert await outcome(hub, live.id) == ("stopped", 4)
            assert await outcome(hub, live.id) == ("not_sent", 4)


async def test_a_limit_of_an_agent_counts_that_agent_alone(tmp_path: Path) -> None:
    async with stored(tmp_path) as store, hub_on(store, calls(2, "agent")) as hub:
        for agent in ("it", "it", "other", "other"):
            assert await outcome(hub, (await begun(hub, tmp_path / "a", agent)).id) is None
        found = await outcome(hub, (await begun(hub, tmp_path / "b")).id)
        assert found == ("stopped", 3)


async def test_a_limit_of_a_project_counts_that_folder_alone(tmp_path: Path) -> None:
    async with stored(tmp_path) as store, hub_on(store, calls(2, "project")) as hub:
        for folder in ("a", "a", "b", "b"):
            assert await outcome(hub, (await begun(hub, tmp_path / folder)).id) is None
        found = await outcome(hub, (await begun(hub, tmp_path / "a", "other")).id)
        assert found == ("stopped", 3)


async def test_a_limit_of_a_day_may_be_about_one_agent(tmp_path: Path) -> None:
    mine = calls(1, "day", agent="it")
    async with stored(tmp_path) as store, hub_on(store, mine) as hub:
        for agent in ("other", "other", "it"):
            assert await outcome(hub, (await begun(hub, tmp_path / "a", agent)).id) is None
        assert await outcome(hub, (await begun(hub, tmp_path / "a")).id) == ("stopped", 2)


async def test_a_warning_about_a_day_is_given_once_each_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warning = calls(1, "day", then="warn")
    async with stored(tmp_path) as store, hub_on(store, warning) as hub:
        live = await begun(hub, tmp_path / "a")

        async def three_turns() -> list[tuple[str, float] | None]:
            return [await outcome(hub, live.id) for _ in range(3)]

        with monkeypatch.context() as earlier:
            now = time.time
            earlier.setattr(time, "time", lambda: now() - 86_400)
            assert await three_turns() == [None, ("warned", 2), None]
        assert await three_turns() == [None, ("warned", 2), None]


async def test_what_was_used_yesterday_does_not_count_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as store, hub_on(store, calls(1, "day")) as hub:
        live = await begun(hub, tmp_path / "a")
        with monkeypatch.context() as earlier:
            now = time.time
            earlier.setattr(time, "time", lambda: now() - 86_400)
            assert await outcome(hub, live.id) is None
        assert await outcome(hub, live.id) is None
        assert await outcome(hub, live.id) == ("stopped", 2)


async def test_turns_of_two_processes_are_stopped_by_what_both_use(tmp_path: Path) -> None:
    """Each looks at the store while its turn runs, so that even one that was begun in time ends."""

    async def script(turn: AgentTurn) -> None:
        turn.tool_call("a", title="A")
        await turn.cancelled.wait()

    async def quick(turn: AgentTurn) -> None:
        for name in "abc":
            turn.tool_call(name, title=name)

    limit = calls(3, "day")
    async with (
        stored(tmp_path) as store,
        hub_on(store, limit, agent=ScriptedAgent(script)) as first,
        hub_on(store, agent=ScriptedAgent(quick)) as second,
    ):
        slow = await begun(first, tmp_path / "a")
        turn = await slow.prompt("hi")
        await until(lambda: slow.session.state.tool_calls)
        assert await outcome(second, (await begun(second, tmp_path / "b")).id) is None
        async with asyncio.timeout(20):
            await turn.wait()
        assert turn.limit is not None
        assert (turn.limit.limit.outcome, turn.limit.limit.value) == ("stopped", 4)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("ahead", [0, 7200])
async def test_what_a_fork_inherited_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, ahead: float
) -> None:
    """Also if the clock was ahead when the session was used that it is a fork of."""
    place = Place(tmp_path, empty_database() if database == "postgresql" else None)
    async with place.store() as store, hub_on(store, calls(2, "project")) as hub:
        live = await begun(hub, tmp_path / "a")
        with monkeypatch.context() as then:
            now = time.time
            then.setattr(time, "time", lambda: now() + ahead)
            assert await outcome(hub, live.id) is None
        fork = await hub.fork(live.id)
        assert await Costs(store).since(now() - 60) == pytest.approx({"USD": 0.4})
        assert await outcome(hub, fork.id) is None
        assert await outcome(hub, fork.id) == ("stopped", 3)


async def test_a_file_does_not_answer_for_the_limits_of_a_fork_of_its_session(
    tmp_path: Path,
) -> None:
    """Whatever moments it names."""
    limit = calls(1, "session", then="ask")
    raised = ReachedLimit(
        "tool_calls", "session", 1, 2, "raised", "t", source=limit.source, raised_to=1e6
    )
    told: list[e.Event] = [
        e.SessionOpened("theirs", "/", "new"),
        e.TurnStarted("t", []),
        e.LimitReached("raised", source="client", limit=raised),
        e.UsageChanged(1, 10, Cost(777.0, "USD")),
        e.TurnEnded("t"),
    ]
    for seq, event in enumerate(told, 1):
        event.seq, event.at = seq, time.time() + 86_400
    record = SessionRecord(id="x", agent="it", cwd="/", created_at=1, updated_at=1)
    archive = Archive(record, [encode_event(event) for event in told])
    async with stored(tmp_path) as store, hub_on(store, limit) as hub:
        await import_session(store, archive, "s-1", this_process(), cwd=str(tmp_path))
        await hub.open("s-1", on_reset="new")
        fork = await hub.fork("s-1")
        watch = fork.session.limit_watch
        assert watch is not None
        assert [(each.limit.most, each.used) for each in watch.bound] == [(1, 0)]
        assert (await spent_by(store, fork.record, {})).cost == {}
