"""One session, two windows: whoever does not own it watches, answers, queues and cancels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.hubs import TestLauncher, hub_with, seen_until, stored
from support.peers import SECONDS, soon
from support.v2_agent import stoppable

from dragoman import Policy
from dragoman.errors import CommandRefused, UnknownSession
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.state import AgentEntry, PendingPermission
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import say


@asynccontextmanager
async def two_windows(
    folder: Path, agent: ScriptedAgent, **options: Any
) -> AsyncGenerator[tuple[Hub, Hub]]:
    """Two hubs on one store, each with connections of its own, as two processes have."""
    launcher = TestLauncher({"it": agent}, **options)
    async with (
        stored(folder) as ours,
        stored(folder) as theirs,
        Hub(ours, launcher) as owner,
        Hub(theirs, launcher) as other,
    ):
        yield owner, other


async def asks(turn: AgentTurn) -> None:
    turn.say(str(await turn.request_permission("call", title="Delete everything")))


async def asked(hub: Hub, session_id: str) -> PendingPermission:
    """The question that a window sees."""
    await seen_until(hub.watch(session_id), e.PermissionRequested)
    [pending] = (await hub.state(session_id)).pending.values()
    assert isinstance(pending, PendingPermission)
    return pending


async def test_another_window_watches_and_answers(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent(asks)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("go on"))
        question = await asked(other, live.id)
        await other.send(live.id, c.AnswerPermission(question.id, "reject"))
        await seen_until(other.watch(live.id), e.TurnEnded)
        answers = [x.text for x in live.state.entries if isinstance(x, AgentEntry)]
        assert answers == ["reject"]


async def test_the_first_answer_wins_wherever_it_comes_from(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent(asks)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("go on"))
        question = await asked(other, live.id)
        await other.send(live.id, c.AnswerPermission(question.id, "reject"))
        for window in (owner, other):
            with pytest.raises(CommandRefused, match="already settled") as refused:
                await window.send(live.id, c.AnswerPermission(question.id, "allow"))
            assert refused.value.code == "settled"


async def test_another_window_queues_edits_and_drops_prompts(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def waits(turn: AgentTurn) -> None:
        await go_on.wait()

    async with two_windows(tmp_path, ScriptedAgent(waits)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("first"))
        second = await other.send(live.id, c.Prompt("second"))
        third = await other.send(live.id, c.Prompt("third"))
        assert second["queued"]
        assert third["queued"]
        await other.send(live.id, c.EditQueued(second["turn"], "better"))
        await other.send(live.id, c.DropQueued(third["turn"]))
        go_on.set()
        seen = await soon(seen_until(other.watch(live.id), e.TurnEnded, times=2))
        started = [event.text for event in seen if isinstance(event, e.TurnStarted)]
        assert started == ["first", "better"]


async def test_another_window_cancels(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        await turn.cancelled.wait()

    async with two_windows(tmp_path, ScriptedAgent(waits)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("go on"))
        assert await other.send(live.id, c.Cancel()) == {"cancelled": True}
        assert live.state.turns[-1].stop_reason == "cancelled"
        assert await other.send(live.id, c.Cancel()) == {"cancelled": False}


async def test_another_window_stops_one_tool_call_and_one_terminal(tmp_path: Path) -> None:
    windows = two_windows(tmp_path, ScriptedAgent(stoppable), protocol=2, policy=Policy(yolo=True))
    async with windows as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("go on"))
        await seen_until(other.watch(live.id), e.TerminalStarted)
        terminal_id = next(iter((await other.state(live.id)).terminals))
        call, terminal = c.CancelToolCall("call/1"), c.CancelTerminal(terminal_id)
        assert await other.send(live.id, call) == {"cancelled": True}
        assert await other.send(live.id, terminal) == {"cancelled": True}
        await seen_until(other.watch(live.id), e.TurnEnded)
        state = await other.state(live.id)
        assert state.turns[-1].stop_reason == "end_turn"
        assert state.tool_calls["call/1"].status == "cancelled"
        assert state.entries[-1].text == "SIGKILL"
        # By now both are over, and soon nobody runs the session.
        for command in (call, terminal):
            assert await other.send(live.id, command) == {"cancelled": False}
        await owner.detach(live)
        assert await other.send(live.id, call) == {"cancelled": False}


async def test_what_cannot_be_stopped_alone_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        turn.tool_call("c", title="Wait")
        await turn.cancelled.wait()

    async with two_windows(tmp_path, ScriptedAgent(waits)) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("go on"))
        await seen_until(other.watch(live.id), e.ToolCallUpdated)
        refusals: list[tuple[c.Command, str, str]] = [
            (c.CancelToolCall("c"), "unsupported", "does not support stopping the tool call c"),
            (c.CancelToolCall("d"), "unknown_tool_call", "no tool call d"),
            (c.CancelTerminal("t"), "unknown_terminal", "no terminal t"),
        ]
        for window in (owner, other):
            for command, code, sentence in refusals:
                with pytest.raises(CommandRefused, match=sentence) as refused:
                    await window.send(live.id, command)
                assert refused.value.code == code
        assert live.session.busy
        await owner.send(live.id, c.Cancel())


async def test_prompts_from_another_window_keep_their_order(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        prompts = [f"prompt {number}" for number in range(10)]
        sent = [asyncio.create_task(other.send(live.id, c.Prompt(text))) for text in prompts]
        await soon(asyncio.gather(*sent))
        seen = await soon(seen_until(other.watch(live.id), e.TurnEnded, times=10))
        assert [event.text for event in seen if isinstance(event, e.TurnStarted)] == prompts


async def test_what_cannot_be_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent()) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        for window in (owner, other):
            with pytest.raises(CommandRefused, match="the prompt is empty") as refused:
                await window.send(live.id, c.Prompt(" "))
            assert refused.value.code == "invalid"
            with pytest.raises(CommandRefused, match="does not support modes"):
                await window.send(live.id, c.SetMode("fast"))
        with pytest.raises(UnknownSession):
            await other.send("nothing", c.Prompt("hi"))


async def test_a_session_that_nobody_runs_is_opened_where_it_is_asked(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.detach(live)
        await other.send(live.id, c.Prompt("still there?"))
        assert live.id in other.live
        await seen_until(owner.watch(live.id), e.TurnEnded)


async def test_a_session_changes_hands_when_its_owner_lets_go(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("one"))
        await seen_until(owner.watch(live.id), e.TurnEnded)
        await owner.detach(live)
        taken = await other.open(live.id)
        await other.send(live.id, c.Prompt("two"))
        await until(lambda: len(taken.state.turns) == 2 and taken.state.turn is None)
        await taken.recording.settled()
        events = await other.store.events(live.id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_a_session_that_only_its_owner_may_run_is_not_opened_by_the_sender(
    tmp_path: Path,
) -> None:
    """The process that opens a session has to serve whatever other windows queue in it."""
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await other.send(live.id, c.Rename("asked"), opens=False)
        await owner.detach(live)
        with pytest.raises(CommandRefused) as refused:
            await other.send(live.id, c.Prompt("go on"), opens=False)
        assert refused.value.code == "owner_gone"
        assert not other.live
        assert (await other.record(live.id)).title == "asked"


async def test_what_an_owner_left_undone_is_not_done_by_the_next_one(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("yes")])
    async with two_windows(tmp_path, agent) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.detach(live)
        # One that is alive and never looks into its inbox.
        lease = await owner.store.acquire(
            live.id, this_process(), seconds=60, gone=lambda who: False
        )
        sending = asyncio.create_task(other.send(live.id, c.Prompt("go on")))
        await until_sent(other, sending)
        await owner.store.release(lease)
        with pytest.raises(CommandRefused) as refused:
            await soon(sending)
        assert refused.value.code == "owner_gone"
        again = await owner.open(live.id)
        await other.send(live.id, c.Rename("served"))  # through the same inbox
        assert again.state.turns == []


async def until_sent(hub: Hub, sending: asyncio.Task[c.Reply]) -> None:
    """Until the command is in the store, whose ids count from 1."""
    async with asyncio.timeout(SECONDS):
        while (await hub.store.outcome(1)).state != "waiting":
            assert not sending.done()
            await asyncio.sleep(0)


async def test_a_prompt_that_is_too_large_is_refused_and_nothing_is_recorded(
    tmp_path: Path,
) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("fine")])) as hub:
        live = await hub.create("it", str(tmp_path))
        with pytest.raises(CommandRefused) as refused:
            await soon(hub.send(live.id, c.Prompt([Text("x" * (64 << 20))])))
        assert refused.value.code == "too_large"
        await soon(hub.send(live.id, c.Prompt([Text("something shorter")])))
        await until(lambda: bool(live.state.turns))
        assert len(live.state.turns) == 1
