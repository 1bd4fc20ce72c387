"""A transport that does as it is told, for what memory pipes never do."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.errors import ConnectionClosed, ConnectionLost


class FakeTransport:
    """A transport that gives what it is fed, and then the failure it was made with."""

    def __init__(self, failure: ConnectionLost | None) -> None:
        self.sent: list[bytes] = []
        self.asked: dict[str, Any] = {}
        self.pending = 0
        self._failure = failure or ConnectionClosed("the agent closed the connection")
        self._input: asyncio.Queue[bytes | Exception] = asyncio.Queue()

    @classmethod
    def with_input(
        cls, *chunks: bytes | Exception, failure: ConnectionLost | None = None
    ) -> FakeTransport:
        transport = cls(failure)
        transport.feed(*chunks)
        return transport

    def feed(self, *chunks: bytes | Exception) -> None:
        for chunk in chunks:
            self._input.put_nowait(chunk)

    async def receive(self) -> bytes:
        data = await self._input.get()
        if isinstance(data, Exception):
            raise data
        return data

    def send(self, data: bytes) -> None:
        self.sent.append(data)

    async def drain(self) -> None:
        await asyncio.Event().wait()

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionLost:
        self.asked = {"spoke": spoke, "printed": printed}
        return self._failure

    async def aclose(self) -> None:
        pass
