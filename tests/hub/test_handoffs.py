"""Another agent continues a session: what it is given, and that neither session breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.clients import until
from support.hubs import TestLauncher, stored

from dragoman import SpendingLimit
from dragoman.briefing import MOST_CHARACTERS, briefing
from dragoman.errors import CommandRefused, UnknownSession
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.handoffs import hand_off
from dragoman.hub.running.running_session import RunningSession
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import Offer
from dragoman.session.limits.spending_limits import SessionLimits
from dragoman.session.reduce import reduce
from dragoman.session.state import NoticeEntry, SessionState
from dragoman.testing import AgentTurn, ScriptedAgent


class Worker:
    """An agent that plans, writes a file and answers; asked to wait, it waits to be cancelled."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def work(self, turn: AgentTurn) -> None:
        self.heard.append(turn.text)
        turn.plan(("read it", "completed"), ("mend it", "pending"))
        turn.tool_call("c", "Look around", status="completed")
        turn.say("half done")
        if turn.text == "wait":
            await turn.cancelled.wait()


@asynccontextmanager
async def two(tmp_path: Path) -> AsyncGenerator[tuple[Hub, RunningSession, Worker, Worker]]:
    """A session of `old` that has done something, and an agent `new`."""
    old, new = Worker(), Worker()
    agents = {
        "old": ScriptedAgent(old.work),
        "new": ScriptedAgent(new.work),
    }
    (folder := tmp_path / "work").mkdir()
    async with stored(tmp_path) as store, Hub(store, TestLauncher(agents)) as hub:
        limits = SessionLimits(limits=(SpendingLimit(measure="turns", most=9),))
        live = await hub.create("old", str(folder), offer=Offer(terminals=False), limits=limits)
        await live.prompt("fix the parser")
        await until(lambda: live.idle)
        yield hub, live, old, new


def notices(state: SessionState) -> list[str]:
    return [entry.text for entry in state.entries if isinstance(entry, NoticeEntry)]


async def test_the_next_agent_learns_what_was_asked_done_and_is_open(tmp_path: Path) -> None:
    async with two(tmp_path) as (hub, live, _, new):
        new_id = await hand_off(hub, live.id, "new", "Finish it, with tests.")
        await until(lambda: new.heard)
        told = new.heard[0]
        assert f"another agent (old, session {live.id})" in told
        assert "## Asked\n\n> fix the parser" in told
        assert "## Done\n\n- Look around (completed)\n\nhalf done" in told
        assert "## Open\n\n- mend it" in told
        assert told.endswith("Finish it, with tests.")
        assert hub.live[new_id].record.cwd == live.record.cwd


async def test_both_sessions_say_so(tmp_path: Path) -> None:
    async with two(tmp_path) as (hub, live, _, _new):
        new_id = await hand_off(hub, live.id, "new")
        assert f"handed off to session {new_id} of new" in notices(live.state)
        assert f"continues session {live.id} of old" in notices(hub.live[new_id].state)


async def test_a_session_that_no_process_runs_says_so_without_its_agent(tmp_path: Path) -> None:
    async with two(tmp_path) as (hub, live, old, _):
        await hub.detach(live)
        new_id = await hand_off(hub, live.id, "new")
        assert f"handed off to session {new_id} of new" in notices(await hub.state(live.id))
        assert live.id not in hub.live
        assert len(old.heard) == 1


async def test_the_new_session_has_no_more_than_the_old_one(tmp_path: Path) -> None:
    async with two(tmp_path) as (hub, live, _, _new):
        record = hub.live[await hand_off(hub, live.id, "new")].record
        assert (record.offer, record.limits) == (live.record.offer, live.record.limits)
        assert record.offer == Offer(terminals=False)


async def test_a_session_at_work_is_not_handed_off(tmp_path: Path) -> None:
    async with two(tmp_path) as (hub, live, old, _):
        await live.prompt("wait")
        await until(lambda: len(old.heard) == 2)
        with pytest.raises(CommandRefused, match="the session is at work: cancel its turn"):
            await hand_off(hub, live.id, "new")
        assert list(hub.live) == [live.id]
        await hub.send(live.id, c.Cancel())


async def test_a_session_without_work_and_one_that_is_unknown(tmp_path: Path) -> None:
    async with two(tmp_path) as (hub, live, _, _new):
        empty = await hub.create("old", live.record.cwd)
        with pytest.raises(CommandRefused, match="nothing was done in the session yet"):
            await hand_off(hub, empty.id, "new")
        with pytest.raises(UnknownSession):
            await hand_off(hub, "s-none", "new")


async def test_an_agent_that_does_not_start_leaves_everything_as_it_was(tmp_path: Path) -> None:
    async with two(tmp_path) as (hub, live, _, _new):
        with pytest.raises(KeyError):  # of the launcher
            await hand_off(hub, live.id, "unknown")
        assert list(hub.live) == [live.id]
        assert notices(live.state) == []


@pytest.mark.parametrize("steps", range(0, 60, 3))
async def test_cut_at_any_moment_neither_session_is_broken(tmp_path: Path, steps: int) -> None:
    async with two(tmp_path) as (hub, live, old, _):
        handing = asyncio.create_task(hand_off(hub, live.id, "new"))
        for _ in range(steps):
            await asyncio.sleep(0)
        handing.cancel()
        await asyncio.wait([handing])
        await live.prompt("and again")
        await until(lambda: len(old.heard) == 2 and live.idle)
        for other in [each for each in hub.live.values() if each is not live]:
            await _continued(other)


async def _continued(session: RunningSession) -> None:
    await until(lambda: session.idle)
    await session.prompt("go on")
    await until(lambda: session.idle)
    assert session.state.turns[-1].status == "completed"


def test_a_briefing_is_bounded_and_keeps_the_newest() -> None:
    state = SessionState()
    for number in range(500):
        reduce(state, e.TurnStarted(f"t{number}", [Text(f"request {number} " + "x" * 6000)]))
        reduce(state, e.AgentMessage(Text(f"answer {number} " + "y" * 6000)))
        reduce(state, e.TurnEnded(f"t{number}", "end_turn"))
    files = [f"/work/{number}.py (modified)" for number in range(5000)]
    text = briefing(state, session_id="s-1", agent="old", changed=files)
    assert len(text) < MOST_CHARACTERS * 2
    assert "request 499" in text
    assert "answer 499" in text
    assert "request 0 " not in text
    assert "[the beginning is left out]" in text
    assert "and 4800 more" in text
