"""How the prompt is drawn and taken away again, so that nothing of it stays behind.

A terminal that is made narrower breaks the lines that no longer fit and moves what is below them
down. prompt_toolkit counts the rows as it drew them, does not go up far enough, and leaves the
beginning of a line behind. And where the prompt is as high as the window, clearing it in one go
makes tmux and others keep it in the scrollback. What the renderer knows of the screen is in
attributes that are not public: pyproject.toml keeps to the releases that have them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.renderer import Renderer


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
        self.output.cursor_backward(at.x)
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
