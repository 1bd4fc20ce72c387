"""How much work a function is, for tests that it grows no faster than its input; and how much
memory a process takes."""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path


def cpu_seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """The least CPU time of a few runs: what other programs do does not count."""
    return min(_cpu_seconds(work) for _ in range(repeat))


def is_done_within(seconds: float, work: Callable[[], object], repeat: int = 5) -> bool:
    """Of CPU time, in the best of a few runs; the first that is quick enough is the last."""
    return any(_cpu_seconds(work) < seconds for _ in range(repeat))


def _cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, Python's own among them: no clock is asked."""
    counted = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


class Memory:
    """How many bytes were allocated in a block: at most at once, and still at its end."""

    def __init__(self) -> None:
        self.peak = 0
        self.left = 0

    def __enter__(self) -> Memory:
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.left, self.peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()


def peak_bytes(work: Callable[[], object]) -> int:
    """The most memory that was allocated at once while `work` ran."""
    with Memory() as memory:
        work()
    return memory.peak


def resident_bytes() -> int:
    """The memory of this process now."""
    return _status("VmRSS:") if sys.platform == "linux" else peak_resident_bytes()


def peak_resident_bytes() -> int:
    """The most this process ever had; not ru_maxrss, which starts with that of its parent."""
    if sys.platform == "linux":
        return _status("VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024
