"""The work of a helper that was killed or is held, done without harm to anybody else's program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from process.survivors import descendants

from dragoman.process import helper_watch, process_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

SUPERIOR = Path(__file__).parent / "programs" / "superior.py"
LONE_WARDEN = SUPERIOR.with_name("lone_warden.py")


class Superior:
    """A process that looks like a zygote, with a stray below it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.pid = process.pid
        self._process = process
        self.stray = self._printed()[0]

    def fork_keeper(self) -> list[int]:
        """The pids of a new keeper and its program."""
        return self._told("keeper")

    def rename(self) -> None:
        """Become a keeper, and the stray its program."""
        assert self._told("rename") == [0]

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def _told(self, order: str) -> list[int]:
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return self._printed()

    def _printed(self) -> list[int]:
        assert self._process.stdout is not None
        return [int(word) for word in self._process.stdout.readline().split()]


@contextmanager
def superior() -> Generator[Superior]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-I", "-S", SUPERIOR]
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as process:
        try:
            yield Superior(process)
        finally:
            for pid in descendants(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.kill()


@pytest.mark.parametrize(
    "deed", [helper_watch.end_strays, helper_watch.relieve, helper_watch.end_all]
)
def test_a_keeper_that_is_forked_meanwhile_lives_on_with_its_program(
    monkeypatch: pytest.MonkeyPatch, deed: Callable[[int], object]
) -> None:
    with superior() as zygote:
        forked: list[int] = []
        signalled = noted(monkeypatch)

        def kill_tree(root: int, *spare: object, **more: object) -> None:
            """In the instant between the look at the helpers and the kill."""
            forked.extend(zygote.fork_keeper())
            process_tree.kill_tree(root, *spare, **more)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(helper_watch, "kill_tree", kill_tree)
        if deed is helper_watch.relieve:
            zygote.stop()
        deed(zygote.pid)
        assert len(forked) == 2
        assert signalled == {zygote.stray}


def test_a_fresh_keeper_that_still_had_the_zygotes_name_keeps_its_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with superior() as keeper:
        signalled = noted(monkeypatch)

        def children(pid: int) -> list[int]:
            """In the instant between the look at the names and the look at the children."""
            keeper.rename()
            return process_tree.children(pid)

        monkeypatch.setattr(helper_watch, "children", children)
        assert not helper_watch.end_strays(keeper.pid)
        assert signalled == set()


def noted(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Who would be signalled: what a signal does shows only later."""
    signalled: set[int] = set()

    def send(pid: int, _number: int, is_ours: Callable[[], bool]) -> None:
        if is_ours():
            signalled.add(pid)

    monkeypatch.setattr(process_tree, "send", send)
    return signalled


@pytest.mark.parametrize("condition", ["whole", "starved"])
def test_a_warden_without_a_host_ends_a_helper_that_hangs(condition: str) -> None:
    """One that can open nothing cannot look around, but knows its own children."""
    command = [sys.executable, LONE_WARDEN, condition]
    with subprocess.Popen(command, start_new_session=True) as warden:
        try:
            assert warden.wait(60) == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(warden.pid, signal.SIGKILL)


def test_a_warden_without_a_host_ends_programs_before_their_keepers() -> None:
    """What a keeper knows of its program, such as its exit status, is not lost to haste."""
    command = [sys.executable, LONE_WARDEN, "busy"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as warden:
        try:
            printed, _ = warden.communicate(timeout=60)
            assert printed == b"ended\n"
            assert warden.returncode == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(warden.pid, signal.SIGKILL)
