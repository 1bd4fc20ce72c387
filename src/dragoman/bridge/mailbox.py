"""What waits to be read on one stream of events, and by whom: one reader at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator

_PIECE_BYTES = 64 * 1024
_OVERHEAD_BYTES = 64
"""What holding a frame costs beside its bytes: many small ones are much, too."""


class Tally:
    """How much waits in all the mailboxes of a connection. Whoever fills them waits for room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._changed = asyncio.Event()

    def add(self, size: int) -> None:
        self._held += size

    def take(self, size: int) -> None:
        self._held -= size
        self._changed.set()

    async def room(self, stall_seconds: float) -> None:
        """Raises TimeoutError when nobody takes anything for so long."""
        while self._held > self._limit:
            self._changed.clear()
            async with asyncio.timeout(stall_seconds):
                await self._changed.wait()


class Mailbox:
    """Frames for one stream, kept until someone reads them."""

    def __init__(self, tally: Tally) -> None:
        self.is_read = False
        self._tally = tally
        self._frames: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._is_over = False

    def put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._tally.add(len(frame) + _OVERHEAD_BYTES)
        self._changed.set()

    @property
    def is_idle(self) -> bool:
        """Nothing is here, and nobody waits for anything."""
        return not self._frames and not self.is_read

    def end(self) -> None:
        """No more will come; what is there can still be read."""
        self._is_over = True
        self._changed.set()

    async def events(self) -> AsyncGenerator[bytes]:
        """Server-sent events in pieces that are worth a write, and small enough that a slow reader
        is seen to take them."""
        while True:
            while self._frames:
                for part in self._parts():
                    yield part
            if self._is_over:
                return
            self._changed.clear()
            await self._changed.wait()

    def _parts(self) -> Iterator[bytes]:
        """The tally falls as they are taken, which tells that someone reads."""
        piece, held = self._piece()
        try:
            for start in range(0, len(piece), _PIECE_BYTES):
                yield piece[start : start + _PIECE_BYTES]
                taken = min(held, _PIECE_BYTES)
                held -= taken
                self._tally.take(taken)
        finally:
            self._tally.take(held)

    def _piece(self) -> tuple[bytes, int]:
        """Some frames as events, and what they counted."""
        parts: list[bytes] = []
        size = 0
        while self._frames and size < _PIECE_BYTES:
            frame = self._frames.popleft()
            size += len(frame) + _OVERHEAD_BYTES
            # A carriage return would end the line for a reader of events.
            parts.append(b"data: %b\n\n" % frame.replace(b"\r", b" "))
        return b"".join(parts), size
