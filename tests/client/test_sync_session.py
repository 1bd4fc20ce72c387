"""The library without `async`: in scripts, in notebooks, and from several threads."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from support.programs import echoing_agent, golden_agent

import dragoman
from dragoman import Policy, SyncSession, run
from dragoman.errors import CommandNotFound, ConnectionClosed, NoProgress
from dragoman.events import AgentMessage, TurnEnded
from dragoman.testing import ScriptedAgent

GOLDEN = ScriptedAgent.command(f"{golden_agent.__file__}:agent")
ECHO = ScriptedAgent.command(f"{echoing_agent.__file__}:agent")


def test_one_call_is_a_whole_turn(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(golden_agent.OLD)
    turn = run("Change the notes", agent=GOLDEN, cwd=tmp_path, policy=Policy(yolo=True))
    assert turn.text == "They say 'old notes\\n'.\n\nDone."
    assert turn.stop_reason == "end_turn"


async def test_it_works_where_a_loop_is_running(tmp_path: Path) -> None:
    """As in a cell of a notebook."""
    assert asyncio.get_running_loop().is_running()
    assert run("hello", agent=ECHO, cwd=tmp_path).text == "heard hello"


def test_a_session_has_several_turns_and_an_answer_each(tmp_path: Path) -> None:
    with SyncSession.start(ECHO, tmp_path) as session:
        assert session.prompt("one").text == "heard one"
        events = list(session.stream("two"))
        assert "".join(e.text for e in events if isinstance(e, AgentMessage)) == "heard two"
        assert isinstance(events[-1], TurnEnded)
        assert len(session.state.turns) == 2
        assert session.id in repr(session)
    with pytest.raises(ConnectionClosed, match="the session was closed"):
        session.prompt("three")
    session.close()


def test_leaving_the_loop_cancels_the_turn(tmp_path: Path) -> None:
    with SyncSession.start(ECHO, tmp_path) as session:
        stream = session.stream("wait")
        for event in stream:
            if isinstance(event, AgentMessage):
                break
        stream.close()
        assert [turn.stop_reason for turn in session.state.turns] == ["cancelled"]
        assert session.prompt("next").stop_reason == "end_turn"


def test_another_thread_cancels_the_turn(tmp_path: Path) -> None:
    with SyncSession.start(ECHO, tmp_path) as session:
        events = session.stream("wait")
        next(event for event in events if isinstance(event, AgentMessage))
        other = threading.Thread(target=session.cancel)
        other.start()
        *_, last = events
        other.join()
        assert isinstance(last, TurnEnded)
        assert last.stop_reason == "cancelled"


def test_silence_for_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoProgress):
        run("wait", agent=ECHO, cwd=tmp_path, timeout=0.2)


def test_no_thread_is_left_whatever_went_wrong(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(CommandNotFound):
        SyncSession.start(dragoman.AgentCommand("/no/such/agent"), tmp_path)
    with pytest.raises(ValueError, match="nowhere"):
        SyncSession.start(ECHO, tmp_path / "nowhere")
    assert threading.active_count() == before
