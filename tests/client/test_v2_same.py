"""The same conversation in both versions comes to the same state, as far as both can say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import gathered, started, until

from dragoman import Client, Session
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.state import SessionState
from dragoman.testing import AgentTurn, ScriptedAgent

OPTIONS = (
    v1.SessionConfigBoolean(id="fast", name="Fast", current_value=False),
    v1.SessionConfigBoolean(id="dragoman.x", name="Ours, it says", current_value=False),
    v1.SessionConfigSelect(
        id="model",
        name="Model",
        category="model",
        current_value="a",
        options=[v1.SessionConfigSelectOption(value=value, name=value) for value in "ab"],
    ),
)
COMMANDS = (
    v1.AvailableCommand(name="help", description="Helps"),
    v1.AvailableCommand(
        name="find", description="Finds", input=v1.UnstructuredCommandInput(hint="what")
    ),
)


async def play(turn: AgentTurn) -> None:
    """One of everything that both versions have."""
    read, edit, named = (f"{name}-{turn.text}" for name in ("read", "edit", "named"))
    turn.think("Hm. ")
    turn.think("Yes.")
    turn.say("I will ")
    turn.plan(("Read", "in_progress"), ("Write", "pending"))
    turn.tool_call(read, "Read a", kind="read", status="in_progress", raw_input={"path": "a"})
    turn.say("look")
    turn.tool_call_update(read, status="completed", content=[_text("contents")])
    turn.say(" at it")
    turn.plan(("Read", "completed"), ("Write", "in_progress"))
    place = v1.ToolCallLocation(path=f"{turn.cwd}/a", line=3)
    turn.tool_call(edit, "Edit a", kind="edit", locations=[place], name="edit_file")
    chosen = await turn.request_permission(edit, title="Edit a", kind="edit")
    turn.tool_call_update(edit, status="completed", raw_output={"chosen": chosen})
    turn.say("done", message_id=named)
    picture = v1.ImageContent(data="aQ==", mime_type="image/png")
    turn.update(v1.AgentMessageChunk(content=picture, message_id=named))
    turn.update(v1.Notice(severity="warning", title="Careful", description="It is late"))
    turn.update(v1.CompactionUpdate(compaction_id=f"k-{turn.text}", status="in_progress"))
    turn.update(
        v1.CompactionSummaryChunk(
            compaction_id=f"k-{turn.text}", content=v1.TextContent(text="Short")
        )
    )
    turn.update(v1.CompactionUpdate(compaction_id=f"k-{turn.text}", status="completed"))
    turn.update(v1.SessionInfoUpdate(title="A title"))
    turn.report_usage(100, 1000, 0.5)
    turn.usage = v1.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
    answer = await turn.elicit("Name?", {"type": "object", "properties": {}})
    turn.say(f"({answer['action']})")
    turn.update({"sessionUpdate": "_odd", "x": 1})
    if "stop" in turn.text:
        turn.stop_reason = "max_tokens"


def _text(text: str) -> v1.Content:
    return v1.Content(content=v1.TextContent(text=text))


async def converse(client: Client, folder: Path) -> Session:
    session = await client.new_session(folder)
    await until(lambda: session.state.commands)
    await session.set_config_option("fast", True)
    await session.set_model("b")
    for prompt in ("first", ["stop", "here"]):
        async for event in session.prompt(prompt):
            if isinstance(event, e.PermissionRequested):
                await session.answer(event.request_id, "allow")
    return session


def comparable(state: SessionState) -> Any:
    """Without times, numbers of our own, and ids that only version 2 needs."""
    found = msgspec.to_builtins(state)
    for name in ("lastSeq", "places", "size"):
        found.pop(name, None)
    for entry in found["entries"]:
        for name in ("seq", "at", "turnId", "size"):
            entry.pop(name, None)
        if not str(entry.get("messageId")).startswith("named"):
            entry.pop("messageId", None)
        entry.pop("planId", None)
    for turn in found["turns"]:
        turn.pop("id")
        turn.pop("seq")
    return found


def agent() -> ScriptedAgent:
    return ScriptedAgent(play, config_options=OPTIONS, commands=COMMANDS)


async def test_the_same_conversation_gives_the_same_state(tmp_path: Path) -> None:
    states: list[Any] = []
    for version in (1, 2):
        async with started(agent(), protocol=version) as client:
            assert client.protocol_version == version
            session = await converse(client, tmp_path)
            states.append(comparable(session.state))
            assert [turn.stop_reason for turn in session.state.turns] == ["end_turn", "max_tokens"]
    assert states[0] == states[1]


async def test_the_same_history_is_told_again(tmp_path: Path) -> None:
    told: list[Any] = []
    for version in (1, 2):
        memory = agent()
        async with started(memory, protocol=version) as client:
            session = await converse(client, tmp_path)
            loaded = await client.load_session(session.id, tmp_path)
            told.append([(entry.__class__.__name__, entry.text) for entry in loaded.state.entries])
            resumed = await client.resume_session(session.id, tmp_path)
            assert resumed.state.entries == []
            turn = resumed.prompt("stop")
            assert isinstance((await gathered(turn))[-1], e.TurnEnded)
    assert told[0] == told[1]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_begun_in_one_version_goes_on_in_the_other(
    version: int, tmp_path: Path
) -> None:
    memory = agent()
    async with started(memory, protocol=version) as client:
        session = await converse(client, tmp_path)
        before = await client.load_session(session.id, tmp_path)
    async with started(memory, protocol=3 - version) as client:
        loaded = await client.load_session(session.id, tmp_path)
        texts = [entry.text for entry in before.state.entries]
        assert [entry.text for entry in loaded.state.entries] == texts
