"""Terminal output, with a status line while nothing is written.

The word is drawn below what was written, or where the cursor is at the start of a line, and is
wiped before anything else is written: it never becomes part of what scrolls by.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from dragoman.cli.render.style import DIM, Style
from dragoman.cli.standard_streams import terminal_width
from dragoman.lazy_pattern import lazy_pattern
from dragoman.safe_text import columns, single_line
from dragoman.session import events as e

UNANSWERED = "waiting for an answer"
_QUIET = 0.4
_TICK = 0.1
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WIPE_LINE, _UP = "\x1b[K", "\x1b[A"
_paint = lazy_pattern(r"\x1b\[[0-9;]*m")


class Status:
    """Ticks while it is entered; `write` is the way to the terminal for everyone else.

    Where it is not `visible` nothing is drawn, and `write` just writes.
    """

    def __init__(self, out: TextIO, *, visible: bool, style: Style | None = None) -> None:
        self.floor = asyncio.Lock()
        """Held while nothing may be written over: a question waits for its answer."""
        self.on_quiet: Callable[[], None] = _nothing
        """Called when nothing was written for a while."""
        self._out = out
        self._visible = visible
        self._style = style or Style(colour=True)
        self._column = 0
        self._drawn = False
        self._rested = False
        self._doing = ""
        self._in_turn = False
        self._begun = self._since = time.monotonic()
        self._ticking: asyncio.Task[None] | None = None

    def __enter__(self) -> Status:
        if self._visible:
            self._ticking = asyncio.create_task(self._tick())
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Draw nothing from now on."""
        if self._ticking is not None:
            self._ticking.cancel()
        self.doing("")

    def doing(self, words: str) -> None:
        """What to say from now on; an empty string says nothing."""
        if words != self._doing:
            if not self._in_turn:
                self._begun = time.monotonic()
            self._doing = words
            self.wipe()

    def follow(self, event: e.Event) -> None:
        """While a turn runs, its time is shown, whatever is done in it."""
        match event:
            case e.TurnStarted():
                self._in_turn = True
                ago = max(time.time() - event.at, 0.0) if event.at else 0.0
                self._begun = time.monotonic() - ago
            case e.TurnEnded():
                self._in_turn = False
            case _:
                pass

    @property
    def words(self) -> str:
        """What is done, and since when; nothing while nothing is."""
        return f"{self._doing} · {_lasting(time.monotonic() - self._begun)}" if self._doing else ""

    def heard(self) -> None:
        """Something came, though there may be nothing to show of it yet."""

    def write(self, text: str) -> None:
        if not text:
            return
        self.wipe()
        self._out.write(text)
        self._out.flush()
        self._column = _column_after(text, self._column)
        self._since = time.monotonic()
        self._rested = False

    def fresh_line(self) -> None:
        """Go to the start of a line, if the cursor is not there."""
        if self._column:
            self.write("\n")

    def wipe(self) -> None:
        """Take the word away, for something that is written by another way."""
        if self._drawn:
            self._draw("")
            self._drawn = False

    # ── drawing ───────────────────────────────────────────────────────────────────────────────

    async def _tick(self) -> None:
        for frame in _forever(_FRAMES):
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            if now - self._since < _QUIET:
                continue
            if not self._rested:
                self._rested = True
                self.on_quiet()
            if self._doing and now - self._begun >= _QUIET:
                words = f"{frame} {self.words}"
                self._draw(self._style(single_line(words, terminal_width() - 1), DIM))
                self._drawn = True

    def _draw(self, words: str) -> None:
        at = self._column % terminal_width()
        if self._column and not at:
            return  # between two lines: where the cursor goes from here, terminals disagree
        if at:
            self._out.write(f"\n{words}{_WIPE_LINE}{_UP}\x1b[{at + 1}G")
        else:
            self._out.write(f"\r{words}{_WIPE_LINE}\r")
        self._out.flush()


def _lasting(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _column_after(text: str, column: int) -> int:
    line = _paint.sub("", text).rpartition("\n")
    return columns(line[2]) + (0 if line[1] else column)


def _forever(frames: str) -> Iterator[str]:
    while True:
        yield from frames


def _nothing() -> None:
    pass
