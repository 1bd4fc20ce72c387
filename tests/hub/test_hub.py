"""Sessions that run here: all that happens is stored before anyone sees it, and can be steered."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import until
from support.hubs import TestLauncher, hub_with, seen_until, stored, stored_events

from dragoman.errors import AuthRequired, InternalError, MethodNotFound, ResourceNotFound
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.running import running_sessions
from dragoman.hub.running.running_session import RunningSession
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.records import SessionFilter
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say

HELLO = (say("Hello "), say("world"))


async def finished(hub: Hub, live: RunningSession, prompt: str = "hi") -> list[e.Event]:
    """Run one turn; what a reader saw of the session."""
    after = live.record.last_seq
    await hub.send(live.id, c.Prompt(prompt))
    return await seen_until(hub.watch(live.id, after), e.TurnEnded)


# ── recorded ──────────────────────────────────────────────────────────────────────────────────


async def test_everything_that_happens_is_stored_in_order(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent(HELLO)) as hub:
        live = await hub.create("it", str(tmp_path))
        seen = await finished(hub, live)
        events = await stored_events(hub, live.id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert events[-1] == seen[-1]
        folded = SessionState()
        for event in events:
            reduce(folded, event)
        assert folded == live.state


async def test_the_record_says_what_the_session_is(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent(HELLO)) as hub:
        live = await hub.create("it", str(tmp_path), name="mine")
        await finished(hub, live, "Fix the parser\nplease")
        [record] = await hub.store.sessions(SessionFilter(name="mine"))
        assert record.title == "Fix the parser"
        assert record.agent_session_id == "session-1"
        assert (record.status, record.cwd) == ("idle", str(tmp_path))


async def test_an_agent_that_cannot_start_leaves_no_session_behind(tmp_path: Path) -> None:
    agent = ScriptedAgent(answers={"session/new": InternalError("no room")})
    async with hub_with(tmp_path, agent) as hub:
        with pytest.raises(InternalError, match="no room"):
            await hub.create("it", str(tmp_path))
        assert await hub.store.sessions(SessionFilter()) == []


@pytest.mark.parametrize("error", [ResourceNotFound("who?"), MethodNotFound("session/delete")])
async def test_a_session_its_agent_cannot_delete_is_deleted_here(
    error: ResourceNotFound | MethodNotFound, tmp_path: Path
) -> None:
    """It has forgotten the session, or advertises what it does not have."""
    agent = ScriptedAgent([say("yes")], answers={"session/delete": error})
    async with hub_with(tmp_path, agent) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.delete(live.id)
        assert await hub.store.sessions(SessionFilter()) == []


async def test_an_agent_that_wants_a_sign_in_is_started_anew_for_the_next_try(
    tmp_path: Path,
) -> None:
    """Somebody signs in meanwhile, and many agents look for that only when they start."""
    agent = ScriptedAgent(answers={"session/new": AuthRequired("who are you?")})
    launcher = TestLauncher({"it": agent})
    async with stored(tmp_path) as store, Hub(store, launcher) as hub:
        with pytest.raises(AuthRequired):
            await hub.create("it", str(tmp_path))
        assert launcher.started == ["it"]
        async with hub.using("it", str(tmp_path)):  # as when it is signed in to through us
            assert launcher.started == ["it", "it"]
            with pytest.raises(AuthRequired):
                await hub.create("it", str(tmp_path))
            assert launcher.started == ["it", "it"]


async def test_what_people_and_agents_said_can_be_searched(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("a quick "), say("brown fox")])) as hub:
        live = await hub.create("it", str(tmp_path))
        await finished(hub, live, "tell me of dogs")
        [hit] = await hub.store.search("quick brown")
        assert (hit.session_id, hit.kind) == (live.id, "agent")
        [hit] = await hub.store.search("dogs")
        assert hit.kind == "user"


async def test_nothing_piles_up_for_a_reader_that_a_turn_does_not_have(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent(HELLO)) as hub:
        live = await hub.create("it", str(tmp_path))
        turn = await live.prompt("hi")
        await turn.wait()
        assert [event async for event in turn] == []


# ── memory ────────────────────────────────────────────────────────────────────────────────────


class Freed:
    """Notes when memory is given back."""

    def __init__(self) -> None:
        self.is_worth_returning = True
        self.pause = 0.0
        self.count = 0

    def give_back(self) -> None:
        self.count += 1


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
async def test_memory_is_given_back_after_nobody_holds_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """What is given back earlier does not have the session's own memory."""
    freed = Freed()
    monkeypatch.setattr(running_sessions, "FreedMemory", lambda: freed)
    limits = HubLimits(trim_seconds=seconds)
    async with hub_with(tmp_path, ScriptedAgent(HELLO), limits=limits) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Close())
        if seconds:
            assert freed.count == 0
            hub.running.trim()
        await until(lambda: freed.count == 1)
        freed.pause = 0.01
        hub.running.trim()
        assert freed.count == 1
        freed.pause = 0.0
        await until(lambda: freed.count == 2)
        freed.is_worth_returning = False
        hub.running.trim()
    assert freed.count == 2
