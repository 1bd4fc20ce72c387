"""What a killed hub left running is found by the next one, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.hub.cluster.owner import started, this_process
from dragoman.hub.running.agent_pool import Orphans
from dragoman.store.records import Owner

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes as POSIX has them")


@contextmanager
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    """A process that leads a group, as an agent does."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def dead_owner() -> Owner:
    here = this_process()
    return Owner("dead", here.machine, here.pid, "before")


def test_what_a_dead_hub_left_is_ended_once(tmp_path: Path) -> None:
    with sleeper() as process:
        Orphans(tmp_path, dead_owner()).note([process.pid])
        ours = Orphans(tmp_path, this_process())
        assert ours.sweep() == [process.pid]
        assert process.wait(timeout=60) < 0
        assert ours.sweep() == []
        assert list(tmp_path.iterdir()) == []


def test_what_a_living_hub_runs_is_left_alone(tmp_path: Path) -> None:
    with sleeper() as process:
        Orphans(tmp_path, this_process()).note([process.pid])
        assert Orphans(tmp_path, this_process()).sweep() == []
        assert process.poll() is None


def test_a_later_process_with_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    with sleeper() as process:
        Orphans(tmp_path, dead_owner()).note([process.pid])
        [file] = tmp_path.iterdir()
        file.write_text(file.read_text().replace(started(process.pid), "another time"))
        assert Orphans(tmp_path, this_process()).sweep() == []
        assert process.poll() is None


def test_a_hub_that_runs_nothing_leaves_no_note(tmp_path: Path) -> None:
    ours = Orphans(tmp_path, this_process())
    with sleeper() as process:
        ours.note([process.pid])
        [file] = tmp_path.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
    ours.note([])
    assert list(tmp_path.iterdir()) == []


def test_a_note_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{")
    assert Orphans(tmp_path, this_process()).sweep() == []
