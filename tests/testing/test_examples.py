"""The examples about testing do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.peers import tidy_loop

from dragoman import AgentCommand, Client

EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_an_agent_of_your_own(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Feed the dragon\nand more\n")
    agent = AgentCommand(sys.executable, (str(EXAMPLES / "scripted_agent.py"),))
    async with tidy_loop(), Client.start(agent) as client:
        session = await client.new_session(tmp_path)
        await session.prompt("What is in notes.txt?")
        assert client.agent_info.name == "note-reader"
        assert session.state.entries[-1].text == "Your notes begin with: Feed the dragon\n"


def test_a_recording_answers_in_the_agents_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    path = tmp_path / "session.jsonl"
    argv = [sys.executable, str(EXAMPLES / "record_and_replay.py"), str(path)]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=True, text=True)
    first, _, second = done.stdout.partition("And again, with no agent at all:\n")
    assert "dragons" in first
    assert first == second[: len(first)]
    assert re.fullmatch(r"\d+ events, the last is TurnEnded\n", second[len(first) :])
