"""Rows of text in columns that fit a terminal; where there is none they are as wide as they are."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dragoman.cli.streams import terminal_width
from dragoman.safe_text import columns, single_line

_GAP = "  "
_ANY = 100_000


def room() -> int:
    """The columns there are for a line; what is no terminal has room for all of it."""
    return max(terminal_width(), 40) if sys.stdout.isatty() else _ANY


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of it; the last column gets what room the others leave."""
    safe = [[single_line(cell, _ANY) for cell in row] for row in (header, *rows)]
    widths = [max(columns(row[at]) for row in safe) for at in range(len(header) - 1)]
    return [_line(row, widths) for row in safe]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=False)]
    return single_line(_GAP.join([*cells, row[-1]]), room()).rstrip()


def shortened(path: str, width: int) -> str:
    """The end of a path, which tells more than its beginning."""
    return path if len(path) <= width else f"…{path[-width + 1 :]}"
