"""Everything that happens in a session, from its very beginning, for the one who shows it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dragoman.errors import SlowConsumer
from dragoman.session import events as e

if TYPE_CHECKING:
    from dragoman.client.session import Session

MAX_BYTES = 64 * 1024 * 1024
_SMALL = 256


class Feed:
    """`push` is the `listen` of a client. Raises SlowConsumer when too much waits to be shown."""

    def __init__(self) -> None:
        self._events: list[e.Event] = []
        self._size = 0
        self._error: BaseException | None = None
        self._there = asyncio.Event()
        self.commands_told = asyncio.Event()
        """Set once the agent has told its commands, be it none."""

    def push(self, session: Session, event: e.Event) -> None:
        if isinstance(event, e.CommandsChanged):
            self.commands_told.set()
        self._size += _SMALL + len(event.text)
        if self._size <= MAX_BYTES:
            self._events.append(event)
        else:
            self.fail(SlowConsumer(MAX_BYTES))
        self._there.set()

    def fail(self, error: BaseException) -> None:
        """Have whoever reads raise this."""
        self._error = self._error or error
        self._there.set()

    def take(self) -> list[e.Event]:
        """What is there now."""
        if self._error is not None:
            raise self._error
        events, self._events = self._events, []
        self._size = 0
        self._there.clear()
        return events

    async def wait(self) -> None:
        """Until there is something to take."""
        await self._there.wait()
