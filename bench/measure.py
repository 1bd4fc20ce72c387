"""Runs the columns of a row in turn, so that the machine's noise hits all alike."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.prepare import BUILD, HERE, Missing

Figures = dict[str, float]
Column = Callable[[], Figures]
Samples = dict[str, list[Figures] | Missing]

_TIMEOUT_SECONDS = 600.0
_ORPHAN_SECONDS = 10.0
_PR_SET_CHILD_SUBREAPER = 36


def interleave(columns: Mapping[str, Column | Missing], rounds: int) -> Samples:
    """Every column's figures, round by round; a column that fails is out from then on."""
    samples: Samples = {
        name: column if isinstance(column, Missing) else [] for name, column in columns.items()
    }
    for _ in range(rounds):
        for name, column in columns.items():
            kept = samples[name]
            if isinstance(column, Missing) or isinstance(kept, Missing):
                continue
            try:
                kept.append(column())
            except Missing as missing:
                samples[name] = missing
    return samples


def run(command: Sequence[str], *, reads: bool = True) -> Figures:
    """Run a program to its end: what it prints as JSON, and the cost of the whole process tree."""
    cpu, wall = _children_cpu(), time.perf_counter()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=_environment(),
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"took more than {_TIMEOUT_SECONDS:.0f} s") from None
    wall = time.perf_counter() - wall
    _reap_orphans()
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Missing(f"failed: {lines[-1]}")
    printed: Figures = json.loads(done.stdout or "{}") if reads else {}
    return {"process_cpu_s": _children_cpu() - cpu, "process_wall_s": wall, **printed}


def run_beside_what_stays(command: Sequence[str], home: Path) -> Figures:
    """The same with a home of its own, for a program that leaves a process behind on purpose: only
    how long it takes, since what it has the other process do is not its own CPU."""
    own = {"HOME": str(home), "DRAGOMAN_HOME": str(home / "dragoman"), "CI": ""}
    wall = time.perf_counter()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=home,
        env=_environment() | own,
        stdin=subprocess.DEVNULL,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    wall = time.perf_counter() - wall
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Missing(f"failed: {lines[-1]}")
    return {"process_wall_s": wall}


def _environment() -> dict[str, str]:
    """Ours, except that compiled Python is kept: a package that is installed is compiled too."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env |= {"PYTHONPATH": str(HERE.parent), "PYTHONPYCACHEPREFIX": str(BUILD / "pycache")}
    return env | {"CI": "1"}  # no agent stays after a run, unless a row is about that


def use_two_cores() -> None:
    """Restrict this run, and everything it starts, to the two cores the goals are made for."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


@contextmanager
def one_core() -> Generator[None]:
    """While this lasts, everything that is started shares a core."""
    if sys.platform != "linux":
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(cores)])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def adopt_orphans() -> None:
    """Make what a client leaves behind ours to wait for, so that its CPU is counted too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap_orphans() -> None:
    deadline = time.monotonic() + _ORPHAN_SECONDS
    try:
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
    except ChildProcessError:
        return
    raise Missing(f"left processes behind: {', '.join(_killed_children())}")


def end_what_stays() -> None:
    """Kill what programs have left behind on purpose; it became ours."""
    for pid in _children():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _reap_orphans()


def _children() -> list[int]:
    return list(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


def _killed_children() -> Iterator[str]:
    """Our children, by the names of their commands; the next column must not meet them."""
    for pid in _children():
        yield Path(f"/proc/{pid}/comm").read_text().strip()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
