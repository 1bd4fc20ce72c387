"""Who wrote which lines of a file, from its versions in order. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from dragoman.host.workspace.diffs import Step, hunks, lines_of, marked_lines, replacements
from dragoman.session.facts import Author, FileStatus


class Label(msgspec.Struct, frozen=True, order=True):
    """Who made a version, and in which turn or restore."""

    by: Author
    step: str | None = None


class Version(msgspec.Struct, frozen=True):
    """A text, and who made it of the one before."""

    text: str
    label: Label


class Hunk(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Lines that changed together, with a few around them. Each line begins with what became of
    it: kept, removed or added. `id` is valid until either version of the file changes."""

    id: str
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[str]
    by: list[Author] = []
    turns: list[str] = []


class FileComparison(msgspec.Struct, kw_only=True, rename="camel"):
    """What the library and the server both say of a changed file."""

    path: str
    status: FileStatus
    old_path: str | None = None
    by: list[Author] = []
    turns: list[str] = []
    protected: str | None = None
    old_mode: str | None = None
    new_mode: str | None = None
    binary: bool = False
    added: int = 0
    removed: int = 0
    old_size: int = 0
    new_size: int = 0
    before: str | None = None
    after: str | None = None
    hunks: list[Hunk] = []


class Compared(msgspec.Struct):
    """The hunks from the first version to the last, each with its steps."""

    old: list[str]
    new: list[str]
    hunks: list[Hunk] = []
    steps: list[Sequence[Step]] = []
    added: int = 0
    removed: int = 0


def compared(versions: Sequence[Version], name: str, work: int) -> Compared:
    """`name` makes the ids of the hunks those of this file."""
    old, new = lines_of(versions[0].text), lines_of(versions[-1].text)
    made, removed = _origins(versions, work)
    found = Compared(old, new)
    everyone = {version.label for version in versions[1:]}
    for steps in hunks(old, new, work):
        labels = set(_labels(steps, made, removed)) or everyone
        found.hunks.append(_hunk(old, new, steps, labels, name))
        found.steps.append(steps)
        for tag, old_from, old_to, new_from, new_to in steps:
            if tag != "equal":
                found.removed += old_to - old_from
                found.added += new_to - new_from
    return found


def authors(labels: Iterable[Label]) -> list[Author]:
    return sorted({label.by for label in labels})


def turns(labels: Iterable[Label]) -> list[str]:
    return sorted({label.step for label in labels if label.step is not None})


def _origins(versions: Sequence[Version], work: int) -> tuple[list[Label | None], dict[int, Label]]:
    """Who wrote each line of the last version, None for one of the first; and who removed those
    of the first that are gone."""
    lines = lines_of(versions[0].text)
    places: list[int | None] = list(range(len(lines)))
    made: list[Label | None] = [None] * len(lines)
    removed: dict[int, Label] = {}
    for version in versions[1:]:
        following = lines_of(version.text)
        for _, start, stop, first, last in reversed(replacements(lines, following, work)):
            removed.update((at, version.label) for at in places[start:stop] if at is not None)
            places[start:stop] = [None] * (last - first)
            made[start:stop] = [version.label] * (last - first)
        lines = following
    return made, removed


def _labels(
    steps: Iterable[Step], made: Sequence[Label | None], removed: dict[int, Label]
) -> Iterable[Label]:
    for tag, old_from, old_to, new_from, new_to in steps:
        if tag != "equal":
            yield from (removed[at] for at in range(old_from, old_to) if at in removed)
            yield from (label for label in made[new_from:new_to] if label is not None)


def _hunk(
    old: Sequence[str], new: Sequence[str], steps: Sequence[Step], labels: set[Label], name: str
) -> Hunk:
    first, last = steps[0], steps[-1]
    lines = "".join(marked_lines(old, new, steps)).removesuffix("\n").split("\n")
    where = (first[1], last[2], first[3], last[4])
    digest = hashlib.sha256(f"{name}\0{where}".encode("utf-8", "surrogateescape")).hexdigest()
    return Hunk(
        id=f"h-{digest[:20]}",
        old_start=first[1] + (1 if last[2] > first[1] else 0),
        old_lines=last[2] - first[1],
        new_start=first[3] + (1 if last[4] > first[3] else 0),
        new_lines=last[4] - first[3],
        lines=[_shown(line) for line in lines],
        by=authors(labels),
        turns=turns(labels),
    )


def _shown(line: str) -> str:
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
