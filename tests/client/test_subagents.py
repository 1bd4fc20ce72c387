"""Subagents: a tree of sessions that work for one, with their updates, questions and files."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, next_of, opened, started, until
from support.peers import soon
from support.programs.tree_agent import NAMES, agent, sentence
from support.raw_agent import Json, RawAgent, notification, text_block

from dragoman import ElicitationAnswer, Policy, Rule, Session
from dragoman.client.router import EarlyLimits, EarlyUpdates
from dragoman.errors import Unsupported
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.reduce import fold
from dragoman.session.state import (
    AgentEntry,
    SessionState,
    ToolCall,
)
from dragoman.testing import AgentTurn, ScriptedAgent

DENY = [Rule(effect="deny", operation="write"), Rule(effect="deny", operation="execute")]


def words(state: SessionState) -> str:
    return "".join(each.text for each in state.entries if isinstance(each, AgentEntry))


async def answer_all(session: Session, turn: Any) -> dict[str, list[str | None]]:
    """Allow everything; who asked what."""
    asked: dict[str, list[str | None]] = {}
    async for event in turn:
        match event:
            case e.PermissionRequested():
                asked.setdefault(event.subagent or "", []).append(event.asked_by)
                await session.answer(event.request_id, event.options[0].id)
            case e.ElicitationRequested():
                asked.setdefault(event.subagent or "", []).append(event.asked_by)
                answer = ElicitationAnswer("accept", {"answer": "src"})
                await session.answer_elicitation(event.request_id, answer)
            case _:
                pass
    return asked


# ── a whole tree ──────────────────────────────────────────────────────────────────────────────


async def test_agents_learn_that_they_may_announce_them() -> None:
    raw = RawAgent()
    async with started(raw):
        assert raw.sent("initialize")[0]["clientCapabilities"]["subagents"] == {}


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_tree_of_subagents_loses_nothing(tmp_path: Path, protocol: int) -> None:
    async with opened(agent(), tmp_path, questions="wait", protocol=protocol) as (_, session):
        turn = session.prompt("go")
        asked = await soon(answer_all(session, turn))
    state = session.state
    assert asked.keys() == NAMES.keys()
    for subagent_id, names in asked.items():
        assert {*names} == {NAMES[subagent_id]}
    assert words(state) == "I have three helpers. They are done."
    assert turn.text == words(state)
    assert state.subagents.keys() == NAMES.keys()
    for subagent_id, child in state.subagents.items():
        assert words(child.thread) == sentence(subagent_id)
        assert child.parent == (subagent_id[:-2] if "-" in subagent_id else None)
        assert state.subagent_name(subagent_id) == NAMES[subagent_id]
        call = child.thread.tool_call("call")
        assert call is not None
        assert (call.title, call.status) == (f"make {subagent_id}", "completed")
        assert child.thread.plan is not None
        assert child.thread.plan.text == f"Look at {subagent_id}"
        assert child.thread.usage is not None
        assert child.state is not None
        assert child.state.state == "idle"
    assert not state.tool_calls
    assert not state.pending
    assert (tmp_path / "written.txt").read_text() == "by the speller\n"


async def test_what_is_done_here_for_a_subagent_says_for_whom(tmp_path: Path) -> None:
    heard: list[e.Event] = []
    async with opened(agent(), tmp_path, questions="wait") as (_, session):
        session.log.listeners.append(heard.append)
        await soon(answer_all(session, session.prompt("go")))
    written = [each for each in heard if isinstance(each, e.FileWritten)]
    assert [each.subagent for each in written] == ["writer-1"]
    ran = [each for each in heard if isinstance(each, e.TerminalStarted)]
    assert [each.subagent for each in ran] == ["tester-1"]
    [terminal] = session.state.terminals.values()
    assert (terminal.subagent, terminal.output.strip()) == ("tester-1", "tested")


async def test_a_subagent_is_judged_by_the_rules_of_its_session(tmp_path: Path) -> None:
    """What a rule decides is recorded with who wanted it."""
    heard: list[e.Event] = []
    async with opened(agent(), tmp_path, policy=Policy(DENY)) as (_, session):
        session.log.listeners.append(heard.append)
        await gathered(session.prompt("go"))
    decided = [each for each in heard if isinstance(each, e.AccessDecided)]
    assert {each.subagent for each in decided} == NAMES.keys()
    assert {each.decision.effect for each in decided} == {"deny"}
    assert not any(isinstance(each, e.PermissionRequested) for each in heard)


# ── being stopped ─────────────────────────────────────────────────────────────────────────────


async def waiting(session: Session, count: int) -> None:
    await until(lambda: len(session.state.pending) == count)


async def test_a_cancelled_turn_cancels_what_its_subagents_ask(tmp_path: Path) -> None:
    async with opened(agent(), tmp_path, questions="wait") as (_, session):
        turn = session.prompt("go")
        await waiting(session, len(NAMES))
        await soon(session.cancel())
        state = session.state
        assert not state.pending
        assert turn.done
    for child in state.subagents.values():
        assert child.state is not None
        assert (child.state.state, child.state.stop_reason) == ("idle", "cancelled")
        call = child.thread.tool_call("call")
        assert call is not None
        assert call.status == "cancelled"


async def test_one_subagent_is_stopped_with_those_it_started(tmp_path: Path) -> None:
    scripted = agent()
    async with opened(scripted, tmp_path, questions="wait") as (_, session):
        session.prompt("go")
        await waiting(session, len(NAMES))
        assert await session.cancel_subagent("reader")
        left = {each.subagent for each in session.state.pending.values()}
        assert left == NAMES.keys() - {"reader", "reader-1"}
        cancelled = "session/cancel", {"sessionId": "reader"}
        await until(lambda: cancelled in scripted.received)
        with pytest.raises(Unsupported, match="stopping the subagent Speller alone"):
            await session.cancel_subagent("writer-1")  # its capabilities do not allow it
        with pytest.raises(KeyError):
            await session.cancel_subagent("nobody")
        await soon(session.cancel())
        assert not await session.cancel_subagent("writer")


async def test_a_subagent_that_runs_on_after_the_turn_keeps_its_question(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def script(turn: AgentTurn) -> None:
        runs_on, idle = turn.subagent("on", title="On"), turn.subagent("idle", title="Idle")
        for child in (runs_on, idle):
            turn.spawn(child.request_permission("call", title="x", raw_input={"command": "x"}))
        await asked.wait()
        idle.done()

    async with opened(ScriptedAgent(script), tmp_path, questions="wait") as (_, session):
        turn = session.prompt("go")
        await waiting(session, 2)
        asked.set()
        await soon(turn.wait())
        await until(lambda: [each.asked_by for each in session.state.pending.values()] == ["On"])
        assert turn.done


# ── what comes too early, and what never should ───────────────────────────────────────────────


def announced(subagent_id: str, session: str = "s1", **fields: Any) -> Json:
    return notification("subagent_update", session=session, sessionId=subagent_id, **fields)


def said(text: str, session: str) -> Json:
    return notification("agent_message_chunk", session=session, content=text_block(text))


async def test_what_a_subagent_says_before_it_is_announced_waits(tmp_path: Path) -> None:
    raw = RawAgent()
    async with opened(raw, tmp_path) as (_, session):
        raw.send(said("one ", "inner"), announced("inner", "outer"), said("two", "inner"))
        raw.send(said("outer", "outer"), announced("outer", title="Outer"))
        await until(lambda: len(session.state.subagents) == 2)
        children = session.state.subagents
        assert [words(children[key].thread) for key in ("outer", "inner")] == ["outer", "one two"]
        assert children["inner"].parent == "outer"


async def test_a_tree_that_was_all_told_before_its_root_may_be_of_any_depth(tmp_path: Path) -> None:
    raw = RawAgent()
    async with opened(raw, tmp_path) as (_, session):
        raw.send(*(announced(f"n{at + 1}", f"n{at}") for at in range(2000, 0, -1)))
        raw.send(announced("n1"), said("the last", "n2001"), said("the root", "s1"))
        await until(lambda: words(session.state) == "the root")
        assert words(session.state.subagents["n2001"].thread) == "the last"


async def test_a_flood_for_unknown_sessions_costs_bounded_memory_and_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    raw = RawAgent()
    caplog.set_level(logging.WARNING)
    async with opened(raw, tmp_path) as (client, session):
        for number in range(200):
            raw.send(*(said("x" * 1000, f"stranger {number} {each}") for each in range(20)))
        raw.send(announced("late"), said("hello", "late"))
        await until(lambda: session.state.subagents)
        await until(lambda: words(session.state.subagents["late"].thread) == "hello")
        assert client.strays == 4000
    warnings = [each for each in caplog.records if "too many" in each.message]
    assert len(warnings) == 1


def test_the_oldest_of_what_waits_goes_first() -> None:
    early = EarlyUpdates(EarlyLimits(opening=10_000, otherwise=2_000))
    for number in range(1000):
        early.hold(f"s{number}", [e.AgentMessage(Text("x"))], 500, opening=False)
    assert [bool(early.take(f"s{number}")) for number in (995, 996, 997, 998, 999)] == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert early.take("s998") == []
    for _ in range(10):
        early.hold("opens", [e.AgentMessage(Text("x"))], 500, opening=True)
    assert len(early.take("opens")) == 10


async def test_the_newest_of_very_many_can_speak_and_ask(tmp_path: Path) -> None:
    raw = RawAgent()
    async with opened(raw, tmp_path) as (_, session):
        (tmp_path / "x").write_text("hello")
        raw.send(announced("n0"), *(announced(f"n{at + 1}", f"n{at}") for at in range(3000)))
        raw.send(said("the last", "n3000"), said("done", "s1"))
        await until(lambda: words(session.state) == "done")
        assert words(session.state.subagents["n3000"].thread) == "the last"
        answer = await raw.ask(
            "fs/read_text_file", {"sessionId": "n3000", "path": str(tmp_path / "x")}
        )
        assert answer["result"] == {"content": "hello"}


async def test_a_question_of_a_session_that_was_not_announced_is_refused(tmp_path: Path) -> None:
    raw = RawAgent()
    async with opened(raw, tmp_path) as (_, session):
        asked = {"sessionId": "nobody", "path": str(tmp_path / "x")}
        answer = await raw.ask("fs/read_text_file", asked)
        assert answer["error"]["code"] == -32002
        raw.send(announced("s1"), announced("self", "self"))  # nobody is its own child
        raw.say("still here")
        await until(lambda: words(session.state) == "still here")
        assert not session.state.subagents


async def test_a_subagent_has_one_parent(tmp_path: Path) -> None:
    raw = RawAgent(session__new=lambda _: {"sessionId": f"s{len(raw.received) - 1}"})
    async with started(raw) as client:
        first, second = [await client.new_session(tmp_path) for _ in range(2)]
        raw.send(announced("a", first.id), announced("b", first.id), announced("a", "b"))
        raw.send(announced("a", second.id, title="stolen"), said("hi", "a"), said("x", second.id))
        await until(lambda: words(second.state) == "x")
        assert first.state.subagents["a"].parent is None
        assert words(first.state.subagents["a"].thread) == "hi"
        assert not second.state.subagents


async def test_a_subagent_cannot_speak_for_a_terminal_of_ours(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        child = turn.subagent("child")
        terminal = await child.create_terminal("echo", "truth")
        await child.terminal("wait_for_exit", terminal)
        meta = {"terminal_output": {"terminal_id": terminal, "data": "lies"}}
        told = {"sessionUpdate": "tool_call_update", "toolCallId": "x", "_meta": meta}
        child.update(told)

    async with opened(ScriptedAgent(script), tmp_path, policy=Policy(yolo=True)) as (_, session):
        await gathered(session.prompt("go"))
    assert not session.state.subagents["child"].thread.terminals
    [terminal] = session.state.terminals.values()
    assert terminal.output.strip() == "truth"


# ── subagents that are only known by their tool calls ─────────────────────────────────────────


def as_claude(call: str) -> Json:
    return {"claudeCode": {"parentToolUseId": call}}


def as_qwen(call: str) -> Json:
    return {"parentToolCallId": call, "subagentType": "explore"}


@pytest.mark.parametrize("under", [as_claude, as_qwen])
async def test_tool_calls_under_a_tool_call_are_those_of_a_subagent(
    tmp_path: Path, under: Any
) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.tool_call("task", "Explore the code", status="in_progress")
        turn.tool_call("inner", "Look closer", status="in_progress", meta=under("task"))
        text = {"sessionUpdate": "agent_message_chunk", "content": text_block("deep")}
        turn.update(text | {"_meta": under("inner")})
        await turn.request_permission(
            "deepest", title="make deep", raw_input={"command": "make deep"}, meta=under("inner")
        )
        turn.tool_call_update("deepest", status="completed")  # no longer says under which call
        turn.tool_call_update("inner", status="completed", meta=under("task"))
        turn.tool_call_update("task", status="completed")
        turn.say("Done.")

    async with opened(ScriptedAgent(script), tmp_path, questions="wait") as (_, session):
        turn = session.prompt("go")
        question = await next_of(turn, e.PermissionRequested)
        assert (question.subagent, question.asked_by) == ("inner", "Explore the code › Look closer")
        await session.answer(question.request_id, question.options[0].id)
        await gathered(turn)
    state = session.state
    assert [each.id for each in state.tool_calls.values()] == ["task"]
    assert words(state) == "Done."
    task, inner = state.subagents["task"], state.subagents["inner"]
    assert (task.tool_call_id, task.parent, inner.parent) == ("task", None, "task")
    assert [each.id for each in task.thread.tool_calls.values()] == ["inner"]
    assert words(inner.thread) == "deep"
    deepest = inner.thread.tool_call("deepest")
    assert deepest is not None
    assert deepest.status == "completed"
    for child in (task, inner):
        assert child.state is not None
        assert (child.state.state, child.state.stop_reason) == ("idle", "end_turn")


async def test_a_call_that_is_not_of_the_thread_makes_no_subagent(tmp_path: Path) -> None:
    """Agents that announce a subagent still name the call of its parent in what it tells."""

    async def script(turn: AgentTurn) -> None:
        turn.tool_call("task", "Explore")
        child = turn.subagent("child", title="Explorer")
        meta = {"claudeCode": {"parentToolUseId": "task"}}
        child.tool_call("read", "Read", status="completed", meta=meta)
        turn.tool_call("odd", "Odd", meta={"parentToolCallId": "unknown"})
        turn.tool_call("own", "Own", meta={"parentToolCallId": "own"})

    async with opened(ScriptedAgent(script), tmp_path) as (_, session):
        await gathered(session.prompt("go"))
    assert session.state.subagents.keys() == {"child"}
    assert session.state.subagents["child"].thread.tool_call("read") is not None
    assert session.state.tool_calls.keys() == {"task", "odd", "own"}


# ── history ───────────────────────────────────────────────────────────────────────────────────


def shape(state: SessionState) -> dict[str, Any]:
    """The tree, without what differs from one telling to the next."""
    return {
        key: (child.parent, child.title, words(child.thread), _calls(child.thread))
        for key, child in state.subagents.items()
    }


def _calls(state: SessionState) -> list[tuple[str, str]]:
    return [(each.title, each.status) for each in state.entries if isinstance(each, ToolCall)]


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_loaded_session_has_its_tree(tmp_path: Path, protocol: int) -> None:
    tree = agent()
    async with opened(tree, tmp_path, questions="wait", protocol=protocol) as (_, session):
        await soon(answer_all(session, session.prompt("go")))
    told = shape(session.state)
    async with started(tree, protocol=protocol) as client:
        loaded = await client.load_session(session.id, tmp_path)
        assert shape(loaded.state) == told
        assert loaded.continuity == "replayed"


async def test_what_a_subagent_tells_is_all_in_the_events(tmp_path: Path) -> None:
    events: list[e.Event] = []
    async with opened(agent(), tmp_path, questions="wait") as (_, session):
        session.log.listeners.append(events.append)
        await soon(answer_all(session, session.prompt("go")))
    assert shape(fold(SessionState(), events)) == shape(session.state)
