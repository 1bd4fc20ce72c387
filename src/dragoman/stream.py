"""A bounded buffer between a producer and one reader, which may be slow.

The producer never waits. A reader that falls more than `limit` bytes behind gets what was kept and
then SlowConsumer, alone: nobody else notices.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from dragoman.errors import SlowConsumer

Item = TypeVar("Item")

MAX_STREAM_BYTES = 64 * 1024 * 1024


class Stream(Generic[Item]):
    """A bounded async iterator; it ends when it is closed, with the error given there, if any."""

    def __init__(self, limit: int = MAX_STREAM_BYTES) -> None:
        self.limit = limit
        self.ready: deque[Item] = deque()
        """What can be read without waiting; the reader may take it from here."""
        self._count = 0
        # Which item each push ended with, and its bytes: they count until all of it was taken.
        self._pushes: deque[tuple[int, int]] = deque()
        self._size = 0
        self._closed = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    def push(self, items: list[Item], size: int) -> None:
        """Add items that stand for `size` bytes; ignored once the stream is closed."""
        if self._closed:
            return
        taken = self._count - len(self.ready)
        while self._pushes and self._pushes[0][0] <= taken:
            self._size -= self._pushes.popleft()[1]
        if self._size + size > self.limit:
            self.close(SlowConsumer(self.limit))
            return
        self.ready.extend(items)
        self._count += len(items)
        self._pushes.append((self._count, size))
        self._size += size
        if self._waiter is not None:
            self._wake()

    def close(self, error: BaseException | None = None) -> None:
        """End the stream after what was pushed; only the first call counts."""
        if not self._closed:
            self._closed = True
            self._error = error
            self._wake()

    def __aiter__(self) -> Stream[Item]:
        return self

    async def __anext__(self) -> Item:
        while not self.ready:
            if self._closed:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.ready.popleft()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
