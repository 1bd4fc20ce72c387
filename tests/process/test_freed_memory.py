"""Memory that a process has freed goes back to the system once there is much of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.process.freed_memory import FreedMemory

MIB = 1 << 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps so much")


def resident() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def test_what_lies_between_pieces_in_use_is_given_back() -> None:
    memory = FreedMemory(much=16 * MIB)
    before = resident()
    assert not memory.is_worth_returning
    # Too large for Python's own allocator, too small to be mapped one by one.
    pieces: list[bytes | None] = [bytes(4096) for _ in range(16_000)]
    assert memory.is_worth_returning
    for at in range(len(pieces)):
        if at % 100:
            pieces[at] = None
    memory.give_back()
    assert resident() - before < 8 * MIB
    assert not memory.is_worth_returning
