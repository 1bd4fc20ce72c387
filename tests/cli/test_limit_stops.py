"""A run that a limit stops, with SQLite: it leaves no process and no question."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import PROGRAMS, Dragoman

SECONDS = 60.0


@pytest.mark.parametrize(
    "agent",
    [
        "obeying",
        # It loses its turn after the half minute that every agent has.
        pytest.param("stubborn", marks=pytest.mark.soak),
    ],
)
def test_nothing_is_left_of_a_run_that_a_limit_stopped(dragoman: Dragoman, agent: str) -> None:
    program = [sys.executable, "-m", "dragoman.testing.serve", f"{PROGRAMS}/spender.py:{agent}"]
    words = ["--session", "s", "--on-ask", "wait", "--max-cost", "0.5", "go"]
    command = ["--agent-command", " ".join(program), *words]
    with dragoman.started(*command, stdin=subprocess.DEVNULL) as process:
        _wait_for_question(dragoman)
        (dragoman.workspace / "asked").write_text("")
        out, err = process.communicate(timeout=3 * SECONDS)
    assert process.returncode == 6, (out, err)
    assert b"the turn was stopped: this session has used 0.6 USD" in err
    pids = list(map(int, (dragoman.workspace / "pids").read_text().split()))
    assert len(pids) == 4
    assert gone(pids), "of the agent, its children and those in sessions of their own"

    shown = json.loads(dragoman("sessions", "show", "s", "--json").out)
    assert "pending" not in shown, "which is left out where it is empty"
    (turn,) = shown["turns"]
    assert turn["status"] == ("cancelled" if agent == "obeying" else "failed")
    (listed,) = json.loads(dragoman("sessions", "list", "--json").out)
    assert listed["status"] == "idle"
    refusals = json.loads(dragoman("sessions", "show", "s", "--refused", "--json").out)
    settled = [(each["type"], each["decision"]["effect"]) for each in refusals]
    assert settled == [("permission_settled", "cancelled")], "it had been asked"


def _wait_for_question(dragoman: Dragoman) -> None:
    deadline = time.monotonic() + SECONDS
    while not json.loads(dragoman("sessions", "show", "s", "--json").out or "{}").get("pending"):
        assert time.monotonic() < deadline, "nothing was asked"


def gone(pids: list[int]) -> bool:
    """Those that have ended may take init a moment to notice."""
    deadline = time.monotonic() + SECONDS
    while any(map(runs, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
