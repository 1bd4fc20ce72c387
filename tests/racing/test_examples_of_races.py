"""The examples for evaluations run."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*words: str, home: Path, cwd: Path | None = None) -> str:
    environment = {**os.environ, "DRAGOMAN_HOME": str(home), "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, *words],
        env=environment,
        cwd=cwd or home,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_agent_is_run_over_a_folder_of_tasks(tmp_path: Path) -> None:
    for name, check in (("easy", "test -f dragoman-demo.txt"), ("hard", "test -f other.txt")):
        (folder := tmp_path / "tasks" / name).mkdir(parents=True)
        (folder / "TASK.md").write_text("write a file\n")
        (folder / "CHECK").write_text(f"{check}\n")
        (folder / "README.md").write_text("hello\n")
    (home := tmp_path / "home").mkdir()
    printed = run(str(EXAMPLES / "evaluate_folder.py"), "demo", str(tmp_path / "tasks"), home=home)
    assert "passed  easy" in printed
    assert "failed  hard" in printed
    assert printed.endswith("50% passed\n")
    assert not (tmp_path / "tasks" / "easy" / "dragoman-demo.txt").exists()


@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="inspect-ai is not installed")
def test_an_agent_is_a_solver_of_inspect(tmp_path: Path) -> None:
    options = ("--model", "mockllm/model", "--display", "plain", "--log-dir", str(tmp_path))
    # Inspect takes only relative paths.
    words = ("-m", "inspect_ai", "eval", "inspect_solver.py", *options, "-T", "agent=demo")
    assert "accuracy" in run(*words, home=tmp_path, cwd=EXAMPLES)
