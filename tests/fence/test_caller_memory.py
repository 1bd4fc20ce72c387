"""What a system call is about is read from the memory of its caller."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import subprocess
import sys

import pytest

from dragoman.fence.caller_memory import CallerMemory, Unreadable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")

PAGE = mmap.PAGESIZE
_unmap = ctypes.CDLL(None)["munmap"]
_unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


@pytest.fixture(params=[True, False], ids=["quick", "by file"])
def memory(request: pytest.FixtureRequest) -> CallerMemory:
    """Our own."""
    found = CallerMemory(quick=request.param)
    found.turn_to(os.getpid(), 8)
    return found


def address_of(buffer: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def test_a_text_ends_at_its_nul_also_on_a_later_page(memory: CallerMemory) -> None:
    buffer = mmap.mmap(-1, 3 * PAGE)
    buffer[: 2 * PAGE] = b"x" * (2 * PAGE)
    buffer[PAGE - 3 : PAGE + 3] = b"ab\0cd\0"
    start = address_of(buffer)
    assert memory.text(start + PAGE - 3, 4096) == b"ab"
    assert memory.text(start + PAGE, 4096) == b"cd"
    assert memory.text(start + PAGE + 3, 8192) == b"x" * (PAGE - 3)


def test_a_text_is_no_longer_than_was_wanted(memory: CallerMemory) -> None:
    buffer = mmap.mmap(-1, 2 * PAGE)
    buffer[:PAGE] = b"x" * PAGE
    assert memory.text(address_of(buffer), 100) == b"x" * 100


def test_where_the_memory_ends_a_text_does_and_nothing_of_the_one_before_is_in_it(
    memory: CallerMemory,
) -> None:
    buffer = mmap.mmap(-1, 2 * PAGE)
    start = address_of(buffer)
    buffer[:PAGE] = b"secret" * (PAGE // 6) + b"tail"
    assert memory.text(start, PAGE)[:6] == b"secret"
    buffer[PAGE - 4 : PAGE] = b"last"
    assert _unmap(start + PAGE, PAGE) == 0
    assert memory.text(start + PAGE - 4, 4096) == b"last"
    for nowhere in (start + PAGE, 0, 1 << 63, (1 << 64) - 8):
        assert memory.text(nowhere, 4096) == b""
        assert memory.read(nowhere, 16) == b""


@pytest.mark.parametrize(("pointer", "form"), [(8, "Q"), (4, "I")])
def test_a_list_of_words_ends_at_its_null_or_where_there_is_no_room(
    pointer: int, form: str
) -> None:
    memory = CallerMemory()
    memory.turn_to(os.getpid(), pointer)
    # Below 4 GB, where the addresses of narrow programs are.
    buffer = mmap.mmap(-1, PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40)
    start = address_of(buffer)
    buffer[:8] = b"one\0two\0"
    listed = struct.pack(f"3{form}", start, start + 4, 0)
    buffer[64 : 64 + len(listed)] = listed
    assert memory.words(start + 64, 100) == ([b"one", b"two"], True)
    assert memory.words(start + 64, 4) == ([b"one"], False)


def test_who_may_not_be_read_or_is_gone_is_unreadable() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    memory = CallerMemory()
    memory.turn_to(gone.pid, 8)
    with pytest.raises(Unreadable):
        memory.text(4096, 10)
