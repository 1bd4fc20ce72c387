"""Memory that a process has freed goes back to the system once there is much of it."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from dragoman.hub.running.running_sessions import FreedMemory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps so much")

# A process of its own: what another test has left free here would be used first.
PROGRAM = """
from pathlib import Path
from dragoman.hub.running.running_sessions import FreedMemory

MIB = 1 << 20

def resident():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) * 1024

memory = FreedMemory(much=16 * MIB)
before = resident()
assert not memory.is_worth_returning
# Too large for Python's own allocator, too small to be mapped one by one.
pieces = [bytes(4096) for _ in range(16_000)]
assert memory.is_worth_returning
pieces[:] = [None if at % 100 else piece for at, piece in enumerate(pieces)]
memory.give_back()
assert resident() - before < 8 * MIB, resident() - before
assert not memory.is_worth_returning
"""


def test_what_lies_between_pieces_in_use_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class Linked:
    """Refers to itself, as a session's parts do to each other."""

    def __init__(self) -> None:
        self.itself = self


def test_what_refers_to_itself_is_freed_and_collecting_takes_little_of_the_time() -> None:
    times = iter([10.0, 10.5, 10.5, 20.5])
    memory = FreedMemory(clock=lambda: next(times))
    linked = Linked()
    seen = weakref.ref(linked)
    gc.disable()
    try:
        del linked
        assert seen() is not None
        memory.give_back()
        assert seen() is None
    finally:
        gc.enable()
    assert memory.pause == 10.0
    assert memory.pause == 0.0
