"""Two connected transports in one process, for tests and for agents that live in the same program.

Bytes arrive on a later turn of the event loop, in the order sent, as from a pipe.
"""

from __future__ import annotations

import asyncio
from collections import deque

from dragoman.errors import ConnectionClosed

_DRAINED_BELOW = 256 * 1024


class _Pipe:
    """One direction."""

    def __init__(self) -> None:
        self.size = 0
        self.ended = False
        self._chunks: deque[bytes] = deque()
        self._changed = asyncio.Event()

    def put(self, data: bytes) -> None:
        if data and not self.ended:
            self._chunks.append(data)
            self.size += len(data)
            self._changed.set()

    async def take(self) -> bytes:
        while not self._chunks and not self.ended:
            await self.change()
        data = self._chunks.popleft() if self._chunks else b""
        self.size -= len(data)
        self._changed.set()
        return data

    async def change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def end(self) -> None:
        self.ended = True
        self._changed.set()


class MemoryTransport:
    """One end of a pair; make both with `memory_pair()`."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> bytes:
        # Always let the loop run once: a flood must not starve everyone else.
        await asyncio.sleep(0)
        return await self._incoming.take()

    def send(self, data: bytes) -> None:
        self._outgoing.put(data)

    @property
    def pending(self) -> int:
        return self._outgoing.size

    async def drain(self) -> None:
        while self._outgoing.size > _DRAINED_BELOW and not self._outgoing.ended:
            await self._outgoing.change()

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionClosed:
        return ConnectionClosed("the other side closed the connection")

    async def aclose(self) -> None:
        self._incoming.end()
        self._outgoing.end()


def memory_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Two transports; what one sends, the other receives."""
    there, back = _Pipe(), _Pipe()
    return MemoryTransport(there, back), MemoryTransport(back, there)
