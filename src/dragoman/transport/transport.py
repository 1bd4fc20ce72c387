"""The interface of every transport: bytes in, bytes out, and why it ended.

A transport knows neither frames nor messages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeAlias

from dragoman.errors import ConnectionLost, StartError

Side: TypeAlias = Literal["here", "there"]
"""Where the folders of an agent's sessions are: on this machine, or where the agent runs."""


class Transport(Protocol):
    """A two-way stream of bytes to an agent, with one reader and any number of senders."""

    async def receive(self) -> bytes:
        """The next bytes; `b""` at the end, also when called again."""
        ...

    def send(self, data: bytes) -> None:
        """Queue bytes, in order, without blocking. After the end they are dropped silently; the
        reader learns the reason."""
        ...

    async def drain(self) -> None:
        """Wait until the queue is short, or the connection has ended."""
        ...

    @property
    def pending(self) -> int:
        """The number of bytes that are queued and not yet accepted by the other side."""
        ...

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionLost | StartError:
        """Why `receive` ended. `spoke` says whether a valid message ever came, `printed` is a
        sample of what came instead."""
        ...

    async def aclose(self) -> None:
        """End the connection, and the process behind it, in order; may be called again."""
        ...


Start: TypeAlias = Callable[[], Awaitable[Transport]]
"""Opens a new connection to an agent; raises StartError, and ConnectionLost for a proxy."""
