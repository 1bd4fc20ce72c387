"""`kill -9` of the process that writes: what was acknowledged is there, once and in order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "killing.py"
SEED = 20_240_611
POINTS = ("write-wal", "sync-wal", "write-db", "sync-db", "mirror")


def kill(directory: Path, times: int, point: str, how: str = "honest") -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), str(directory), str(times), str(SEED), point, how]
    done = subprocess.run(command, capture_output=True, timeout=60 + 5 * times, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout)


def check(report: dict[str, Any]) -> None:
    assert report["lost"] == 0, f"seed {SEED}: {report}"
    assert report["wrong"] == [], f"seed {SEED}: {report}"
    assert report["acknowledged"] > 0
    assert report["recovery"] < 1.0


def test_nothing_acknowledged_is_lost_at_random_moments(tmp_path: Path) -> None:
    check(kill(tmp_path, 15, "random"))


@pytest.mark.parametrize("point", POINTS)
def test_nothing_acknowledged_is_lost_at_named_points(tmp_path: Path, point: str) -> None:
    check(kill(tmp_path, 3, point))


def test_control_a_writer_that_acknowledges_too_early_is_caught(tmp_path: Path) -> None:
    assert kill(tmp_path, 5, "write-wal", "hasty")["lost"] > 0


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_in_500_kills(tmp_path: Path) -> None:
    # Anew from time to time: what is checked after each kill grows with it.
    for part in range(20):
        check(kill(tmp_path / f"random{part}", 25, "random"))


@pytest.mark.soak
@pytest.mark.parametrize("point", POINTS)
def test_nothing_acknowledged_is_lost_at_every_named_point(tmp_path: Path, point: str) -> None:
    for part in range(4):
        check(kill(tmp_path / f"named{part}", 25, point))
