"""A snapshot, a restore and a deletion that are killed before any of their steps leave nothing half
done: a step is a call that changes a file system, ours or git's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
LONG = (pytest.mark.soak, pytest.mark.within(10_800))


@pytest.fixture
def preloaded(tmp_path: Path) -> dict[str, str]:
    """Everything that is started with this, and git whatever it is started with, counts its
    steps."""
    compiler, git = shutil.which("cc"), shutil.which("git")
    if compiler is None or git is None or sys.platform != "linux":
        pytest.skip("counts the calls of the C library on Linux, with a C compiler")
    library, steps, program = tmp_path / "steps.so", tmp_path / "steps", tmp_path / "bin" / "git"
    source = str(PROGRAMS / "killing_steps.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    steps.write_bytes(bytes(16))
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nSTEPS={steps} LD_PRELOAD={library} exec {git} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return {**os.environ, "STEPS": str(steps), "LD_PRELOAD": str(library), "PATH": path}


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
