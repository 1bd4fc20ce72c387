"""The flows in `examples`, with scripted agents: they finish, continue, and undo what came to
nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import COMMAND
from support.programs import flow_agents

from dragoman.testing import ScriptedAgent

ROOT = Path(__file__).parents[1]
AGENTS = ("planner", "coder", "reviewer", "solver")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A git repository, with settings for the agents beside it."""
    commands = {name: ScriptedAgent.command(f"{flow_agents.__file__}:{name}") for name in AGENTS}
    servers = {name: {"command": c.command, "args": list(c.args)} for name, c in commands.items()}
    (tmp_path / "settings.json").write_text(json.dumps({"agent_servers": servers}))
    (work := tmp_path / "work").mkdir()
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=work, env=environment(work), check=True)
    return work


def environment(folder: Path) -> dict[str, str]:
    who = {
        f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return {
        **os.environ,
        **who,
        "PATH": f"{COMMAND.parent}:{os.environ['PATH']}",
        "DRAGOMAN_HOME": str(folder.parent / "home"),
        "DRAGOMAN_SETTINGS": str(folder.parent / "settings.json"),
    }


def run(folder: Path, example: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "examples" / example, *words],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_flow_that_failed_continues_where_it_was(folder: Path) -> None:
    agents = ("--planner", "planner", "--coder", "coder", "--reviewer", "reviewer")
    words = ("plan_implement_review.py", "say hello", *agents)
    first = run(folder, *words)
    assert first.returncode == 1
    assert "run this again to continue" in first.stderr
    second = run(folder, *words)
    assert (second.returncode, second.stdout.split("\n")[-2]) == (0, "good after 2: wrote it")
    asked = (folder / "asked.txt").read_text().split()
    assert asked == ["planner", "coder", "coder", "reviewer", "coder", "reviewer"]
    assert "write it better" in (folder / "hello.txt").read_text()
    third = run(folder, *words)
    assert (third.returncode, third.stdout) == (0, "good after 2: wrote it\n")
    assert (folder / "asked.txt").read_text().split() == asked


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_issue_becomes_a_branch_with_a_commit(folder: Path) -> None:
    issue = folder.parent / "issue.json"
    issue.write_text(json.dumps({"title": "The parser: it fails!", "body": "please"}))
    words = ("issue_to_branch.py", "42", "--issue", str(issue), "--agent", "solver")
    done = run(folder, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "issue-42-the-parser-it-fails: Fix the parser\n"
    assert _git(folder, "show", "--stat", "--format=%s").startswith("Fix the parser")
    assert _git(folder, "log", "--oneline", "main").count("\n") == 0


def test_an_issue_without_a_change_leaves_no_branch(folder: Path) -> None:
    issue = folder.parent / "issue.json"
    issue.write_text(json.dumps({"title": "do nothing"}))
    words = ("issue_to_branch.py", "42", "--issue", str(issue), "--agent", "solver")
    done = run(folder, *words)
    assert (done.returncode, done.stderr) == (1, "nothing was changed: there is nothing to do\n")
    assert _git(folder, "branch", "--format=%(refname:short)") == "main"
    (folder / "mine.txt").write_text("")
    assert "not committed" in run(folder, *words).stderr
