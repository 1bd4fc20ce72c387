"""`pytest --acp-agent "CMD"`: a test for each check, chosen as tests are."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "support" / "programs" / "leaving_agent.py"
AGENT = shlex.join([sys.executable, "-S", str(PROGRAM)])


def run(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    plugins = () if _is_installed() else ("-p", "dragoman.conformance.pytest_checks")
    return subprocess.run(
        (sys.executable, "-m", "pytest", *plugins, "--acp-agent", AGENT, *words),
        cwd=cwd,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def _is_installed() -> bool:
    names = {each.name for each in entry_points(group="pytest11")}
    return "dragoman_conformance" in names


def test_each_check_is_a_test(tmp_path: Path) -> None:
    done = run(tmp_path, "-k", "initialize.agent-info or initialize.answer or modes.set")
    assert "1 failed, 1 passed, 1 skipped" in done.stdout
    assert "agentInfo.name is missing" in done.stdout
    assert "https://agentclientprotocol.com/protocol/v1/initialization" in done.stdout
    assert "Traceback" not in done.stdout
    assert done.returncode == 1


def test_without_an_agent_there_are_no_checks(tmp_path: Path) -> None:
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-q"),
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "no tests ran" in done.stdout
