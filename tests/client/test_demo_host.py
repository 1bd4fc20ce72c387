"""What the demo agent has us do, on the real disk: refused, allowed, and taken back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman.session.content import Diff

PROMPT = "Improve this folder"
WRITTEN = "dragoman-demo.txt"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))


def _workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "README.md").write_text("# A project\n")
    return folder


async def test_a_denied_write_leaves_no_trace_on_disk(tmp_path: Path) -> None:
    folder = _workspace(tmp_path)
    policy = dragoman.Policy([dragoman.Rule(effect="deny", operation="write")])
    async with dragoman.Client.start("demo", policy=policy) as client:
        session = await client.new_session(folder)
        await session.prompt(PROMPT)
        assert os.listdir(folder) == ["README.md"]
        assert session.written() == ()


async def test_an_allowed_write_is_shown_as_a_diff_and_can_be_reverted(tmp_path: Path) -> None:
    folder = _workspace(tmp_path)
    async with dragoman.Client.start("demo", policy=dragoman.Policy(write=True)) as client:
        session = await client.new_session(folder)
        await session.prompt(PROMPT)
        assert (folder / WRITTEN).is_file()
        shown = [d for call in session.state.tool_calls.values() for d in call.diffs]
        assert [type(diff) for diff in shown] == [Diff]
        [change] = session.written()
        assert f"+++ b/{WRITTEN}" in change.diff(str(folder))
        await session.revert()
        assert os.listdir(folder) == ["README.md"]
        assert session.written() == ()


@pytest.mark.parametrize("name", ["one_turn.py", "permissions.py", "providers.py"])
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=_workspace(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout
