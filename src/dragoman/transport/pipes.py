"""The host's ends of a child's standard streams, straight on the event loop.

Each owns one descriptor. Reading stops when nobody takes what was read, so the kernel's pipe
holds the other side back and memory stays bounded.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import termios
from collections.abc import Callable

from dragoman.process import descriptors

# Larger reads map and unmap their buffer each time, which costs more than it saves.
_READ_SIZE = 64 * 1024
# As much as a pipe can be made to hold.
_LAST_READ_SIZE = 1024 * 1024
# `drain` lets the sender continue below this; the kernel's pipe holds as much again.
_LITTLE_QUEUED = 64 * 1024
_TAIL_SIZE = 64 * 1024
# Enough for what a dead child left in the pipe; a living one may never stop.
_LAST_READS = 16


class _Pipe:
    """A descriptor of ours that never blocks."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._fd = descriptor
        self._loop = asyncio.get_running_loop()

    def _read(self, size: int) -> bytes | None:
        """What is there, `b""` at the end, None when there is nothing now."""
        try:
            return os.read(self._fd, size)
        except BlockingIOError:
            return None
        except OSError:  # a terminal whose other side is closed gives EIO
            return b""

    def close(self) -> None:
        if self._fd >= 0:
            descriptor, self._fd = self._fd, -1
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)
            descriptors.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            descriptors.close(self._fd)


class OutputPipe(_Pipe):
    """What the child prints, for one reader; at most one read ahead of it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._ahead = b""
        self._ended = False
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._loop.add_reader(descriptor, self._readable)

    async def receive(self) -> bytes:
        """The next bytes, or `b""` at the end."""
        while not self._ahead and not self._ended:
            self._waiter = self._loop.create_future()
            await self._waiter
        data, self._ahead = self._ahead, b""
        if self._paused and not self._ended:
            self._paused = False
            self._loop.add_reader(self._fd, self._readable)
        return data

    def _readable(self) -> None:
        if self._ahead:
            self._paused = True
            self._loop.remove_reader(self._fd)
            return
        data = self._read(_READ_SIZE)
        if data:
            self._ahead = data
            self._wake()
        elif data is not None:
            self.end()

    def cut(self) -> None:
        """End with what is in the pipe now, though someone still holds its other side."""
        if not self._ended:
            self._ahead += self._read(_LAST_READ_SIZE) or b""
            self.end()

    def discard(self) -> None:
        """End for the reader at once; what the child still prints is thrown away."""
        if not self._ended:
            self._ahead = b""
            self._ended = True
            self._wake()
            self._loop.add_reader(self._fd, self._throw_away)

    def _throw_away(self) -> None:
        if self._read(_READ_SIZE) == b"":
            self.close()

    def end(self) -> None:
        self._ended = True
        self._wake()
        self.close()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class InputPipe(_Pipe):
    """What the child reads: written at once when it can be, else queued, in order."""

    def __init__(self, descriptor: int, on_refused: Callable[[int], None] | None = None) -> None:
        """`on_refused` gets the number of bytes lost when the child has closed its side."""
        super().__init__(descriptor)
        self._on_refused = on_refused
        self._queue = bytearray()
        self._room = asyncio.Event()
        self._room.set()
        self._finishing = False

    @property
    def pending(self) -> int:
        return len(self._queue)

    @property
    def unread(self) -> int:
        """With what the kernel holds of it, where that can be asked."""
        if self._fd < 0:
            return 0
        try:
            held = fcntl.ioctl(self._fd, termios.FIONREAD, bytes(4))
        except OSError:
            return self.pending
        return self.pending + int.from_bytes(held, sys.byteorder)

    def send(self, data: bytes) -> None:
        """Queue bytes; after the end they are dropped."""
        if self._fd < 0 or self._finishing:
            return
        if self._queue:
            self._enqueue(data)
            return
        sent = self._write(data)
        if sent is None:
            self._refused(len(data))
        elif sent < len(data):
            self._enqueue(memoryview(data)[sent:])
            self._loop.add_writer(self._fd, self._writable)

    async def drain(self) -> None:
        """Wait until little enough is queued, or nobody will ever read it."""
        await self._room.wait()

    def finish(self) -> None:
        """Close once everything queued is written."""
        self._finishing = True
        if not self._queue:
            self.close()

    def close(self) -> None:
        self._queue.clear()
        self._room.set()
        super().close()

    def _enqueue(self, data: bytes | memoryview) -> None:
        self._queue += data
        if len(self._queue) > _LITTLE_QUEUED:
            self._room.clear()

    def _writable(self) -> None:
        with memoryview(self._queue) as queued:
            sent = self._write(queued)
        if sent is None:
            self._refused(len(self._queue))
            return
        del self._queue[:sent]
        if len(self._queue) <= _LITTLE_QUEUED:
            self._room.set()
        if not self._queue:
            self._loop.remove_writer(self._fd)
            if self._finishing:
                self.close()

    def _refused(self, lost: int) -> None:
        self.close()
        if self._on_refused is not None:
            self._on_refused(lost)

    def _write(self, data: bytes | memoryview) -> int | None:
        """How much was taken; None when the child has closed its side."""
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError:
            return None


class DescriptorPair:
    """What every transport has that reads one descriptor and writes another, and owns both: they
    are the output and the input of the other side."""

    def __init__(
        self, readable: int, writable: int, on_refused: Callable[[int], None] | None = None
    ) -> None:
        self._output = OutputPipe(readable)
        self._input = InputPipe(writable, on_refused)

    async def receive(self) -> bytes:
        return await self._output.receive()

    def send(self, data: bytes) -> None:
        self._input.send(data)

    async def drain(self) -> None:
        await self._input.drain()

    @property
    def pending(self) -> int:
        return self._input.pending

    async def aclose(self) -> None:
        self._output.close()
        self._input.finish()


class TailPipe(_Pipe):
    """What the child complains about: always drained, the last of it kept."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._tail = bytearray()
        self._loop.add_reader(descriptor, self._readable)

    def text(self) -> str:
        """The end of what was printed so far."""
        for _ in range(_LAST_READS):
            if self._fd < 0 or not self._take():
                break
        return self._tail[-_TAIL_SIZE:].decode(errors="replace")

    def _readable(self) -> None:
        self._take()

    def _take(self) -> bool:
        data = self._read(_READ_SIZE)
        if data == b"":
            self.close()
        if data:
            self._tail += data
            del self._tail[:-_TAIL_SIZE]
        return bool(data)
