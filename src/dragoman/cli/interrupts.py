"""Ctrl-C: once cancels, twice ends the agent at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.errors import CancelIgnored

if TYPE_CHECKING:
    from dragoman.client.session import Session

_AGAIN = 0.02


class Interrupts:
    """While this is entered, Ctrl-C is ours. `tell` is given a sentence for the user.

    Outside a turn it ends the run: `on_end` is called, and `pressed` says that it was that.
    """

    def __init__(self, tell: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self.pressed = False
        self._tell = tell
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._session: Session | None = None
        self._cancelling: asyncio.Task[None] | None = None
        self._killing: asyncio.TimerHandle | None = None

    def __enter__(self) -> Interrupts:
        self._before = signal.getsignal(signal.SIGINT)
        self._loop.add_signal_handler(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, self._before)
        for later in (self._cancelling, self._killing):
            if later is not None:
                later.cancel()

    def turn_of(self, session: Session | None) -> None:
        """From here on, Ctrl-C cancels the turn of this session first."""
        self._session = session

    def _interrupt(self) -> None:
        again, self.pressed = self.pressed, True
        if again:
            self._kill()
        elif self._session is not None:
            self._tell("cancelling; Ctrl-C again ends the agent at once")
            self._cancelling = asyncio.create_task(self._cancel(self._session))
        elif self._main is not None:
            self._on_end()
            self._main.cancel()  # an agent gets its time to end

    async def _cancel(self, session: Session) -> None:
        try:
            await session.cancel()
        except CancelIgnored as error:
            self._tell(f"{error}; it is ended")
            self._kill()

    def _kill(self) -> None:
        """Ending in order takes a few steps; none of them is given time."""
        if self._main is not None:
            self._main.cancel()
        self._killing = self._loop.call_later(_AGAIN, self._kill)
