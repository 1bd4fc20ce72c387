"""Editors and agents of different versions of ACP: the same conversation, whoever speaks what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.editors import office
from support.peers import soon

from dragoman import Session
from dragoman.schema import v1
from dragoman.session.state import AgentEntry, PendingPermission, PlanEntry, ThoughtEntry, UserEntry
from dragoman.testing import AgentTurn, ScriptedAgent

MODES = [v1.SessionMode(id="ask", name="Ask"), v1.SessionMode(id="code", name="Code")]
COMMANDS = [v1.AvailableCommand(name="plan", description="Make a plan")]
PAIRS = [(1, 1), (1, 2), (2, 1), (2, 2)]
both = pytest.mark.parametrize(("editor", "agent"), PAIRS)


async def works(turn: AgentTurn) -> None:
    turn.think("hm")
    turn.say("I will ")
    turn.say("do it")
    turn.plan(("one", "in_progress"), ("two", "pending"))
    turn.tool_call("t", "Edit a.txt", kind="edit", status="pending")
    diff = v1.Diff(path=f"{turn.cwd}/a.txt", new_text="b\n", old_text="a\n")
    chosen = await turn.request_permission("t", title="Edit a.txt", content=[diff])
    turn.tool_call_update("t", status="completed" if chosen == "allow" else "failed")
    turn.plan(("one", "completed"), ("two", "completed"))
    turn.report_usage(10, 100)
    turn.say("done")


def scripted() -> ScriptedAgent:
    return ScriptedAgent(works, modes=MODES, commands=COMMANDS)


def seen(session: Session) -> list[Any]:
    """The thread as an editor shows it."""
    shown: list[Any] = []
    for entry in session.state.entries:
        match entry:
            case UserEntry() | AgentEntry() | ThoughtEntry():
                shown.append((type(entry).__name__, entry.text))
            case PlanEntry():
                shown.append([(step.content, step.status) for step in entry.steps])
            case _:
                shown.append(getattr(entry, "title", type(entry).__name__))
    return shown


THREAD = [
    ("UserEntry", "go on"),
    ("ThoughtEntry", "hm"),
    ("AgentEntry", "I will do it"),
    [("one", "completed"), ("two", "completed")],
    "Edit a.txt",
    ("AgentEntry", "done"),
]


async def answered(session: Session) -> None:
    await until(lambda: session.state.pending)
    [asked] = session.state.pending.values()
    assert isinstance(asked, PendingPermission)
    allow = next(option.id for option in asked.options if option.kind == "allow_once")
    await session.answer(asked.id, allow)


@both
async def test_a_whole_turn_reads_the_same(tmp_path: Path, editor: int, agent: int) -> None:
    here = office(tmp_path, scripted(), protocol=agent)
    async with here as hub, hub.editor(protocol=editor) as client:
        assert client.protocol_version == editor
        session = await client.new_session(tmp_path)
        turn = session.prompt("go on")
        await answered(session)
        await soon(turn)
        assert turn.stop_reason == "end_turn"
        assert seen(session) == THREAD
        assert session.state.tool_calls["t"].status == "completed"
        assert session.state.usage is not None
        assert [each.name for each in session.state.commands] == ["plan"]


@both
async def test_another_editor_loads_the_same(tmp_path: Path, editor: int, agent: int) -> None:
    here = office(tmp_path, scripted(), protocol=agent)
    async with here as hub, hub.editor(protocol=1) as first:
        session = await first.new_session(tmp_path)
        turn = session.prompt("go on")
        await answered(session)
        await soon(turn)
        async with hub.editor(protocol=editor) as second:
            again = await second.load_session(session.id, tmp_path)
            assert seen(again) == THREAD


@both
async def test_a_mode_is_set_as_each_version_has_it(
    tmp_path: Path, editor: int, agent: int
) -> None:
    scripted_agent = scripted()
    here = office(tmp_path, scripted_agent, protocol=agent)
    async with here as hub, hub.editor(protocol=editor) as client:
        session = await client.new_session(tmp_path)
        if session.state.modes is not None:
            await session.set_mode("code")
        else:
            await session.set_config_option("mode", "code")
            values = {option.id: option.value for option in session.state.config_options}
            assert values["mode"] == "code"
        [kept] = scripted_agent.sessions.values()
        assert kept.mode == "code"


@both
async def test_a_turn_is_cancelled(tmp_path: Path, editor: int, agent: int) -> None:
    here = office(tmp_path, scripted(), protocol=agent)
    async with here as hub, hub.editor(protocol=editor) as client:
        session = await client.new_session(tmp_path)
        turn = session.prompt("go on")
        await until(lambda: session.state.pending)
        await soon(session.cancel())
        await soon(turn)
        assert turn.stop_reason == "cancelled"


@both
async def test_a_prompt_of_another_window_is_shown(tmp_path: Path, editor: int, agent: int) -> None:
    here = office(tmp_path, scripted(), protocol=agent)
    async with here as hub, hub.editor(protocol=editor) as client:
        session = await client.new_session(tmp_path)
        live = hub.hub.live[session.id]
        turn = await live.prompt("go on")
        await answered(session)
        await soon(turn)
        await until(lambda: len(session.state.entries) == len(THREAD))
        assert seen(session) == THREAD
