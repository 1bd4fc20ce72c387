"""A response that stays open while there is something to send, and ends with its reader.

It holds one piece at a time and no queue. A reader that does not take a piece in time is
disconnected; it can reconnect with its cursor and loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.types import Receive, Scope, Send

logger = logging.getLogger("dragoman.web")

STALL_SECONDS = 20.0
BEAT_SECONDS = 15.0
_SLOW_SECONDS = 0.25

ABORT = "dragoman.abort"
"""Where the scope has what ends a connection at once, whatever was not sent yet."""

T = TypeVar("T")


@dataclass
class Pace:
    """Whether the reader kept up with the last piece it was sent."""

    slow: bool = False


class StreamedResponse:
    """Sends what the generator yields; `pace` reports to it whether the reader keeps up."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes],
        headers: Mapping[str, str],
        pace: Pace | None = None,
        *,
        stall_seconds: float | None = None,
    ) -> None:
        self._pieces = pieces
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._pace = pace or Pace()
        self._stall_seconds = STALL_SECONDS if stall_seconds is None else stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send_all(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except TimeoutError:
            logger.info("disconnected a reader that read nothing for %g s", self._stall_seconds)
            _abort(scope)
        finally:
            await _ended(sending, leaving)
            await self._pieces.aclose()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        async for piece in self._pieces:
            started = time.monotonic()
            async with asyncio.timeout(self._stall_seconds):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            self._pace.slow = time.monotonic() - started > _SLOW_SECONDS
        async with asyncio.timeout(self._stall_seconds):
            await send({"type": "http.response.body", "body": b""})


def _abort(scope: Scope) -> None:
    """Closing would wait for what the reader does not take."""
    if (abort := scope.get(ABORT)) is not None:
        abort()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    """Nobody looks at how they ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()


async def with_beats(
    batches: AsyncIterator[T],
    closing: asyncio.Event,
    beat: Callable[[], float] = lambda: BEAT_SECONDS,
) -> AsyncGenerator[T | None]:
    """The batches, and None when there was none for a while; ends when the server does."""
    ending = asyncio.create_task(_wait(closing))
    upcoming: asyncio.Task[T | None] | None = None
    try:
        while not closing.is_set():
            upcoming = upcoming or asyncio.create_task(_next(batches))
            await asyncio.wait(
                {upcoming, ending}, timeout=beat(), return_when=asyncio.FIRST_COMPLETED
            )
            if not upcoming.done():
                if not ending.done():
                    yield None
                continue
            batch, upcoming = upcoming.result(), None
            if batch is None:
                return
            yield batch
    finally:
        await _ended(ending, *([] if upcoming is None else [upcoming]))
        if isinstance(batches, AsyncGenerator):
            await batches.aclose()


async def merged(*sources: AsyncIterator[T]) -> AsyncGenerator[T]:
    """What any of them tells, as it comes; ends with the first that does."""
    upcoming = {asyncio.create_task(_next(source)): source for source in sources}
    try:
        while True:
            await asyncio.wait(upcoming, return_when=asyncio.FIRST_COMPLETED)
            for task in [each for each in upcoming if each.done()]:
                source, item = upcoming.pop(task), task.result()
                if item is None:
                    return
                upcoming[asyncio.create_task(_next(source))] = source
                yield item
    finally:
        await _ended(*upcoming)
        for source in sources:
            if isinstance(source, AsyncGenerator):
                await source.aclose()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _next(batches: AsyncIterator[T]) -> T | None:
    return await anext(batches, None)
