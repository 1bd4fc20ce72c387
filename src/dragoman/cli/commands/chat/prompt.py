"""The prompt of a chat and its key bindings: input for the agent, and answers to its questions.

There is one line to type in. A question takes it over, and gives it back with what was being typed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style as Colours

from dragoman.cli.commands.chat.completion import Completions
from dragoman.cli.commands.chat.drawing import draw_without_trace
from dragoman.cli.commands.chat.prompt_tty import READING_SECONDS, PromptTty
from dragoman.cli.commands.chat.screen import Screen
from dragoman.cli.exit_codes import sentence, tell
from dragoman.cli.render.style import BOLD, CYAN, Style
from dragoman.cli.render.wrap import folded
from dragoman.data_directory import data_directory, make_private
from dragoman.safe_text import sanitise

_TAKEN_AWAY = "\0"
_LOOK = Colours.from_dict(
    {"bottom-toolbar": "noreverse", "bottom-toolbar.text": "fg:ansibrightblack"}
)


class Prompt:
    """`read` for the agent, `answer` while a question is open."""

    def __init__(
        self,
        screen: Screen,
        style: Style,
        *,
        completions: Completions,
        keys: KeyBindings,
        toolbar: Callable[[], str],
    ) -> None:
        self.tty = PromptTty(screen, self._question_changed)
        self._screen = screen
        self._style = style
        self._draft = ""
        self._main: PromptSession[str] = PromptSession(
            history=_history(),
            completer=completions,
            complete_while_typing=Condition(self._may_complete),
            key_bindings=keys,
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=toolbar,
            refresh_interval=0.5,
            style=_LOOK,
            enable_suspend=True,
            erase_when_done=True,  # what was typed may be higher than the window
        )
        self._answers: PromptSession[str] = PromptSession(
            history=InMemoryHistory(),
            key_bindings=keys,
            bottom_toolbar=toolbar,
            refresh_interval=0.5,
            style=_LOOK,
        )
        for session in (self._main, self._answers):
            # Esc is felt at once, where it cannot be the beginning of something.
            session.app.ttimeoutlen = 0.1
            session.app.timeoutlen = 0.5
            draw_without_trace(session.app)

    @property
    def input(self) -> Input:
        return self._main.input

    @property
    def is_asking(self) -> bool:
        return self.tty.open is not None

    @property
    def typed(self) -> str:
        """What has been typed so far and was not sent."""
        session = self._answers if self._answers.app.is_running else self._main
        return session.default_buffer.text

    def clear(self) -> bool:
        """Take away what was typed for the agent; whether there was anything."""
        buffer = self._main.default_buffer
        had_text = bool(buffer.text)
        buffer.reset()
        return had_text

    async def read(self) -> str | None:
        """What was typed; None when the prompt was taken away. Raises EOFError at the end."""
        text = await self._main.prompt_async(
            self._message, default=self._draft, set_exception_handler=False, handle_sigint=False
        )
        if text is _TAKEN_AWAY:
            return None
        self._draft = ""
        await self._leave(text)
        return text

    async def _leave(self, text: str) -> None:
        """Have what was typed stand above the prompt, whole and once."""
        if not text.strip():
            return
        typed = sanitise(text.rstrip()).split("\n")
        first, *others = (fitting for line in typed for fitting in folded(line, "  "))
        for line in (self._mark + first[2:], *others):
            self._screen.line(line)
        await self._screen.settle()

    async def answer(self) -> None:
        """Read a line for the open question, once all of it can be seen."""
        await self._screen.settle()
        try:
            text = await self._answers.prompt_async(
                lambda: ANSI(self._screen.tail), set_exception_handler=False, handle_sigint=False
            )
        except EOFError:
            self.tty.answer(None)
        else:
            self._answers.app.erase_when_done = False
            # A person who was typing something else has not read the question yet.
            hasty = time.monotonic() - self.tty.asked_at < READING_SECONDS and bool(self._draft)
            if text is _TAKEN_AWAY or hasty:
                return
            self._screen.drop_tail()
            self.tty.answer(text)
        await self.tty.settled.wait()

    def take_away(self) -> None:
        """End what is being read, without a trace on the screen."""
        for session in (self._main, self._answers):
            app = session.app
            if app.is_running and not app.is_done:
                if session is self._main:
                    self._draft = session.default_buffer.text
                app.erase_when_done = True
                app.exit(result=_TAKEN_AWAY)

    def _question_changed(self) -> None:
        if self._main.app.is_running is self.is_asking:
            self.take_away()

    def _may_complete(self) -> bool:
        text = self._main.default_buffer.document.text_before_cursor
        return text.startswith(("/", ":")) or "@" in text

    def _message(self) -> ANSI:
        tail = self._screen.tail
        return ANSI(f"{tail}\n" * bool(tail) + self._mark)

    @property
    def _mark(self) -> str:
        return self._style("› ", BOLD, CYAN)


def _history() -> History:
    """In our own directory, for its owner alone: what people type may be secret."""
    path = data_directory() / "history"
    try:
        make_private(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError as error:
        tell(f"prompt history is not saved: {sentence(error)}")
        return InMemoryHistory()
    return FileHistory(str(path))


def bindings(*, busy: Callable[[], bool], on_cancel: Callable[[], None]) -> KeyBindings:
    """`on_cancel` is for Esc while the agent is `busy`, and for Ctrl-C at any time.

    While someone looks for something in the history, these keys end the search, as always.
    """
    keys = KeyBindings()
    is_writing = ~is_searching
    is_busy = Condition(busy) & is_writing
    # At once with nothing typed; else Esc may be the beginning of Esc Enter.
    is_free = Condition(lambda: not _text())

    @keys.add("enter", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("escape", filter=is_busy & is_free, eager=True)
    @keys.add("escape", filter=is_busy)
    def _(event: KeyPressEvent) -> None:
        on_cancel()

    @keys.add("c-c", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        on_cancel()

    return keys


def _text() -> str:
    from prompt_toolkit.application import get_app

    return get_app().current_buffer.text
