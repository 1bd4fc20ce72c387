"""Subagents on the command line: shown in lines of their own, asked about by name, answered."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from support.command import COMMAND, Dragoman
from support.programs import tree_agent
from support.programs.tree_agent import NAMES, sentence
from support.screen import needs_tmux, on_screen

from dragoman import Client, Policy
from dragoman.session.state import SessionState
from dragoman.testing import Recorder
from dragoman.testing.recordings.recorded_events import Transcript
from dragoman.testing.recordings.recording import load_recording

SERVE = [sys.executable, "-m", "dragoman.testing.serve", f"{tree_agent.__file__}:agent"]
TREE = ["--agent-command", shlex.join(SERVE)]


def pending(user: Dragoman) -> list[dict[str, Any]]:
    return json.loads(user("sessions", "answer", "fix", "--json").out or "[]")


def until(user: Dragoman, holds: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    while not holds(found := pending(user)):
        pass
    return found


def test_the_questions_of_a_tree_are_listed_and_answered_by_name(user: Dragoman) -> None:
    with (
        ExitStack() as stack,
        user.started(*TREE, "--session", "fix", "--on-ask", "wait", "go") as process,
    ):
        asked = until(user, lambda found: len(found) == len(NAMES))
        assert {each["subagent"]: each["askedBy"] for each in asked} == NAMES
        listed = user("sessions", "answer", "fix").out
        assert "Reader › Indexer (a subagent of" in listed
        watching = stack.enter_context(user.started("watch", "fix", "--all", "--until-idle"))
        while process.poll() is None:
            for each in pending(user):
                word = "allow_once" if each["kind"] == "permission" else "decline"
                user("sessions", "answer", "fix", word, "--request", each["id"])
        assert process.wait(120) == 0
        assert process.stdout is not None
        shown = process.stdout.read().decode()
        assert watching.wait(120) == 0
        assert watching.stdout is not None
        watched = watching.stdout.read().decode()
    for subagent_id, name in NAMES.items():
        for told in (shown, watched):
            assert f"[subagent] {name}: {sentence(subagent_id)}\n" in told
            assert f"[subagent] {name}: make {subagent_id} (completed)\n" in told
            assert f"[subagent] {name}: done\n" in told
    assert user("sessions", "show", "fix").tagged("subagent")


@needs_tmux
def test_a_question_in_the_terminal_says_which_subagent_asks(user: Dragoman) -> None:
    command = [str(COMMAND), *TREE, "--session", "fix", "go"]
    with on_screen(command, env=user.env, cwd=user.workspace) as screen:
        screen.wait_for("(a subagent of")
        screen.wait_for("choose 1-")


async def test_a_recording_of_a_tree_is_replayed_with_the_tree(user: Dragoman) -> None:
    path = user.home / "tree.jsonl"
    with Recorder(path) as recorder:
        async with Client.start(
            tree_agent.agent().connect(), policy=Policy(yolo=True), tap=recorder
        ) as client:
            session = await client.new_session(user.workspace)
            await session.prompt("go")
    transcript = Transcript()
    for line in load_recording(path).lines:
        transcript.feed(line)
    assert list(transcript.states) == [session.id]
    assert _tree(transcript.states[session.id]) == _tree(session.state)
    done = user("replay", str(path), "--speed", "0")
    assert (done.code, done.err) == (0, "")
    told = done.tagged("subagent")
    assert "[subagent] Reader: works on: Does what reader does" in told
    for subagent_id, name in NAMES.items():
        assert f"[subagent] {name}: {sentence(subagent_id)}" in told
        assert f"[subagent] {name}: done" in told


def _tree(state: SessionState) -> dict[str, tuple[str | None, str | None, list[str]]]:
    return {
        key: (each.parent, each.title, [entry.text for entry in each.thread.entries])
        for key, each in state.subagents.items()
    }
