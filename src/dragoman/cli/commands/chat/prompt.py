"""The prompt of a chat: its key bindings, layout and completions, and the questions asked at it.

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
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Point
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import Style as Colours

from dragoman.cli.ask.asker import Tty
from dragoman.cli.commands.chat.screen import Screen
from dragoman.cli.commands.chat.slash_commands import is_ours
from dragoman.cli.exit_codes import sentence, tell
from dragoman.cli.options import choices_of
from dragoman.cli.render.style import BOLD, CYAN, Style
from dragoman.cli.render.wrap import folded
from dragoman.client.sessions.config_options import option_of
from dragoman.data_directory import data_directory, make_private
from dragoman.safe_text import sanitise, single_line
from dragoman.session.state import SessionState

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


def bindings(
    *, busy: Callable[[], bool], on_cancel: Callable[[], None], on_other: Callable[[], None]
) -> KeyBindings:
    """`on_cancel` is for Esc while the agent is `busy`, and for Ctrl-C at any time. `on_other` is
    called before something is sent in the other way than with Enter, while the agent is busy.

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
        if busy():
            on_other()
            event.current_buffer.validate_and_handle()
        else:
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


_MOST_FILES = 200
_command = re.compile(r"[/:][\w.:-]*\Z")
_mention = re.compile(r'(?:^|(?<=[\s(\[{]))@(?P<quote>"?)(?P<path>[^\s"]*|(?<=")[^"\n]*)\Z')
_argument = re.compile(r"[/:](?P<command>mode|model|set)\s+(?P<value>\S*)\Z")


class Completions(Completer):
    """Knows the agent's commands from `state`, ours from `own`, and files beneath `cwd`."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self.state = SessionState()
        self.cwd = "."
        self._own = own

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        if found := _mention.search(before):
            return self._files(found["path"], quoted=bool(found["quote"]))
        if found := _argument.match(before):
            return _choices(found["value"], self._values(found["command"]))
        if _command.match(before):
            return self._commands(before)
        return ()

    # ── commands ──────────────────────────────────────────────────────────────────────────────

    def _commands(self, typed: str) -> Iterator[Completion]:
        prefix, begun = typed[0], typed[1:]
        theirs = {c.name: c.description for c in self.state.commands} if prefix == "/" else {}
        ours = {name: about for name, about in self._own.items() if is_ours(name, theirs)}
        for name, about in (ours | theirs).items():  # where a name is theirs, it is not in ours
            if name.startswith(begun):
                yield Completion(
                    f"{prefix}{name}",
                    start_position=-len(typed),
                    display_meta=single_line(about, 60),
                )

    def _values(self, command: str) -> dict[str, str]:
        """The completions for the argument of one of our commands."""
        options = self.state.config_options
        if command == "set":
            return {f"{o.id}={v}": o.name for o in options for v in choices_of(o)}
        if command == "mode" and self.state.modes is not None:
            return {mode.id: mode.name for mode in self.state.modes.available}
        option = option_of(options, command)
        return {c.value: c.name for c in (option.choices if option else None) or ()}

    # ── files ─────────────────────────────────────────────────────────────────────────────────

    def _files(self, typed: str, *, quoted: bool) -> Iterator[Completion]:
        folder, begun = os.path.split(typed)
        base = os.path.join(self.cwd, os.path.expanduser(folder))
        for name, is_folder in _listed(base, begun):
            path = os.path.join(folder, name) + ("/" if is_folder else "")
            # Anything but a plain path has to be in quotes, or only a part of it is mentioned.
            needs = quoted or not re.fullmatch(r"[\w./~+-]+", path)
            text = f'"{path}{"" if is_folder else chr(34)}' if needs else path
            yield Completion(
                text, start_position=-len(typed) - quoted, display=single_line(name, 60)
            )


def _choices(typed: str, values: Mapping[str, str]) -> Iterator[Completion]:
    for value, about in values.items():
        if value.startswith(typed):
            meta = single_line(about, 60)
            yield Completion(value, start_position=-len(typed), display_meta=meta)


def _listed(folder: str, begun: str) -> list[tuple[str, bool]]:
    """Names in a folder that begin so, hidden ones only when asked for."""
    try:
        with os.scandir(folder) as entries:
            names = [
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(begun)
                and (begun.startswith(".") or not entry.name.startswith("."))
                and entry.name.isprintable()
            ]
    except OSError:
        return []
    return sorted(names)[:_MOST_FILES]
