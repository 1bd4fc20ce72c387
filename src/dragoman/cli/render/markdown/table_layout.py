"""Tables of Markdown in columns that fit the terminal.

Where there is too little room for columns, each row is a list of its cells. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dragoman.cli.render.style import BOLD, DIM, Codes, Style
from dragoman.lazy_pattern import lazy_pattern
from dragoman.safe_text import columns

_MOST = 64 << 10
"""Characters of a table that is laid out as one."""
_NARROW = 8
"""Columns of the terminal that a cell needs, unless all of its text takes fewer."""
_GAP = 3
_CELLS = lazy_pattern(r"(?<!\\)\|")
_RULE = lazy_pattern(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*(?:\||(?=\n|\Z)))+[ \t]*\Z")
_paint = lazy_pattern(r"\x1b\[[0-9;]*m")

PaintCell = Callable[[str, Codes, int], str]
"""Lays out a text with these codes, in lines of so many columns."""


class TableLines:
    """Holds lines that may be a table, until it is known, and until the table is over."""

    def __init__(
        self, style: Style, width: Callable[[], int], base: Codes, cell: PaintCell
    ) -> None:
        self._style = style
        self._width = width
        self._base = base
        self._cell = cell
        self._lines: list[str] = []
        self._size = 0
        self._is_ended = True

    @property
    def is_open(self) -> bool:
        return bool(self._lines)

    def add(self, line: str, *, is_ended: bool) -> str:
        """The next line, without its end; what can be printed now."""
        first_two = len(self._lines) == 1
        out = self.close() if first_two and not _is_rule(line, self._lines[0]) else ""
        self._lines.append(line)
        self._is_ended = is_ended
        self._size += len(line)
        return out + self.close() if self._size > _MOST else out

    def close(self) -> str:
        """All that is held: a table, or one line that was none."""
        lines, end = self._lines, "\n" if self._is_ended else ""
        self._lines, self._size, self._is_ended = [], 0, True
        if not lines:
            return ""
        if len(lines) == 1:
            return self._style(lines[0], *self._base) + end
        return "\n".join(self._laid_out(lines)) + end

    def _laid_out(self, lines: list[str]) -> Iterator[str]:
        head, sides = _cells(lines[0]), [_side(cell) for cell in _cells(lines[1])]
        count = len(head)
        rows = [(_cells(line) + [""] * count)[:count] for line in lines[2:]]
        room = self._width() - 1 - _GAP * (count - 1)
        natural = [max(map(self._natural, column)) for column in zip(head, *rows, strict=True)]
        widths = _shared(natural, room)
        if widths is None:
            yield from self._listed(head, rows)
            return
        yield from self._row(head, widths, sides, (*self._base, BOLD))
        yield self._style("─┼─".join("─" * width for width in widths), DIM)
        for row in rows:
            yield from self._row(row, widths, sides, self._base)

    def _natural(self, cell: str) -> int:
        """The columns that the cell takes in one line."""
        return max(1, columns(_paint.sub("", self._cell(cell, (), 1 << 30))))

    def _row(
        self, row: list[str], widths: list[int], sides: list[str], codes: Codes
    ) -> Iterator[str]:
        cells = [
            self._cell(cell, codes, width).split("\n")
            for cell, width in zip(row, widths, strict=True)
        ]
        bar = self._style(" │ ", DIM)
        for at in range(max(map(len, cells))):
            lines = [cell[at] if at < len(cell) else "" for cell in cells]
            padded = map(_padded, lines, widths, sides)
            yield bar.join(padded).rstrip(" ")

    def _listed(self, head: list[str], rows: list[list[str]]) -> Iterator[str]:
        """Each cell below the other, with its heading."""
        for number, row in enumerate(rows or [[""] * len(head)]):
            if number:
                yield ""
            for name, cell in zip(head, row, strict=True):
                if name:
                    heading = self._cell(name, (*self._base, BOLD), self._width() - 1)
                    yield from heading.split("\n")
                for line in self._cell(cell, self._base, self._width() - 3).split("\n"):
                    yield f"  {line}".rstrip(" ")


def _is_rule(line: str, head: str) -> bool:
    """Whether the line, below a heading, makes a table of both."""
    return _RULE.match(line) is not None and len(_cells(line)) == len(_cells(head))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip() for cell in _CELLS.split(inner)]


def _side(rule: str) -> str:
    if rule.endswith(":"):
        return "middle" if rule.startswith(":") else "right"
    return "left"


def _padded(line: str, width: int, side: str) -> str:
    room = max(0, width - columns(_paint.sub("", line)))
    before = {"left": 0, "middle": room // 2, "right": room}[side]
    return " " * before + line + " " * (room - before)


def _shared(natural: list[int], room: int) -> list[int] | None:
    """The widths of the columns: the widest are made narrower. None if there is too little room."""
    if sum(natural) <= room:
        return natural
    if sum(min(width, _NARROW) for width in natural) > room:
        return None
    widths = list(natural)
    while (over := sum(widths) - room) > 0:
        widest = max(widths)
        its = [at for at, width in enumerate(widths) if width == widest]
        following = max((width for width in widths if width < widest), default=0)
        step = max(1, min(widest - following, over // len(its)))
        for at in its[: max(1, over // step)]:
            widths[at] -= step
    return widths
