"""Keeps what an agent asks for waiting while a person is asked whether its turn may continue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Held(Protocol):
    """The turn that may be held."""

    @property
    def cancel_requested(self) -> bool: ...


class Hold:
    """For one session; `running` is its turn, if one runs."""

    def __init__(self, running: Callable[[], Held | None]) -> None:
        self._running = running
        self._reasons = 0
        self._free = asyncio.Event()
        self._free.set()

    def close(self) -> None:
        """Nothing passes until this is taken back with `open`."""
        self._reasons += 1
        self._free.clear()

    def open(self) -> None:
        self._reasons -= 1
        if not self._reasons:
            self._free.set()

    async def admits(self) -> bool:
        """Wait until it is open; False if the turn that was held has ended, or is being stopped."""
        if not self._reasons:
            return True
        turn = self._running()
        while self._reasons:
            await self._free.wait()
        return turn is not None and turn is self._running() and not turn.cancel_requested
