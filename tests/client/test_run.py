"""One prompt from a program that is not async."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs import golden_agent

from dragoman import AgentCommand, Policy, run_prompt
from dragoman.errors import CommandNotFound, RemoteError
from dragoman.testing import ScriptedAgent

AGENT = ScriptedAgent.command(f"{golden_agent.__file__}:agent")


def test_the_answer_comes_back(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(golden_agent.OLD)
    answer = run_prompt("Change the notes", agent=AGENT, cwd=tmp_path, policy=Policy(yolo=True))
    assert answer == "They say 'old notes\\n'.\n\nDone."
    assert (tmp_path / "notes.txt").read_text() == golden_agent.NEW


def test_what_no_rule_allows_is_refused(tmp_path: Path) -> None:
    """The agent goes on without its edit, and gives up at the command."""
    (tmp_path / "notes.txt").write_text(golden_agent.OLD)
    with pytest.raises(RemoteError, match="nobody to ask"):
        run_prompt("Change the notes", agent=AGENT, cwd=tmp_path)
    assert (tmp_path / "notes.txt").read_text() == golden_agent.OLD


def test_what_cannot_be_started_is_an_error() -> None:
    with pytest.raises(CommandNotFound):
        run_prompt("hi", agent=AgentCommand("/no/such/agent"))
