"""Walking a process tree, and signalling nobody outside of it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest
from process.survivors import descendants

from dragoman.process import process_tree


@contextmanager
def shell(script: str) -> Generator[subprocess.Popen[str]]:
    """A shell that has printed a line, killed with all that is below it."""
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            for pid in descendants(process.pid):
                with suppress(ProcessLookupError):  # a shell whose children are dead ends too
                    os.kill(pid, signal.SIGKILL)
            process.kill()


@pytest.mark.parametrize("listed", [True, False])
def test_all_descendants_are_found_with_and_without_the_kernels_lists(
    monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    monkeypatch.setattr(process_tree, "_KERNEL_LISTS_CHILDREN", listed)
    with shell("sleep 60 & (sleep 60 & sleep 60 & echo; wait) & wait") as process:
        found = process_tree.descendants(process.pid)
        assert len(found) == 4
        assert set(found) == descendants(process.pid)
        assert set(process_tree.children(process.pid)) < set(found)
        inner = next(pid for pid in found if process_tree.children(pid))
        assert len(process_tree.descendants(process.pid, spare=lambda pid: pid == inner)) == 1


@pytest.mark.parametrize("pidfd", [True, False])
def test_a_pid_that_now_belongs_to_a_stranger_is_not_signalled(
    monkeypatch: pytest.MonkeyPatch, pidfd: bool
) -> None:
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    with shell("sleep 60 & echo; wait") as process, shell("echo; exec sleep 60") as stranger:
        (child,) = process_tree.descendants(process.pid)

        def recycled(_root: int, _spare: object) -> list[int]:
            return [child, stranger.pid]

        monkeypatch.setattr(process_tree, "descendants", recycled)
        process_tree.signal_tree(process.pid, signal.SIGKILL)
        assert process.wait(120) == 0  # its child is gone
        assert stranger.poll() is None
