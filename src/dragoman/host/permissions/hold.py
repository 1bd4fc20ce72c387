"""Keeps what an agent asks for waiting while a person is asked whether its turn may continue.

Once the turn was stopped at a limit, it is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from dragoman.session.facts import TurnTerms


class Held(Protocol):
    """The turn that may be held."""

    @property
    def cancel_requested(self) -> bool: ...


class Audience(Held, Protocol):
    """Whether anyone reads the running turn."""

    @property
    def id(self) -> str: ...

    @property
    def unread(self) -> bool: ...

    @property
    def terms(self) -> TurnTerms | None: ...


class Hold:
    """For one session; `running` is its turn, if one runs."""

    def __init__(self, running: Callable[[], Held | None]) -> None:
        self._running = running
        self._reasons = 0
        self._stopped: Held | None = None
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

    def stop(self, turn: Held) -> None:
        """Nothing passes for as long as this turn runs: the agent may have sent much already."""
        self._stopped = turn

    async def admits(self) -> bool:
        """Wait until it is open; False if the turn that was held has ended, or is being stopped,
        and if the one that runs was stopped at a limit."""
        turn = self._running()
        if not self._reasons:
            return turn is None or turn is not self._stopped
        while self._reasons:
            await self._free.wait()
        return turn is not None and turn is self._running() and not turn.cancel_requested
