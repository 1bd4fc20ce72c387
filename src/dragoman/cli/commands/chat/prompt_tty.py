"""Questions of the agent, put to the person at the prompt instead of at the bare terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from dragoman.cli.ask.asker import Tty
from dragoman.cli.commands.chat.screen import Screen

# Nobody reads a question in less: what comes sooner was typed for something else.
READING_SECONDS = 0.7


class PromptTty(Tty):
    """The terminal as `TerminalAsker` knows it: it writes a question and waits for a line.

    `on_change` is called when there is a question to be answered, or one that no longer is.
    """

    def __init__(self, screen: Screen, on_change: Callable[[], None]) -> None:
        self.open: asyncio.Future[str | None] | None = None
        """The line that is being waited for."""
        self.asked_at = 0.0
        self.settled = asyncio.Event()
        """Set when the asker has received the answer, and asks nothing or something else."""
        self._screen = screen
        self._on_change = on_change

    def write(self, text: str) -> None:
        self._screen.write(text)

    def forget_typed(self) -> None:
        self.asked_at = time.monotonic()

    async def line(self) -> str | None:
        self.settled.clear()
        self.open = asyncio.get_running_loop().create_future()
        self._on_change()
        try:
            return await self.open
        finally:
            self.open = None
            self.settled.set()
            self._on_change()

    def answer(self, text: str | None) -> None:
        """What was typed; None for the end of input."""
        if self.open is not None and not self.open.done():
            self.open.set_result(text)
