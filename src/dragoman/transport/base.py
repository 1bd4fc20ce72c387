"""What every way of reaching an agent has in common: bytes in, bytes out, and why it ended.

A transport knows neither frames nor messages. Pipes in memory and processes implement it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeAlias

from dragoman.errors import ConnectionLost, StartError

Side: TypeAlias = Literal["here", "there"]
"""Where the folders of an agent's sessions are: on this machine, or where the agent runs."""


class Transport(Protocol):
    """A two-way stream of bytes to an agent. One reader; senders need not wait their turn."""

    async def receive(self) -> bytes:
        """The next bytes, at once if any are there; `b""` at the end, again and again."""
        ...

    def send(self, data: bytes) -> None:
        """Queue bytes, in order, without blocking. After the end they are dropped in silence:
        the reader is the one who learns the reason."""
        ...

    async def drain(self) -> None:
        """Wait until little enough is queued, or nothing will ever be taken again."""
        ...

    @property
    def pending(self) -> int:
        """How many bytes are queued and not yet taken by the other side."""
        ...

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionLost | StartError:
        """Why `receive` came to its end. `spoke` tells whether a valid message ever came,
        `printed` is a sample of what came instead."""
        ...

    async def aclose(self) -> None:
        """End the connection and what stands behind it, in good order; may be called again."""
        ...


Start: TypeAlias = Callable[[], Awaitable[Transport]]
"""Connects to an agent, anew each time; raises StartError, and ConnectionLost for a proxy."""
