"""Whatever an agent's processes are like and however their owner ends, none of them is left.

Each way to end is one run of a host program with an agent of every shape; each pair of a way
and a shape is a case. The control shows that the same look finds what a naive host leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from process.survivors import (
    Found,
    descendants,
    lingers,
    registered,
    started,
    survivors,
    survivors_after,
)

from dragoman.host.fence.fence import support

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

HOST = Path(__file__).parent / "programs" / "host.py"
SHAPES = [
    "plain", "deaf", "setsid", "daemon", "shell_waits", "shell_then_true", "shell_leaves",
    "two_shells", "hydra", "respawner", "stopped", "chain", "wide", "holder", "closer", "blocker",
    "noisy", "talker", "zombies", "nested", "threads", "storm", "comet",
    "stopper", "quitter",
]  # fmt: skip
# The way to end, and what the test does to the host once everything stands.
WAYS = {
    "aclose": None,
    "cancelled": None,
    "cancelled_while_closing": None,
    "exception": None,
    "crashed": None,
    "forgotten_loop": None,
    "interrupted": signal.SIGINT,
    "killed": signal.SIGKILL,
    "terminated": signal.SIGTERM,
    "killed_with_unread_reports": signal.SIGKILL,
    "killed_with_a_fork_left": signal.SIGKILL,
    "left_without_closing": None,
}
FENCED_WAYS = ["fenced:aclose", "fenced:crashed", "fenced:interrupted", "fenced:killed"]
"""With a fence around each agent: closed, ended by an error, by a signal, and by one it cannot
notice."""
MORE_FENCED_WAYS = [way for each in WAYS if (way := f"fenced:{each}") not in FENCED_WAYS]
SECONDS = 60.0
"""Only a failure takes that long, and no shape ends by itself before that."""
RUN_SECONDS = 240.0
"""No run of a host takes longer; one that hangs is ended, and then fails."""


class Outcome(NamedTuple):
    """What was seen of one shape after one way to end."""

    processes: int
    left: list[Found]


class Run(NamedTuple):
    """One host program: an outcome for each shape, and helper processes that stayed."""

    outcomes: dict[str, Outcome]
    helpers: set[int]


def run_host(way: str) -> Run:
    token = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder, host(way, folder, token, SHAPES) as process:
        expect(process, "ready")
        below = {pid: started(pid) for pid in descendants(process.pid)}
        end_host(process, way)
        deadline = time.monotonic() + SECONDS
        outcomes = {
            shape: look(Path(folder) / shape, f"{token}-{shape}.", deadline) for shape in SHAPES
        }
        # A failure must not leave its evidence running.
        end_survivors(Path(folder), token, SHAPES)
        process.communicate(timeout=SECONDS)
        return Run(outcomes, left_of(below))


@contextmanager
def host(way: str, folder: str, token: str, shapes: list[str]) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, str(HOST), way, folder, token, *shapes]
    pipe = subprocess.PIPE
    # Its own session, so that nothing sent to it can reach the tests.
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    bound = threading.Timer(RUN_SECONDS, process.kill)
    bound.start()
    with process:
        try:
            yield process
        finally:
            bound.cancel()
            process.kill()


def end_host(process: subprocess.Popen[str], way: str) -> None:
    way = way.removeprefix("fenced:")
    if way == "killed_with_unread_reports":
        expect(process, "busy")
    if way == "killed_with_a_fork_left":
        expect(process, "forked")
    number = WAYS[way]
    if number is not None:
        process.send_signal(number)
    match way:
        case "left_without_closing":
            process.wait(timeout=SECONDS)
        case _ if number in (signal.SIGKILL, signal.SIGTERM):
            process.wait(timeout=SECONDS)
        case "interrupted":
            expect(process, "interrupted")
            expect(process, "done")
        case _:
            expect(process, "done")


def expect(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == word + "\n"


def look(pidfile: Path, marker: str, deadline: float) -> Outcome:
    left = survivors_after(deadline - time.monotonic(), pidfile, marker)
    return Outcome(registered(pidfile), left)


def left_of(processes: dict[int, str]) -> set[int]:
    """Which of these, by pid and start time, are there after some seconds from now."""

    def look_again() -> set[int]:
        return {pid for pid, born in processes.items() if lingers(pid) and started(pid) == born}

    deadline = time.monotonic() + SECONDS
    while (left := look_again()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def end_survivors(folder: Path, token: str, shapes: list[str]) -> None:
    """End what this very run has left, by pid, again while its supervisors start more."""
    deadline = time.monotonic() + SECONDS
    while (left := all_survivors(folder, token, shapes)) and time.monotonic() < deadline:
        for found in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
        time.sleep(0.02)


def all_survivors(folder: Path, token: str, shapes: list[str]) -> list[Found]:
    left = survivors([folder / shape for shape in shapes], f"{token}-")
    return [found for found in left if found.state != "Z"]


@functools.cache
def can_enclose() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(support(folder)).way == "namespaces"


def must_be_possible(way: str) -> None:
    if way.startswith("fenced:") and not can_enclose():
        pytest.skip("this system cannot build a fence of namespaces")


def run_of(way: str) -> Run:
    must_be_possible(way)
    rare = way in MORE_FENCED_WAYS
    return runs(rare=rare)[way].result()


@functools.cache
def runs(*, rare: bool) -> dict[str, Future[Run]]:
    """Every way to end, two at a time; a test waits for its own."""
    fenced = MORE_FENCED_WAYS if rare else FENCED_WAYS
    ways = [*(() if rare else WAYS), *(fenced if can_enclose() else ())]
    with ThreadPoolExecutor(2) as pool:
        return {way: pool.submit(run_host, way) for way in ways}


every_way = pytest.mark.parametrize(
    "way",
    [
        *(*WAYS, *FENCED_WAYS),
        *(pytest.param(way, marks=pytest.mark.soak) for way in MORE_FENCED_WAYS),
    ],
)


@pytest.mark.parametrize("shape", SHAPES)
@every_way
def test_nothing_is_left(way: str, shape: str) -> None:
    outcome = run_of(way).outcomes[shape]
    assert outcome.processes > 0
    assert outcome.left == []


@every_way
def test_no_helper_process_is_left_when_the_host_has_ended(way: str) -> None:
    assert run_of(way).helpers == set()


def test_there_are_enough_cases() -> None:
    assert len(SHAPES) * len(WAYS) >= 150


def test_control_a_naive_host_leaves_survivors_and_zombies() -> None:
    token = uuid.uuid4().hex
    # Nobody could catch a comet from outside.
    shapes = [shape for shape in SHAPES if shape != "comet"]
    with tempfile.TemporaryDirectory() as folder, host("naive", folder, token, shapes) as process:
        try:
            expect(process, "ready")
            expect(process, "done")
            plain = states_once_dead(Path(folder) / "plain", f"{token}-plain.")
            others = all_survivors(Path(folder), token, SHAPES)
        finally:
            end_survivors(Path(folder), token, SHAPES)
    assert plain == ["Z"]
    for shape in set(shapes) - {"plain"}:
        assert any(f"{token}-{shape}." in found.command for found in others), shape


def states_once_dead(pidfile: Path, marker: str) -> list[str]:
    """The state of each process, waiting a while for all of them to be dead."""
    deadline = time.monotonic() + SECONDS
    while True:
        states = [found.state for found in survivors([pidfile], marker)]
        if set(states) <= {"Z"} or time.monotonic() > deadline:
            return states
        time.sleep(0.02)
