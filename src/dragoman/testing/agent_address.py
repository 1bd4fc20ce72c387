"""How an agent of ours is reached: in the same program, or on standard input and output."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from dragoman.testing.agent_stdio import serve_stdio
from dragoman.transport.base import Transport
from dragoman.transport.memory import memory_pair


class Served(ABC):
    """Knows how to `serve`; the rest is here."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def serve(self, transport: Transport) -> None:
        """Be an agent on this transport until the client goes away."""

    def connect(self) -> Transport:
        """A transport for `Client.start`, with this agent at its other end."""
        ours, theirs = memory_pair()
        task = asyncio.create_task(self.serve(ours))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return theirs

    def serve_stdio(self) -> None:
        """Be this process's agent on standard input and output until the input ends."""
        serve_stdio(self.serve)

    def close(self) -> None:
        """End every connection that `connect` made."""
        for task in self._tasks:
            if not task.get_loop().is_closed():
                task.cancel()
