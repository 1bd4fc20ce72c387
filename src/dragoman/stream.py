"""A bounded buffer between the one who produces and one reader that may be slow.

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
    """An async iterator fed by `push`; it ends at `close`, raising the error given there."""

    def __init__(self, limit: int = MAX_STREAM_BYTES) -> None:
        self.limit = limit
        self._items: deque[tuple[Item, int]] = deque()
        self._size = 0
        self._closed = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    def push(self, item: Item, size: int) -> None:
        """Add an item that stands for `size` bytes; ignored once the stream is closed."""
        if self._closed:
            return
        if self._size + size > self.limit:
            self.close(SlowConsumer(self.limit))
            return
        self._items.append((item, size))
        self._size += size
        if self._waiter is not None:
            self._wake()

    def close(self, error: BaseException | None = None) -> None:
        """End the stream behind what was pushed; the first call decides."""
        if not self._closed:
            self._closed = True
            self._error = error
            self._wake()

    def __aiter__(self) -> Stream[Item]:
        return self

    async def __anext__(self) -> Item:
        while not self._items:
            if self._closed:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        item, size = self._items.popleft()
        self._size -= size
        return item

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
