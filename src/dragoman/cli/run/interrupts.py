"""Ctrl-C: once cancels, twice ends the agent at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Protocol

from dragoman.cli.standard_streams import interrupt_signal
from dragoman.errors import CancelIgnored

_AGAIN = 0.02


class Cancellable(Protocol):
    """What has a turn: a session, or a turn that another process runs."""

    async def cancel(self) -> None: ...


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
        self._running: Cancellable | None = None
        self._again = ""
        self._cancelling: asyncio.Task[None] | None = None
        self._killing: asyncio.TimerHandle | None = None

    def __enter__(self) -> Interrupts:
        self._number = interrupt_signal()
        self._before = signal.getsignal(self._number)
        self._loop.add_signal_handler(self._number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_signal_handler(self._number)
        signal.signal(self._number, self._before)
        for later in (self._cancelling, self._killing):
            if later is not None:
                later.cancel()

    def turn_of(self, running: Cancellable | None, again: str = "ends the agent at once") -> None:
        """From here on, Ctrl-C cancels this turn first; `again` says what the next one does."""
        self._running, self._again = running, again

    def _interrupt(self) -> None:
        again, self.pressed = self.pressed, True
        if again:
            self._kill()
        elif self._running is not None:
            self._tell(f"cancelling; Ctrl-C again {self._again}")
            self._cancelling = asyncio.create_task(self._cancel(self._running))
        elif self._main is not None:
            self._on_end()
            self._main.cancel()  # an agent gets its time to end

    async def _cancel(self, running: Cancellable) -> None:
        try:
            await running.cancel()
        except CancelIgnored as error:
            self._tell(f"{error}; it is ended")
            self._kill()

    def _kill(self) -> None:
        """Ending in order takes a few steps; none of them is given time."""
        if self._main is not None:
            self._main.cancel()
        self._killing = self._loop.call_later(_AGAIN, self._kill)
