"""A snapshot, a restore and a deletion that are killed before any of their steps leave nothing half
done: a step is a call that changes a file system, ours or git's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import killing

PROGRAMS = Path(__file__).parent / "programs"
LONG = (pytest.mark.soak, pytest.mark.within(10_800))


@pytest.fixture
def preloaded(tmp_path: Path) -> dict[str, str]:
    return killing.preloaded(tmp_path)


@pytest.mark.parametrize(
    ("what", "steps"),
    [
        *(("snapshot", "4:9"), ("restore", "9:26"), ("forget", "7:31"), ("forget_all", "9:61")),
        *(
            pytest.param(what, "1:1", marks=LONG)
            for what in ("snapshot", "restore", "forget", "forget_all")
        ),
    ],
)
def test_what_is_killed_at_any_step_is_not_done_or_finished(
    preloaded: dict[str, str], tmp_path: Path, what: str, steps: str
) -> None:
    top = tmp_path / "top"
    (top / "work").mkdir(parents=True)
    ran = subprocess.run(
        [sys.executable, PROGRAMS / "killed_at_every_step.py", top, what, steps],
        env=preloaded,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    assert json.loads(ran.stdout)["tried"] > 3
