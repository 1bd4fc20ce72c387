"""What is too long to be read at a glance, both ends first. Pure; nothing here is sanitised yet.

To decide about a text, a person must see how it ends, not only its beginning: the lines left out
are in the middle, and are counted. `web/src/core/excerpt.ts` does the same for the page; a test
holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import msgspec

EMPTY_RUN = 3
LONG_LINE, LINE_START, LINE_END = 2000, 1200, 600
_blanks = re.compile(r"[ \t]{100,}")
_nothing = re.compile(r"[ \t\r]*")


class Left(msgspec.Struct, frozen=True):
    """So many lines that are not shown; `empty` ones have nothing to show but their `mark`."""

    lines: int
    empty: bool = False
    mark: str = ""


Row: TypeAlias = str | Left


def excerpt(
    lines: Sequence[str],
    first: int,
    last: int,
    mark: Callable[[str], str] = lambda line: "",
) -> list[Row]:
    """The first and the last lines, runs of empty ones as one row.

    `mark` starts a line but is not part of the text, as in a diff.
    """
    rows = list(_without_runs(lines, mark))
    if len(rows) <= first + last + 1:
        return rows
    between = sum(row.lines if isinstance(row, Left) else 1 for row in rows[first:-last])
    return [*rows[:first], Left(between), *rows[-last:]]


def _without_runs(lines: Sequence[str], mark: Callable[[str], str]) -> Iterator[Row]:
    def emptiness(line: str) -> str | None:
        begun = mark(line)
        return begun if _nothing.fullmatch(line, len(begun)) else None

    for begun, found in groupby(lines, emptiness):
        run = list(found)
        if begun is not None and len(run) >= EMPTY_RUN:
            yield Left(len(run), empty=True, mark=begun)
        else:
            yield from run


def both_ends(line: str, *, whole: bool = False) -> str:
    """A line with long runs of blanks told in words and, unless it is to be `whole`, without the
    middle of a very long one."""
    line = _blanks.sub(lambda run: f"⟨{len(run.group())} blanks⟩", line)
    if whole or len(line) <= LONG_LINE:
        return line
    between = len(line) - LINE_START - LINE_END
    return f"{line[:LINE_START]} ⟨{between} characters omitted⟩ {line[-LINE_END:]}"


def left_words(left: Left) -> str:
    """What is not shown, in words."""
    if not left.empty:
        return f"{left.lines} lines omitted"
    what = {"+": " added", "-": " removed"}.get(left.mark, "")
    return f"{left.lines} empty lines{what}"
