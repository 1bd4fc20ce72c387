"""Unified diffs of whole files, in bounded time and size. Pure text.

Lines end at a line feed and nowhere else, so that applying a diff gives back the exact file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

CONTEXT = 3
# With more pairs of equal lines than this a matcher may take seconds: show one big change.
MAX_PAIRS = 300_000
MAX_LINES = 20_000

# A tag, then where it begins and ends in the old lines and in the new ones.
_Step: TypeAlias = tuple[str, int, int, int, int]


def unified_diff(
    old: str, new: str, old_name: str, new_name: str, *, most: int | None = MAX_LINES
) -> str:
    """What to change in `old` to get `new`, in at most so many lines; empty when they are the
    same."""
    if old == new:
        return ""
    lines = _hunks(_lines(old), _lines(new))
    shown = list(islice(lines, most))
    if next(lines, None) is not None:
        shown.append(f"\\ The rest is not shown: more than {most} lines differ\n")
    return "".join((f"--- {old_name}\n", f"+++ {new_name}\n", *shown))


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    # Most changes are small: what is equal at both ends need not be matched.
    head = max(_common(old, new) - CONTEXT, 0)
    old, new = old[head:], new[head:]
    tail = max(_common(old[::-1], new[::-1]) - CONTEXT, 0)
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    for steps in _groups(old, new):
        first, last = steps[0], steps[-1]
        yield f"@@ -{_span(first[1], last[2], head)} +{_span(first[3], last[4], head)} @@\n"
        for tag, old_from, old_to, new_from, new_to in steps:
            if tag == "equal":
                yield from _marked(" ", old[old_from:old_to])
            else:
                yield from _marked("-", old[old_from:old_to])
                yield from _marked("+", new[new_from:new_to])


def _groups(old: Sequence[str], new: Sequence[str]) -> Iterator[Sequence[_Step]]:
    if _pairs(old, new) <= MAX_PAIRS:
        from difflib import SequenceMatcher  # most sessions show no change at all

        return iter(SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT))
    return iter([_one_change(old, new)])


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pairs the matcher would look at: in long texts it ignores frequent lines."""
    counts = Counter(new)
    frequent = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    return sum(count for line in old if (count := counts[line]) <= frequent)


def _one_change(old: Sequence[str], new: Sequence[str]) -> Sequence[_Step]:
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    return [
        ("equal", 0, start, 0, start),
        ("replace", start, old_end, start, new_end),
        ("equal", old_end, len(old), new_end, len(new)),
    ]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _span(start: int, stop: int, head: int) -> str:
    length = stop - start
    # An empty range is named by the line before it.
    begins = start + head + (1 if length else 0)
    return f"{begins}" if length == 1 else f"{begins},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])
