"""A worktree that is killed while it is made, merged or removed, before any of its steps, leaves
nothing that `prune` does not find, and a merge that can be finished."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.killing import preloaded

PROGRAM = Path(__file__).parent / "programs" / "killed_worktree.py"
LONG = (pytest.mark.soak, pytest.mark.within(10_800))
KINDS = ("make", "merge", "patch", "remove", "branch")


@pytest.mark.parametrize(
    ("what", "steps"),
    [
        *((what, "5:17") for what in KINDS),
        *(pytest.param(what, "1:1", marks=LONG) for what in KINDS),
    ],
)
def test_what_is_killed_at_any_step_is_found_and_removed(
    tmp_path: Path, what: str, steps: str
) -> None:
    top = tmp_path / "top"
    (top / "work").mkdir(parents=True)
    ran = subprocess.run(
        [sys.executable, PROGRAM, top, what, steps],
        env=preloaded(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    assert json.loads(ran.stdout)["tried"] >= 2
