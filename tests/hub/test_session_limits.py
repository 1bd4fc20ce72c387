"""Limits of a session hold for what it used before it was opened again."""

from __future__ import annotations

from pathlib import Path

from support.hubs import TestLauncher, seen_until, stored

from dragoman import SpendingLimit
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
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
