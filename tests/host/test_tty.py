"""The side of a terminal that we read."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from host.watching import KINDS, until

from dragoman.host.terminals.pty import Output

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals need Linux or macOS")


@contextmanager
def opened(taken: list[bytes], *, use_pty: bool) -> Generator[Output]:
    output = Output(taken.append, use_pty=use_pty)
    try:
        yield output
    finally:
        output.close()


@KINDS
async def test_draining_takes_all_that_was_printed_as_one_piece(use_pty: bool) -> None:
    taken: list[bytes] = []
    with opened(taken, use_pty=use_pty) as output:
        printed = _fill(output.theirs)
        assert printed > 10_000
        output.drain()
        assert [len(piece) for piece in taken] == [printed]
        output.drain()
        assert len(taken) == 1


async def test_draining_comes_to_an_end_though_the_printing_does_not() -> None:
    class Endless(Output):
        def _read(self) -> bytes:
            assert len(taken) == 0
            self.left -= 1
            assert self.left
            return b"y"

        left = 10_000

    taken: list[bytes] = []
    output = Endless(taken.append, use_pty=True)
    output.drain()
    output.close()
    assert len(taken) == 1


@KINDS
async def test_reading_ends_when_nobody_holds_the_other_side(use_pty: bool) -> None:
    taken: list[bytes] = []
    with opened(taken, use_pty=use_pty) as output:
        output.begin()
        os.write(output.theirs, b"last words")
        output.let_go()
        await until(lambda: not output.is_open)
        output.drain()
    assert b"".join(taken) == b"last words"


def _fill(terminal: int) -> int:
    """Print until there is no room."""
    os.set_blocking(terminal, False)
    size = 0
    try:
        while True:
            size += os.write(terminal, b"x" * 1000)
    except BlockingIOError:
        return size
