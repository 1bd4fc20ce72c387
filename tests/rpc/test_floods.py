"""An agent that prints far too much: memory stays bounded, and is given back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent.parent


def flooded(what: str, megabytes: int, *options: str) -> dict[str, Any]:
    """In a process of its own, where nothing else uses memory."""
    done = subprocess.run(
        [sys.executable, "-m", "rpc.programs.flooded", what, str(megabytes), *options],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_line_of_100_mb_ends_the_connection_and_its_memory_is_given_back() -> None:
    measured = flooded("line", 100)
    assert measured["outcome"] == "FrameTooLarge"
    assert measured["peak_mib"] <= 160
    assert measured["left_mib"] <= 16


@pytest.mark.parametrize("what", ["updates", "noise", "errors"])
def test_a_flood_adds_next_to_no_memory(what: str) -> None:
    check_flood(what, 20)


@pytest.mark.soak
@pytest.mark.parametrize("what", ["updates", "noise", "errors"])
def test_a_flood_of_200_mb_adds_next_to_no_memory(what: str) -> None:
    check_flood(what, 200)


def check_flood(what: str, megabytes: int) -> None:
    measured = flooded(what, megabytes)
    assert measured["outcome"] == "done"
    assert (measured["updates"] > megabytes * 4000) == (what == "updates")
    assert measured["peak_mib"] <= 16
    assert measured["left_mib"] <= 8


def test_control_a_tap_that_keeps_everything_is_noticed() -> None:
    assert flooded("updates", 20, "--hoard")["peak_mib"] > 16
