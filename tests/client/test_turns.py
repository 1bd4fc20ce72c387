"""Turns: read or awaited, queued, cancelled, timed out, crashed; each ends exactly once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, kinds, next_of, opened, until
from support.fake_terminals import FakeTerminals
from support.peers import settled, soon
from support.raw_agent import ENDED, RawAgent, Refusal, notification, text_block

from dragoman import Policy, Session, Timeouts
from dragoman.errors import (
    AuthRequired,
    ConnectionClosed,
    DragomanError,
    InternalError,
    InvalidMessage,
    InvalidParams,
    NoProgress,
    RemoteError,
    SessionBusy,
    SlowConsumer,
)
from dragoman.host.terminals.provider import TerminalExit
from dragoman.session import events as e
from dragoman.session.facts import TokenUsage
from dragoman.session.state import AgentEntry, UserEntry
from dragoman.session.state_limits import weigh
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import fail, say


def ends(session: Session) -> list[tuple[str | None, str | None]]:
    """How the turns of a session ended."""
    return [(turn.stop_reason, turn.error) for turn in session.state.turns]


class Heard:
    def __init__(self) -> None:
        self.events: list[e.Event] = []

    def __call__(self, session: Session, event: e.Event) -> None:
        self.events.append(event)

    @property
    def endings(self) -> list[e.TurnEnded]:
        return [event for event in self.events if isinstance(event, e.TurnEnded)]


# ── reading and awaiting ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [InternalError, InvalidParams, AuthRequired])
async def test_of_a_very_long_error_only_the_beginning_is_kept(
    tmp_path: Path, kind: type[RemoteError]
) -> None:
    """The session keeps the error of its last turn, and an agent may say very much."""
    long = kind("m" * 200_000, {"first": "d" * 200_000, "second": "d" * 200_000})
    async with opened(ScriptedAgent([fail(long)]), tmp_path) as (_, session):
        with pytest.raises(kind) as caught:
            await session.prompt("hi")
    assert type(caught.value) is kind
    assert caught.value.code == long.code
    assert caught.value.message.startswith("mmm")
    assert caught.value.data["first"].startswith("ddd")
    assert weigh([caught.value.message, caught.value.data]) < 150_000


async def test_a_turn_is_iterated_to_its_end(tmp_path: Path) -> None:
    async with opened(ScriptedAgent([say("Hello "), say("world")]), tmp_path) as (_, session):
        turn = session.prompt("hi")
        events = await gathered(turn)
        assert kinds(events) == ["TurnStarted", "AgentMessage", "AgentMessage", "TurnEnded"]
        assert "".join(event.text for event in events) == "hiHello world"
        assert [event.seq for event in events] == [2, 3, 4, 5]
        assert (turn.stop_reason, turn.usage, turn.done) == ("end_turn", None, True)
        assert session.state.turn is None


async def test_a_turn_is_awaited_without_reading_it(tmp_path: Path) -> None:
    async with opened(ScriptedAgent([say("Hello")]), tmp_path) as (_, session):
        turn = session.prompt("hi")
        assert await soon(turn) is turn
        assert turn.stop_reason == "end_turn"
        assert session.state.entries[-1].text == "Hello"
        assert await soon(turn) is turn


async def test_a_turn_can_be_read_a_little_and_then_awaited(tmp_path: Path) -> None:
    async with opened(ScriptedAgent([say("a"), say("b")]), tmp_path) as (_, session):
        turn = session.prompt("hi")
        await next_of(turn, e.AgentMessage)
        assert (await soon(turn)).stop_reason == "end_turn"


async def test_a_turn_nobody_reads_runs_to_its_end(tmp_path: Path) -> None:
    async with opened(ScriptedAgent([say("Hello")]), tmp_path) as (_, session):
        session.prompt("hi")
        await until(lambda: ends(session) == [("end_turn", None)])
        assert session.state.entries[-1].text == "Hello"
        assert not session.busy


async def test_a_turn_nobody_reads_does_not_fill_memory(tmp_path: Path) -> None:
    """What is kept for a reader is bounded; the turn goes on without one."""
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        request = await agent.expect("session/prompt")
        for _ in range(3):
            agent.say("x" * 30_000_000)
            await until(lambda: agent.pending == 0)
        agent.reply(request["id"], ENDED)
        await until(lambda: turn.done)
        assert turn.stop_reason == "end_turn"
        with pytest.raises(SlowConsumer):
            await gathered(turn)


async def test_usage_comes_with_the_reply(tmp_path: Path) -> None:
    usage = {"totalTokens": 5, "inputTokens": 3, "outputTokens": 2, "thoughtTokens": 1}
    agent = RawAgent(
        session__prompt={"stopReason": "max_tokens", "usage": usage, "_meta": {"x": 1}}
    )
    heard = Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        turn = await soon(session.prompt("hi"))
        expected = TokenUsage(total=5, input=3, output=2, thought=1)
        assert (turn.stop_reason, turn.usage) == ("max_tokens", expected)
        assert session.state.turns[0].usage == expected
        assert session.state.usage is None
    assert heard.endings[0].meta == {"x": 1}


@pytest.mark.parametrize("reason", ["refusal", "max_turn_requests", "something_new"])
async def test_any_stop_reason_is_passed_on(reason: str, tmp_path: Path) -> None:
    async with opened(RawAgent(session__prompt={"stopReason": reason}), tmp_path) as (_, session):
        assert (await soon(session.prompt("hi"))).stop_reason == reason


async def test_metadata_of_a_prompt_is_sent(tmp_path: Path) -> None:
    agent = RawAgent(session__prompt=ENDED)
    async with opened(agent, tmp_path) as (_, session):
        await soon(session.prompt("hi", meta={"x": 1}))
    assert agent.sent("session/prompt") == [
        {"sessionId": "s1", "prompt": [text_block("hi")], "_meta": {"x": 1}}
    ]


async def test_updates_before_the_reply_belong_to_the_turn_and_those_behind_it_do_not(
    tmp_path: Path,
) -> None:
    """Even when all of it comes in one piece of bytes."""
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn, others = session.prompt("hi"), session.events()
        request = await agent.expect("session/prompt")
        agent.send(
            notification("agent_message_chunk", content=text_block("in")),
            {"id": request["id"], "result": ENDED},
            notification("agent_message_chunk", content=text_block("out")),
        )
        events = await gathered(turn)
        assert kinds(events) == ["TurnStarted", "AgentMessage", "TurnEnded"]
        assert events[1].text == "in"
        assert (await next_of(others, e.AgentMessage)).text == "in"
        assert (await next_of(others, e.AgentMessage)).text == "out"
        assert [entry.turn_id for entry in session.state.entries] == [turn.id, turn.id, None]


async def test_two_sessions_have_their_turns_side_by_side(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, first):
        agent.answers["session/new"] = {"sessionId": "s2"}
        second = await client.new_session(tmp_path)
        turns = [first.prompt("one"), second.prompt("two")]
        requests = [await agent.expect("session/prompt") for _ in turns]
        agent.say("to two", session="s2")
        agent.reply(requests[1]["id"], ENDED)
        agent.say("to one", session="s1")
        agent.reply(requests[0]["id"], ENDED)
        texts = [[event.text for event in await gathered(turn)] for turn in turns]
        assert texts == [["one", "to one", ""], ["two", "to two", ""]]


# ── the answer ────────────────────────────────────────────────────────────────────────────────


async def test_the_text_of_a_turn_is_the_agents_answer(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.think("hm")
        turn.say("Let me ")
        turn.say("look.\n")
        turn.tool_call(f"ls {turn.text}", "ls")
        turn.say(f"Done: {turn.text}.")

    async with opened(ScriptedAgent(script), tmp_path) as (_, session):
        first = await soon(session.prompt("one"))
        second = await soon(session.prompt("two"))
        assert first.text == "Let me look.\n\nDone: one."
        assert second.text == "Let me look.\n\nDone: two."


async def test_the_text_is_there_while_the_turn_runs(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        request = await agent.expect("session/prompt")
        assert turn.text == ""
        agent.say("so ")
        agent.say("far")
        await until(lambda: turn.text == "so far")
        agent.reply(request["id"], ENDED)
        assert (await soon(turn)).text == "so far"


# ── busy ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_second_prompt_waits_for_the_first(tmp_path: Path) -> None:
    agent = RawAgent()
    heard = Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        first, second = session.prompt("one"), session.prompt("two")
        assert [prompt.content for prompt in session.state.queue] == [second.content]
        request = await agent.expect("session/prompt")
        await settled()
        assert len(agent.sent("session/prompt")) == 1
        agent.reply(request["id"], ENDED)
        request = await agent.expect("session/prompt")
        assert request["params"]["prompt"] == [text_block("two")]
        assert session.state.queue == []
        agent.reply(request["id"], {"stopReason": "refusal"})
        await soon(second)
        assert (first.stop_reason, second.stop_reason) == ("end_turn", "refusal")
    assert kinds(heard.events)[1:] == [
        "TurnStarted",
        "PromptQueued",
        "TurnEnded",
        "PromptUnqueued",
        "TurnStarted",
        "TurnEnded",
        "SessionClosed",
    ]


async def test_a_second_prompt_can_be_an_error_instead(tmp_path: Path) -> None:
    async with opened(RawAgent(), tmp_path) as (_, session):
        session.prompt("one")
        with pytest.raises(SessionBusy, match="s1 is busy"):
            session.prompt("two", when_busy="raise")
        assert session.state.queue == []


async def test_a_queued_prompt_can_be_taken_back(tmp_path: Path) -> None:
    agent = RawAgent(session__prompt=None)
    async with opened(agent, tmp_path) as (_, session):
        first, second = session.prompt("one"), session.prompt("two")
        session.drop_queued(second)
        session.drop_queued(second)
        session.drop_queued(first)
        assert (await soon(second)).stop_reason == "cancelled"
        assert kinds(await gathered(second)) == ["TurnEnded"]
        assert (session.state.queue, first.done) == ([], False)


async def test_a_queued_prompt_keeps_its_own_time_limit(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.prompt("one")
        second = session.prompt("two", timeout=0.03)
        agent.reply((await agent.expect("session/prompt"))["id"], ENDED)
        with pytest.raises(NoProgress):
            await soon(second)


# ── errors ────────────────────────────────────────────────────────────────────────────────────


async def test_an_error_reply_ends_the_turn_and_is_raised_behind_its_last_event(
    tmp_path: Path,
) -> None:
    def fail(params: Any) -> Any:
        raise Refusal(400, "model missing", {"details": "try later"})

    heard = Heard()
    async with opened(RawAgent(session__prompt=fail), tmp_path, listen=heard) as (_, session):
        turn = session.prompt("hi")
        started, ended = await anext(turn), await anext(turn)
        assert (type(started), type(ended)) == (e.TurnStarted, e.TurnEnded)
        assert "model missing (code 400)" in ended.text
        with pytest.raises(RemoteError, match="try later") as caught:
            await anext(turn)
        assert turn.error is caught.value
        assert caught.value.code == 400
        with pytest.raises(RemoteError):
            await turn
        with pytest.raises(RemoteError):
            await anext(turn)
        assert session.state.open
    assert len(heard.endings) == 1


@pytest.mark.parametrize("reply", [{}, {"stopReason": 7}, [], "done"])
async def test_a_reply_that_makes_no_sense_ends_the_turn_alone(reply: Any, tmp_path: Path) -> None:
    agent = RawAgent(session__prompt=lambda params: reply)
    async with opened(agent, tmp_path) as (client, session):
        with pytest.raises(InvalidMessage):
            await soon(session.prompt("hi"))
        assert client.connection_error is None
        agent.answers["session/prompt"] = ENDED
        assert (await soon(session.prompt("again"))).stop_reason == "end_turn"


async def test_a_failure_of_our_own_ends_the_turn_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> None:
        raise RuntimeError("a bug")

    async with opened(RawAgent(), tmp_path) as (client, session):
        monkeypatch.setattr(client.dialect, "prompt", fails)
        with pytest.raises(DragomanError, match="a bug"):
            await soon(session.prompt("hi"))


async def test_a_crash_ends_the_turn_and_what_is_queued(tmp_path: Path) -> None:
    agent = RawAgent()
    heard = Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        running, queued = session.prompt("one"), session.prompt("two")
        await agent.expect("session/prompt")
        agent.update("tool_call", toolCallId="t", title="Work")
        agent.say("half a wor")
        await agent.vanish()
        for turn in (running, queued):
            with pytest.raises(ConnectionClosed):
                await soon(turn)
        cut = "the other side closed the connection"
        assert [turn.error for turn in session.state.turns] == [
            cut,
            f"the prompt was not sent: {cut}",
        ]
        asked = [entry.text for entry in session.state.entries if isinstance(entry, UserEntry)]
        assert asked == ["one", "two"]
        assert session.state.tool_calls["t"].status == "cancelled"
        assert session.state.queue == []
        assert session.state.open
    assert kinds(heard.events)[1:] == [
        "TurnStarted",
        "PromptQueued",
        "ToolCallUpdated",
        "AgentMessage",
        "TurnEnded",
        "PromptUnqueued",
        "TurnStarted",
        "TurnEnded",
        "SessionClosed",
    ]


# ── no progress ───────────────────────────────────────────────────────────────────────────────


async def test_an_agent_that_says_nothing_for_too_long_is_given_up(tmp_path: Path) -> None:
    agent = RawAgent()
    heard = Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        turn = session.prompt("hi", timeout=0.03)
        request = await agent.expect("session/prompt")
        with pytest.raises(NoProgress, match=r"no progress for 0\.03 s"):
            await soon(turn)
        await agent.expect("session/cancel")
        agent.say("sorry")
        agent.reply(request["id"], ENDED)
        await until(lambda: isinstance(session.state.entries[-1], AgentEntry))
        assert ends(session) == [(None, "the agent made no progress for 0.03 s")]
    assert len(heard.endings) == 1


@pytest.mark.own_time
async def test_progress_of_any_kind_keeps_a_turn_alive(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        for number in range(8):
            await asyncio.sleep(0.05)
            turn.report_usage(number, 10)

    timeouts = Timeouts(progress=0.25)
    async with opened(ScriptedAgent(script), tmp_path, timeouts=timeouts) as (_, session):
        assert (await soon(session.prompt("hi"))).stop_reason == "end_turn"


async def test_while_a_question_waits_the_clock_stands(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi", timeout=0.3)
        request = await agent.expect("session/prompt")
        params = {
            "sessionId": "s1",
            "toolCall": {"toolCallId": "t"},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}],
        }
        asking = asyncio.create_task(agent.ask("session/request_permission", params))
        asked = await next_of(turn, e.PermissionRequested)
        for _ in range(2):  # by the second look it would have been given up
            looked = session.log.progress
            await until(lambda looked=looked: turn.done or session.log.progress > looked)
        assert not turn.done
        await session.answer(asked.request_id, "y")
        await soon(asking)
        agent.reply(request["id"], ENDED)
        assert (await soon(turn)).stop_reason == "end_turn"


async def test_what_a_command_prints_is_progress(tmp_path: Path) -> None:
    """The agent itself is silent: it waits for the command."""
    terminals = FakeTerminals()
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=Policy(execute=True), terminals=terminals) as (
        _,
        session,
    ):
        await agent.ask("terminal/create", {"sessionId": "s1", "command": "make"})
        heard = session.log.progress
        terminals.watcher.on_output("x", "compiling")
        assert session.log.progress > heard
        assert session.state.terminals["x"].output == "compiling"


async def test_what_a_command_prints_is_recorded_however_many_terminals_the_agent_tells_of(
    tmp_path: Path,
) -> None:
    terminals, agent = FakeTerminals(), RawAgent()
    async with opened(agent, tmp_path, policy=Policy(execute=True), terminals=terminals) as (
        _,
        session,
    ):
        await agent.ask("terminal/create", {"sessionId": "s1", "command": "make"})
        told = [e.TerminalStarted(f"own {number}", []) for number in range(300)]
        session.log.record_told([*told], 1)
        stream = session.events()
        terminals.watcher.on_output("x", "compiling")
        terminals.watcher.on_exit("x", TerminalExit(7))
        assert [type(event) for event in stream.ready] == [e.TerminalOutput, e.TerminalExited]
        assert session.state.terminals["x"].ours
        # And what comes from one that is forgotten is not kept for a start that never comes.
        terminals.watcher.on_output("forgotten", "more")
        assert isinstance(stream.ready[-1], e.TerminalOutput)
