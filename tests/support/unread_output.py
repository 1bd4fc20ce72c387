"""Where nobody reads: a terminal after Ctrl-S, a pager, a hung ssh."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def unread_fifo(path: Path) -> Generator[int]:
    """A FIFO, open for reading; see `fill`."""
    os.mkfifo(path)
    opened = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield opened
    finally:
        os.close(opened)


def fill(fifo: int) -> None:
    """From now on whoever writes to it waits."""
    for size in (4096, 1):
        with suppress(BlockingIOError):
            while True:
                os.write(fifo, b"\n" * size)
