"""How much work a function is, for tests that it grows no faster than its input."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """The least CPU time of a few runs: what other programs do does not count."""
    return min(_cpu_seconds(work) for _ in range(repeat))


def _cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


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
