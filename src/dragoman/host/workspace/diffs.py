"""Unified diffs of whole files, in bounded time and size. Pure text.

Lines end at a line feed and nowhere else, so that applying a diff gives back the exact file. A
change can also be taken back out of a text that has changed further since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

CONTEXT = 3
# With more pairs of lines to look at than this a matcher may take seconds: show one big change.
MAX_WORK = 2_000_000
MAX_LINES = 20_000
MAX_CHARACTERS = 1 << 20
# Each line of a text costs far more than its characters: longer ones are not compared.
MAX_COMPARED = 500_000

_Row: TypeAlias = "tuple[tuple[int, int], _Row | None]"
# A tag, then where it begins and ends in the old lines and in the new ones.
Step: TypeAlias = tuple[str, int, int, int, int]
# Where equal lines begin in the old lines and in the new ones, and how many they are.
_Block: TypeAlias = tuple[int, int, int]


def unified_diff(
    old: str,
    new: str,
    old_name: str,
    new_name: str,
    *,
    most: int | None = MAX_LINES,
    work: int | None = None,
) -> str:
    """What to change in `old` to get `new`, in at most so many lines and `MAX_CHARACTERS`, or
    without a limit for None; empty when they are the same. More `work` than that is not spent on a
    diff that is as small as can be."""
    if old == new:
        return ""
    names = f"--- {old_name}\n+++ {new_name}\n"
    if most is not None and old.count("\n") + new.count("\n") > MAX_COMPARED:
        return f"{names}\\ Not shown: more than {MAX_COMPARED} lines\n"
    lines = _hunks(lines_of(old), lines_of(new), MAX_WORK if work is None else work)
    return names + "".join(lines if most is None else _first(lines, most))


def _first(lines: Iterable[str], most: int) -> Iterator[str]:
    room = MAX_CHARACTERS
    for number, line in enumerate(lines):
        room -= len(line)
        if number == most or room < 0:
            what = f"{most} lines" if number == most else f"{MAX_CHARACTERS} characters"
            yield f"\\ The rest is not shown: more than {what} differ\n"
            return
        yield line


def _hunks(old: Sequence[str], new: Sequence[str], work: int) -> Iterator[str]:
    for steps in hunks(old, new, work):
        first, last = steps[0], steps[-1]
        yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@\n"
        yield from marked_lines(old, new, steps)


def marked_lines(old: Sequence[str], new: Sequence[str], steps: Iterable[Step]) -> Iterator[str]:
    """The lines of a hunk, each with what becomes of it: kept, removed or added."""
    for tag, old_from, old_to, new_from, new_to in steps:
        if tag == "equal":
            yield from _marked(" ", old[old_from:old_to])
        else:
            yield from _marked("-", old[old_from:old_to])
            yield from _marked("+", new[new_from:new_to])


def hunks(old: Sequence[str], new: Sequence[str], work: int) -> Iterator[Sequence[Step]]:
    """The steps from `old` to `new` in groups, with a few equal lines around each."""
    # Most changes are small: what is equal at both ends need not be matched.
    head = max(_common(old, new) - CONTEXT, 0)
    old, new = old[head:], new[head:]
    tail = max(_common(old[::-1], new[::-1]) - CONTEXT, 0)
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    for steps in _groups(_steps(old, new, work)):
        yield [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in steps]


def replacements(old: Sequence[str], new: Sequence[str], work: int) -> list[Step]:
    """What of `old` is replaced by what of `new`, in order."""
    return [step for group in hunks(old, new, work) for step in group if step[0] != "equal"]


def _groups(steps: Iterable[Step]) -> Iterator[Sequence[Step]]:
    """The steps, in groups with a few equal lines around each; nothing between groups changes."""
    group: list[Step] = []
    for step in steps:
        if step[0] != "equal":
            group.append(step)
        elif not group:
            group.append(_last_lines(step))
        elif step[2] - step[1] <= 2 * CONTEXT:
            group.append(step)
        else:
            yield [*group, _first_lines(step)]
            group = [_last_lines(step)]
    if group and group[-1][0] == "equal":
        group.append(_first_lines(group.pop()))
    if any(tag != "equal" for tag, *_ in group):
        yield group


def _first_lines(step: Step) -> Step:
    tag, old_from, old_to, new_from, _ = step
    length = min(old_to - old_from, CONTEXT)
    return tag, old_from, old_from + length, new_from, new_from + length


def _last_lines(step: Step) -> Step:
    tag, old_from, old_to, _, new_to = step
    length = min(old_to - old_from, CONTEXT)
    return tag, old_to - length, old_to, new_to - length, new_to


def _steps(old: Sequence[str], new: Sequence[str], work: int) -> Iterator[Step]:
    """What is equal and what is not, in turn, from the first line to the last."""
    at_old = at_new = start_old = start_new = 0
    for found_old, found_new, length in (*_blocks(old, new, work), (len(old), len(new), 0)):
        if (found_old, found_new) != (at_old, at_new):
            if at_old > start_old:
                yield "equal", start_old, at_old, start_new, at_new
            yield "replace", at_old, found_old, at_new, found_new
            start_old, start_new = found_old, found_new
        at_old, at_new = found_old + length, found_new + length
    if at_old > start_old:
        yield "equal", start_old, at_old, start_new, at_new


def _blocks(old: Sequence[str], new: Sequence[str], left: int) -> Iterator[_Block]:
    """Lines that are the same, in order: found by a matcher where that is quick. In larger texts
    the lines that each has once are found first, and only what is between them is matched."""
    if _work(old, new) <= left:
        yield from _matched(old, new)
        return
    at_old = at_new = 0
    for found_old, found_new in (*_anchors(old, new), (len(old), len(new))):
        one, other = old[at_old:found_old], new[at_new:found_new]
        head = _common(one, other)
        tail = _common(one[head:][::-1], other[head:][::-1])
        yield at_old, at_new, head
        one, other = one[head : len(one) - tail], other[head : len(other) - tail]
        if (work := _work(one, other)) <= left:
            left -= work
            for in_one, in_other, length in _matched(one, other):
                yield at_old + head + in_one, at_new + head + in_other, length
        # With the line itself; at the end there is none.
        at_old, at_new = found_old + 1, found_new + 1
        yield found_old - tail, found_new - tail, tail + (found_old < len(old))


def _matched(old: Sequence[str], new: Sequence[str]) -> Sequence[_Block]:
    if not old or not new:
        return ()
    from difflib import SequenceMatcher  # most sessions show no change at all

    return SequenceMatcher(None, old, new).get_matching_blocks()[:-1]


def _work(old: Sequence[str], new: Sequence[str]) -> int:
    """At most so many pairs of lines would the matcher look at: for each block that it finds, all
    pairs of equal lines. In long texts it ignores frequent ones."""
    counts = Counter(new)
    frequent = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    pairs = sum(count for line in old if (count := counts[line]) <= frequent)
    return min(len(old), len(new)) * (len(old) + pairs)


def _anchors(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[int, int]]:
    """Where each text has a line that is in both just once: as many as are in the same order."""
    counts, others = Counter(old), Counter(new)
    places = {line: at for at, line in enumerate(new) if others[line] == 1}
    both = [
        (at, places[line]) for at, line in enumerate(old) if counts[line] == 1 and line in places
    ]
    ends: list[int] = []  # of the best row of each length, where it ends in the new text
    rows: list[_Row] = []
    for pair in both:
        length = bisect_left(ends, pair[1])
        ends[length : length + 1] = [pair[1]]
        rows[length : length + 1] = [(pair, rows[length - 1] if length else None)]
    return _unrolled(rows[-1] if rows else None)


def _unrolled(row: _Row | None) -> Sequence[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    while row is not None:
        pair, row = row
        pairs.append(pair)
    return pairs[::-1]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _span(start: int, stop: int) -> str:
    length = stop - start
    # An empty range is named by the line before it.
    begins = start + (1 if length else 0)
    return f"{begins}" if length == 1 else f"{begins},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n"


def lines_of(text: str) -> list[str]:
    """Each with its line feed."""
    *whole, last = text.split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])


# Takes one change back out of a text that was changed further since. Pure.


def merged(base: str, ours: str, theirs: str) -> str | None:
    """`ours` with what leads from `base` to `theirs`; None where both changed the same lines."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    old, mine, other = lines_of(base), lines_of(ours), lines_of(theirs)
    chunks = [(step, mine) for step in replacements(old, mine, MAX_WORK)]
    for step in replacements(old, other, MAX_WORK):
        touched = [(each, lines) for each, lines in chunks if _overlap(each, step)]
        if any(not _is_same(each, lines, step, other) for each, lines in touched):
            return None
        if not touched:
            chunks.append((step, other))
    return "".join(_applied(old, chunks))


def _overlap(one: Step, other: Step) -> bool:
    """Lines that are added next to those that the other replaces do not."""
    first, second = sorted((one[1:3], other[1:3]))
    return first == second or first[1] > second[0]


def _is_same(one: Step, lines: Sequence[str], other: Step, others: Sequence[str]) -> bool:
    return one[1:3] == other[1:3] and lines[one[3] : one[4]] == others[other[3] : other[4]]


def _applied(old: Sequence[str], chunks: Sequence[tuple[Step, Sequence[str]]]) -> list[str]:
    result: list[str] = []
    at = 0
    for (_, start, stop, first, last), lines in sorted(chunks, key=lambda each: each[0][1:3]):
        result += old[at:start]
        result += lines[first:last]
        at = stop
    return result + list(old[at:])


def without(old: Sequence[str], new: Sequence[str], hunks: Sequence[Sequence[Step]]) -> str:
    """`new` with the lines of `old` in place of these hunks."""
    result: list[str] = []
    at = 0
    for _, old_from, old_to, new_from, new_to in (
        step for hunk in hunks for step in hunk if step[0] != "equal"
    ):
        result += new[at:new_from]
        result += old[old_from:old_to]
        at = new_to
    return "".join(result + list(new[at:]))
