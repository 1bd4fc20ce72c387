"""The tool calls of a session on a screen of their own: each can be unfolded.

What a chat has printed above its prompt stays as it is; here the same calls can be gone through.
"""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, Window

from dragoman.cli.render.event_text import diff_lines, short_path, tool_output
from dragoman.cli.render.style import BOLD, DIM, Style
from dragoman.cli.render.terminal_view import MARKS, diff_rows
from dragoman.cli.render.wrap import broken
from dragoman.cli.standard_streams import terminal_width
from dragoman.safe_text import reveal, sanitise, single_line
from dragoman.session.content import TerminalItem
from dragoman.session.state import SessionState, ToolCall

_MOST_CALLS = 1000
_MOST_LINES = 5000
_KEYS = "↑↓ choose · Enter unfold or fold · a all · q back"


class CallViewer:
    """One look at the calls there are now, the newest chosen."""

    def __init__(self, state: SessionState, style: Style) -> None:
        calls = [entry for entry in state.entries if isinstance(entry, ToolCall)]
        self._calls = calls[-_MOST_CALLS:]
        self._state = state
        self._style = style
        self._open: set[str] = set()
        self._chosen = len(self._calls) - 1
        self._top = 0
        self._cursor = 0

    @property
    def is_empty(self) -> bool:
        return not self._calls

    async def run(self) -> None:
        """Until the person goes back."""
        control = FormattedTextControl(
            self._text, focusable=True, show_cursor=False, get_cursor_position=self._position
        )
        body = Window(control, wrap_lines=False)
        foot = Window(FormattedTextControl(lambda: ANSI(self._foot())), height=1)
        app: Application[None] = Application(
            layout=Layout(HSplit([body, foot])),
            key_bindings=self._keys(),
            full_screen=True,
            # An input of its own: shortly after a key, the prompt takes an Esc out of the one it
            # has, although it is suspended by then.
            input=create_input(always_prefer_tty=True),
        )
        app.ttimeoutlen = app.timeoutlen = 0.1  # Esc is felt at once
        await app.run_async(set_exception_handler=False, handle_sigint=False)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        def on(*names: str) -> Callable[[Callable[[KeyPressEvent], None]], object]:
            def add(act: Callable[[KeyPressEvent], None]) -> object:
                for name in names:
                    keys.add(name)(act)
                return act

            return add

        @on("q", "escape", "c-o", "c-c", "c-d")
        def _(event: KeyPressEvent) -> None:
            event.app.exit()

        @on("up", "k")
        def _(event: KeyPressEvent) -> None:
            self._move(-1)

        @on("down", "j")
        def _(event: KeyPressEvent) -> None:
            self._move(1)

        @on("pageup")
        def _(event: KeyPressEvent) -> None:
            self._scroll(-event.app.output.get_size().rows + 2)

        @on("pagedown", "space")
        def _(event: KeyPressEvent) -> None:
            self._scroll(event.app.output.get_size().rows - 2)

        @on("enter")
        def _(event: KeyPressEvent) -> None:
            self._open ^= {self._calls[self._chosen].id}
            self._show_chosen(event)

        @on("a")
        def _(event: KeyPressEvent) -> None:
            every = {call.id for call in self._calls}
            self._open = set() if self._open == every else every
            self._show_chosen(event)

        self._cursor = self._row_of(self._chosen)
        return keys

    def _move(self, by: int) -> None:
        self._chosen = min(max(self._chosen + by, 0), len(self._calls) - 1)
        self._cursor = self._row_of(self._chosen)

    def _show_chosen(self, event: KeyPressEvent) -> None:
        """With as much below it as there is room for: the window shows where the cursor is."""
        room = event.app.output.get_size().rows - 2
        below = len(self._inside(self._calls[self._chosen]))
        self._cursor = self._row_of(self._chosen) + min(below, room - 1)

    def _scroll(self, by: int) -> None:
        self._cursor = min(max(self._cursor + by, 0), len(self._lines()) - 1)

    def _position(self) -> Point:
        return Point(0, self._cursor)

    def _row_of(self, chosen: int) -> int:
        return sum(1 + len(self._inside(call)) for call in self._calls[:chosen])

    def _text(self) -> ANSI:
        return ANSI("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lines: list[str] = []
        for at, call in enumerate(self._calls):
            mark, colour = MARKS.get(call.status, ("•", DIM))
            arrow = "▾" if call.id in self._open else "▸"
            title = single_line(call.title or call.name or call.id, terminal_width() - 7)
            title = self._style(title, BOLD) if at == self._chosen else title
            pointer = "›" if at == self._chosen else " "
            lines.append(f"{pointer} {arrow} {self._style(mark, colour)} {title}")
            lines += self._inside(call)
        return lines

    def _inside(self, call: ToolCall) -> list[str]:
        """What the call brought back and changed, if it is unfolded."""
        if call.id not in self._open:
            return []
        room = max(10, terminal_width() - 7)
        state = self._state
        shown = [item.terminal_id for item in call.content if isinstance(item, TerminalItem)]
        printed = [state.terminals[each].output for each in shown if each in state.terminals]
        text = "\n".join(filter(None, (tool_output(call), *printed)))
        lines = [
            self._style(f"      {part}", DIM)
            for line in sanitise(text).strip("\n").split("\n")[:_MOST_LINES]
            for part in broken(line.expandtabs(4), room)
            if text
        ]
        for diff in call.diffs:
            lines.append(self._style(f"      {reveal(short_path(diff.path, state.cwd))}", BOLD))
            rows = diff_rows(diff_lines(diff)[2:], self._style, terminal_width(), indent=4)
            lines += [f"    {row}" for row in rows]
        return lines[:_MOST_LINES] or [self._style("      (no output)", DIM)]

    def _foot(self) -> str:
        where = f"call {self._chosen + 1} of {len(self._calls)}"
        return self._style(single_line(f"{where} · {_KEYS}", terminal_width() - 1), DIM)
