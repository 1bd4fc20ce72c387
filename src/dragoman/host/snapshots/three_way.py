"""Takes one change back out of a text that was changed further since. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.host.workspace.diffs import MAX_WORK, Step, lines_of, replacements


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
