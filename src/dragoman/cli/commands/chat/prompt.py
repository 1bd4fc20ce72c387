"""The prompt of a chat: its key bindings and layout, and the questions asked at it.

There is one line to type in. A question takes it over, and gives it back with what was being typed.

A terminal that is made narrower breaks the lines that no longer fit and moves what is below them
down. prompt_toolkit counts the rows as it drew them, does not go up far enough, and leaves the
beginning of a line behind. And where the prompt is as high as the window, clearing it in one go
makes tmux and others keep it in the scrollback. What the renderer knows of the screen is in
attributes that are not public: pyproject.toml keeps to the releases that have them.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import Style as Colours

from dragoman.cli.ask.asker import Tty
from dragoman.cli.commands.chat.completions import Completions
from dragoman.cli.commands.chat.pasted_blocks import PastedBlocks
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


class ChatPrompt:
    """`read` for the agent, `answer` while a question is open."""

    def __init__(
        self,
        screen: Screen,
        style: Style,
        *,
        completions: Completions,
        pasted: PastedBlocks,
        keys: KeyBindings,
        toolbar: Callable[[], str],
        above: Callable[[int], list[str]],
        on_asked: Callable[[], None],
    ) -> None:
        """`above` has the lines between what is printed and the prompt, at most so many; `on_asked`
        is called when a question is asked."""
        self.tty = PromptTty(screen, self._question_changed, on_asked)
        self._above = above
        self._pasted = pasted
        self._screen = screen
        self._style = style
        self._draft = ""
        self._main: PromptSession[str] = PromptSession(
            history=_history(),
            completer=completions,
            complete_in_thread=True,  # files are looked for
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

    @property
    def draft(self) -> str:
        """What has been typed for the agent, with all that was pasted."""
        return self._pasted.expand(self._main.default_buffer.text)

    def write(self, text: str) -> None:
        """Have this in the line, to be sent or changed."""
        if self._main.app.is_running:
            self._main.default_buffer.document = Document(text, len(text))
        else:
            self._draft = text

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
        """Leave what was typed above the prompt, once and in full."""
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
        lines = [
            *([tail] if tail else []),
            *self._above(self._main.app.output.get_size().rows // 3),
        ]
        return ANSI("".join(f"{line}\n" for line in lines) + self._mark)

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


def bindings(
    pasted: PastedBlocks,
    *,
    busy: Callable[[], bool],
    on_cancel: Callable[[], None],
    on_other: Callable[[], None],
    on_calls: Callable[[], None],
    on_edit: Callable[[], None],
) -> KeyBindings:
    """`on_cancel` is for Esc while the agent is `busy`, and for Ctrl-C at any time. `on_other` is
    called before something is sent in the other way than with Enter, while the agent is busy.
    `on_calls` shows the tool calls, `on_edit` opens the editor.

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
            _send(buffer, pasted)

    @keys.add("escape", "enter", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        if busy():
            on_other()
            _send(event.current_buffer, pasted)
        else:
            event.current_buffer.insert_text("\n")

    @keys.add("escape", filter=is_busy & is_free, eager=True)
    @keys.add("escape", filter=is_busy)
    def _(event: KeyPressEvent) -> None:
        on_cancel()

    @keys.add("c-c", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        on_cancel()

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(pasted.fold(text))

    ends_with_mark = Condition(lambda: bool(_mark_before(pasted)))

    @keys.add("backspace", filter=is_writing & ends_with_mark)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(_mark_before(pasted))

    @keys.add("c-o", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        on_calls()

    @keys.add("c-x", "c-e", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        on_edit()

    return keys


def _send(buffer: Buffer, pasted: PastedBlocks) -> None:
    if (whole := pasted.expand(buffer.text)) != buffer.text:
        buffer.document = Document(whole, len(whole))
    buffer.validate_and_handle()


def _mark_before(pasted: PastedBlocks) -> int:
    from prompt_toolkit.application import get_app

    return pasted.mark_before(get_app().current_buffer.document.text_before_cursor)


def _text() -> str:
    from prompt_toolkit.application import get_app

    return get_app().current_buffer.text


def draw_without_trace(app: Application[Any]) -> None:
    app.renderer = Drawing(
        app.renderer.style,
        app.output,
        cpr_not_supported_callback=app.cpr_not_supported_callback,
    )


class Drawing(Renderer):
    """Knows where the cursor went when the window was made narrower, and clears row by row."""

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        if self._narrowed_to() is not None:
            self.erase(leave_alternate_screen=False)
        super().render(app, layout, is_done)

    def erase(self, leave_alternate_screen: bool = True) -> None:
        at = self._cursor_now()
        # Not by counting columns: what was drawn between the change of the terminal and its signal
        # put the cursor somewhere else in its row.
        self.output.write_raw("\r")
        self.output.erase_down()
        for _ in range(at.y):
            self.output.cursor_up(1)
            self.output.erase_end_of_line()
        self._cursor_pos = Point(x=0, y=0)
        super().erase(leave_alternate_screen)

    def _cursor_now(self) -> Point:
        """Counted from the first row of the prompt."""
        at, columns, screen = self._cursor_pos, self._narrowed_to(), self._last_screen
        if columns is None or screen is None:
            return at
        above = (_width(screen.data_buffer[y]) for y in range(at.y))
        rows = sum(max(1, -(-width // columns)) for width in above)
        return Point(x=at.x % columns, y=rows + at.x // columns)

    def _narrowed_to(self) -> int | None:
        """The columns of the window, if the prompt was drawn in more and was broken since."""
        was = self._last_size
        if was is None or not breaks_lines(os.environ):
            return None
        columns = max(1, self.output.get_size().columns)
        return columns if columns < was.columns else None


def breaks_lines(env: Mapping[str, str]) -> bool:
    """Whether the terminal breaks lines that no longer fit: a few old ones cut them off."""
    if "TMUX" in env:
        return True
    return not ("XTERM_VERSION" in env or "STY" in env or env.get("TERM", "").startswith("rxvt"))


def _width(row: Mapping[int, Char]) -> int:
    """The columns that are written to: what follows the last letter is not."""
    return max((x + cell.width for x, cell in row.items() if cell.char != " "), default=0)


# Nobody reads a question in less: what comes sooner was typed for something else.
READING_SECONDS = 0.7


class PromptTty(Tty):
    """The terminal as `TerminalAsker` knows it: it writes a question and waits for a line.

    `on_change` is called when there is a question to be answered, or one that no longer is.
    """

    def __init__(
        self,
        screen: Screen,
        on_change: Callable[[], None],
        on_asked: Callable[[], None] = lambda: None,
    ) -> None:
        self.open: asyncio.Future[str | None] | None = None
        """The line that is being waited for."""
        self.asked_at = 0.0
        self.settled = asyncio.Event()
        """Set when the asker has received the answer, and asks nothing or something else."""
        self._screen = screen
        self._on_change = on_change
        self._on_asked = on_asked

    def write(self, text: str) -> None:
        self._screen.write(text)

    def forget_typed(self) -> None:
        self.asked_at = time.monotonic()
        self._on_asked()

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
