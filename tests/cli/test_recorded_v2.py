"""A recording of a conversation in version 2 is understood as it was live."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, started
from support.command import Dragoman

from dragoman import Client, Policy
from dragoman.errors import InternalError
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.state import SessionState
from dragoman.testing import AgentTurn, Recorder, ScriptedAgent, load_recording
from dragoman.testing.recordings.recorded_events import Transcript

COMMANDS = [v1.AvailableCommand(name="help", description="Helps")]
OPTIONS = [v1.SessionConfigBoolean(id="fast", name="Fast", current_value=False)]


async def play(turn: AgentTurn) -> None:
    turn.think("Hm.")
    turn.say("hello ")
    terminal = await turn.create_terminal("echo", "hi")
    await turn.terminal("wait_for_exit", terminal)
    turn.tool_call("c", "Edit", kind="edit")
    await turn.request_permission("c", title="May I?")
    turn.say("there")
    if turn.text == "fail":
        raise InternalError("as told")


async def recorded(path: Path, folder: Path) -> SessionState:
    agent = ScriptedAgent(play, commands=COMMANDS, config_options=OPTIONS)
    tap = Recorder(path)
    options: Any = {"protocol": 2, "tap": tap, "policy": Policy(yolo=True)}
    with closing(tap):
        async with started(agent, **options) as client:
            return await conversed(client, folder)


async def conversed(client: Client, folder: Path) -> SessionState:
    session = await client.new_session(folder)
    await gathered(session.prompt("one"))
    with pytest.raises(InternalError):
        await session.prompt("fail")
    await client.load_session(session.id, folder)
    return session.state


def transcript_of(path: Path) -> tuple[Transcript, SessionState]:
    """The transcript, and the state before the session was loaded again."""
    transcript = Transcript()
    states: list[SessionState] = []
    for line in load_recording(path).lines:
        transcript.feed(line)
        states += [state for state in transcript.states.values() if state not in states]
    return transcript, states[0]


async def test_what_was_recorded_is_told_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    live = await recorded(path, tmp_path)
    transcript, told = transcript_of(path)
    assert transcript.second is not None
    texts = [(type(entry), entry.text) for entry in live.entries]
    assert [(type(entry), entry.text) for entry in told.entries] == texts
    turns = [(turn.status, turn.stop_reason, turn.error) for turn in live.turns]
    assert [(turn.status, turn.stop_reason, turn.error) for turn in told.turns] == turns
    assert told.commands == live.commands
    assert told.config_options == live.config_options
    assert [t.output for t in told.terminals.values()] == ["hi\n", "hi\n"]
    (loaded,) = transcript.states.values()
    assert loaded.continuity == "continued"
    assert all(entry.turn_id is None for entry in loaded.entries)


def test_a_terminal_of_a_loaded_session_is_history_as_it_is_live() -> None:
    transcript = Transcript()
    transcript.reopen("s", "/w", [])
    printed = e.TerminalOutput("t", "hi")
    transcript.told("s", printed)
    assert printed.replay


async def test_it_is_played_and_judged_like_any_other(tmp_path: Path, dragoman: Dragoman) -> None:
    path = tmp_path / "r.jsonl"
    await recorded(path, tmp_path)
    played = dragoman("replay", str(path), "--speed", "0")
    assert "[terminal] $ echo hi" in played.lines
    assert "hello" in played.out
    explained = dragoman("policy", "explain", "--recording", str(path), "--exec")
    assert explained.out.count("echo hi") == 2
    assert "--exec allows it" in explained.out


def test_a_run_can_ask_for_the_second_version(dragoman: Dragoman) -> None:
    for words, version in (((), 1), (("--protocol", "2"), 2)):
        done = dragoman(*words, "-a", "demo", "--list-caps")
        assert f"protocol version: {version}" in done.lines
    demo = {"command": sys.executable, "args": ["-m", "dragoman.testing.demo"], "protocol": 2}
    dragoman.write_settings({"agent_servers": {"mine": demo}})
    assert "protocol version: 2" in dragoman("-a", "mine", "--list-caps").lines
    assert "protocol version: 1" in dragoman("--protocol", "1", "--list-caps").lines
    dragoman.write_settings(
        {"agent_servers": {"mine": {"command": "dragoman-demo-agent", "protocol": 3}}}
    )
    done = dragoman("-a", "mine", "hello")
    assert done.code == 2
    assert "agent_servers.mine.protocol" in done.err
