"""Output above the prompt of a chat: whole lines, events, and a recap of a continued session.

A prompt that is being edited can only be kept intact if nothing but whole lines is written above
it. So lines go out through prompt_toolkit, and the last, unfinished one is drawn with the prompt.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.application.run_in_terminal import run_in_terminal

from dragoman.cli.commands.chat.notifier import Notifier
from dragoman.cli.render.markdown.markdown_stream import MarkdownStream
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import DIM, RED, RESET, Style
from dragoman.cli.render.terminal_view import TerminalView
from dragoman.cli.render.view import Stage
from dragoman.cli.render.wrap import folded
from dragoman.cli.standard_streams import terminal_width
from dragoman.safe_text import sanitise, single_line
from dragoman.session import events as e
from dragoman.session.state import AgentEntry, SessionState, UserEntry

# Often enough to look like a stream, seldom enough for a flood.
_PAUSE = 0.03
_QUIET = 0.4
_paint = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    """Takes text; `run` brings it to the terminal."""

    def __init__(self) -> None:
        self.tail = ""
        """The line that is not over yet, painted."""
        self.on_quiet: Callable[[], None] = _nothing
        """Called when nothing was written for a while."""
        self._lines = ""
        self._changed = asyncio.Event()

    def write(self, text: str) -> None:
        whole, newline, rest = (self.tail + text).rpartition("\n")
        if newline:
            paint = _open_paint(whole)
            self._lines += f"{whole}{RESET if paint else ''}\n"
            rest = paint + rest
        self.tail = rest
        self._changed.set()

    def line(self, text: str) -> None:
        """A line of its own, whatever else is being said."""
        self._lines += f"{text}\n"
        self._changed.set()

    def touch(self) -> None:
        """Something came, though there may be nothing to show of it yet."""
        self._changed.set()

    def drop_tail(self) -> None:
        """The unfinished line was finished by the person who typed behind it."""
        self.tail = ""

    async def run(self) -> None:
        """Bring what was written to the terminal, until cancelled."""
        rested = True
        while True:
            try:
                async with asyncio.timeout(None if rested else _QUIET):
                    await self._changed.wait()
                rested = False
            except TimeoutError:
                rested = True
                self.on_quiet()
            await self.settle()
            await asyncio.sleep(_PAUSE)

    async def settle(self) -> None:
        """Bring out what is there now."""
        self._changed.clear()
        if self._lines:
            lines, self._lines = self._lines, ""
            await run_in_terminal(lambda: _print(lines))
        elif (app := get_app_or_none()) is not None:
            app.invalidate()


class ScreenStatus(Status):
    """The status of a turn, for a screen: the toolbar shows what is going on."""

    def __init__(self, screen: Screen, style: Style) -> None:
        super().__init__(sys.stdout, visible=False, style=style)
        self._screen = screen

    def heard(self) -> None:
        self._screen.touch()

    def write(self, text: str) -> None:
        if text:
            self._screen.write(text)

    def fresh_line(self) -> None:
        if self._screen.tail:
            self._screen.write("\n")

    def wipe(self) -> None:
        pass


class SayLine(Protocol):
    """Prints a sentence above the prompt."""

    def __call__(self, text: str, *codes: str, indent: str = "") -> None: ...


class ChatStage(Stage):
    """One session above the prompt."""

    def __init__(
        self, status: Status, view: TerminalView, say: SayLine, notifier: Notifier
    ) -> None:
        self.status = status
        self._view = view
        self._say = say
        self._notifier = notifier

    def present(self, event: e.Event, state: SessionState, *, known: bool = False) -> None:
        super().present(event, state, known=known)
        if isinstance(event, e.TurnEnded):
            self._say("")  # room between two turns

    def asked(self, text: str) -> None:
        self._say(sanitise(text), DIM, indent="› ")

    def show(self, event: e.Event, state: SessionState) -> None:
        self._view.show(event, state)
        self._notifier.see(event)

    def remark(self, sentence: str, *, failed: bool = False) -> None:
        self._say(sanitise(sentence), RED if failed else DIM)


def _open_paint(text: str) -> str:
    """The paint that is still on at the end of the text: each sequence sets all of it."""
    last = next(reversed(_paint.findall(text)), RESET)
    return "" if last in (RESET, "\x1b[m") else last


def _print(text: str) -> None:
    out = sys.__stdout__
    if out is not None:
        out.write(text)
        out.flush()


def _nothing() -> None:
    pass


_PROMPT_COLUMNS = 200
_ANSWER_LINES = 6


def recap(state: SessionState, style: Style) -> list[str]:
    """The last prompt, and how the answer to it begins; painted lines that fit the terminal."""
    asked = next((x for x in reversed(state.entries) if isinstance(x, UserEntry)), None)
    if asked is None:
        return []
    said = (x for x in reversed(state.entries) if isinstance(x, AgentEntry))
    answer = next((entry for entry in said if entry.seq > asked.seq), None)
    prompt = folded(single_line(asked.text, _PROMPT_COLUMNS), "› ")
    lines = [style(line, DIM) for line in prompt]
    return lines + ([] if answer is None else _shortened(answer.text, style))


def _shortened(text: str, style: Style) -> list[str]:
    """Without blank lines: there is little room."""
    markdown = MarkdownStream(style, lambda: terminal_width() - 2, (DIM,))
    # A long answer is not laid out for the sake of its first lines.
    painted = markdown.feed(sanitise(text[:4000])) + markdown.flush()
    lines = [f"  {line}" for line in painted.split("\n") if line.strip()]
    more = [style("  …", DIM)] if len(lines) > _ANSWER_LINES else []
    return lines[:_ANSWER_LINES] + more
