"""Limits of a session hold for what it used before it was opened again."""

from __future__ import annotations

from pathlib import Path

from support.hubs import TestLauncher, seen_until, stored

from dragoman import SpendingLimit
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.limits.spending_limits import SessionLimits
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import tool_call, usage

STEPS = [tool_call("a", "A"), usage(1, 10, 0.4)]


async def outcome(hub: Hub, session_id: str) -> str | None:
    """Of one turn: what a limit made of it."""
    after = (await hub.state(session_id)).last_seq
    await hub.send(session_id, c.Prompt("hi"))
    events = await seen_until(hub.watch(session_id, after), e.TurnEnded)
    reached = [event.limit.outcome for event in events if isinstance(event, e.LimitReached)]
    return reached[0] if reached else None


async def test_what_was_used_before_a_restart_counts(tmp_path: Path) -> None:
    limits = [SpendingLimit(measure="turns", most=2)]
    async with stored(tmp_path) as store:
        agent, session_id, seen = ScriptedAgent(STEPS), "", list[str | None]()
        for _ in range(4):
            launcher = TestLauncher({"it": agent}, limits=limits)
            async with Hub(store, launcher) as hub:
                if not session_id:
                    session_id = (await hub.create("it", str(tmp_path))).id
                seen.append(await outcome(hub, session_id))
        assert seen == [None, None, "not_sent", "not_sent"]


async def test_a_fork_begins_with_nothing_used(tmp_path: Path) -> None:
    limits = [SpendingLimit(measure="tool_calls", most=1)]
    launcher = TestLauncher({"it": ScriptedAgent(STEPS)}, limits=limits)
    async with stored(tmp_path) as store, Hub(store, launcher) as hub:
        live = await hub.create("it", str(tmp_path))
        assert await outcome(hub, live.id) is None
        fork = await hub.fork(live.id)
        assert await outcome(hub, fork.id) is None
        assert await outcome(hub, fork.id) == "stopped"


async def test_a_session_keeps_its_own_limits_as_do_its_forks(tmp_path: Path) -> None:
    own = SessionLimits(limits=(SpendingLimit(measure="turns", most=1),), on_limit="park")
    launcher = TestLauncher({"it": ScriptedAgent(STEPS)})
    async with stored(tmp_path) as store:
        async with Hub(store, launcher) as hub:
            session_id = (await hub.create("it", str(tmp_path), limits=own)).id
            assert await outcome(hub, session_id) is None
            fork = (await hub.fork(session_id)).id
        async with Hub(store, launcher) as hub:
            assert await outcome(hub, session_id) == "not_sent"
            assert hub.live[session_id].session.parking.on_limit == "park"
            assert await outcome(hub, fork) is None
            assert await outcome(hub, fork) == "not_sent"


async def test_what_a_person_allowed_holds_after_a_restart(tmp_path: Path) -> None:
    ask = SpendingLimit(measure="turns", most=1, then="ask")
    launcher = TestLauncher({"it": ScriptedAgent(STEPS)}, limits=[ask])
    async with stored(tmp_path) as store:
        async with Hub(store, launcher) as hub:
            session_id = (await hub.create("it", str(tmp_path))).id
            assert await outcome(hub, session_id) is None
            await hub.send(session_id, c.Prompt("again"))
            *_, asked = await seen_until(hub.watch(session_id, 0), e.ElicitationRequested)
            assert isinstance(asked, e.ElicitationRequested)
            given = c.AnswerElicitation(asked.request_id, "accept", {"more": 2})
            await hub.send(session_id, given)
            await seen_until(hub.watch(session_id, asked.seq), e.TurnEnded)
        async with Hub(store, launcher) as hub:
            assert await outcome(hub, session_id) is None
            after = (await hub.state(session_id)).last_seq
            await hub.send(session_id, c.Prompt("once more"))
            await seen_until(hub.watch(session_id, after), e.ElicitationRequested)
