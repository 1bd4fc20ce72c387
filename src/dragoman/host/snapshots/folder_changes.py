"""What changed in a session's folders, file by file, and who did it.

Made of the snapshots of its turns, joined with what Dragoman wrote for the agent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

from dragoman.host.rules.protected import protection
from dragoman.host.snapshots.folder_scan import shown
from dragoman.host.snapshots.git_output import FOLDER, Blob, TreeChange
from dragoman.host.snapshots.line_history import (
    Compared,
    FileComparison,
    Hunk,
    Label,
    Version,
    authors,
    compared,
    turns,
)
from dragoman.host.snapshots.shadow import Shadow
from dragoman.host.snapshots.timeline import FolderMoment, Step, moments
from dragoman.host.workspace.changes import MAX_CHANGES, Change
from dragoman.host.workspace.diffs import MAX_WORK
from dragoman.session.facts import Author, FileStatus, LeftOut, RootSnapshot

LARGEST_TEXT = 1 << 20
"""Bytes of a file that is compared line by line."""
LARGEST_LINES = 100_000
"""Lines of such a file."""
_MOST_TEXT = 32 << 20
_MOST_LINES = 500_000
"""Of all versions of all files in one answer: a line costs far more than its characters."""
_MOST_WORK = 20_000_000
"""Pairs of lines that are compared for one answer: seconds."""
_WEIGHT: tuple[Author, ...] = ("imported", "unknown", "agent", "host", "other", "restore")

Written = Callable[[str], Sequence[Change]]
"""What Dragoman wrote in a turn."""


class ChangedFile(FileComparison):
    """A file of a session's folders before and after, and who changed it. Its texts and hunks are
    missing if it is binary or too large; the modes are git's, `040000` for an empty folder."""

    @property
    def source(self) -> Author:
        """The one of `by` that matters most."""
        for each in _WEIGHT:
            if each in self.by:
                return each
        return "unknown"

    @property
    def existed(self) -> bool:
        return self.status != "added"

    def diff(self, root: str = "") -> str:
        """A unified diff, with names relative to `root` if they are beneath it."""
        above = root.rstrip("/") + "/"
        old, new = (_name(each, above) for each in (self.old_path or self.path, self.path))
        old = "/dev/null" if self.status == "added" else f"a/{old}"
        new = "/dev/null" if self.status == "deleted" else f"b/{new}"
        lines: list[str] = []
        if self.old_path is not None:
            lines += [f"rename from {_name(self.old_path, above)}", f"rename to {new[2:]}"]
        if None not in (self.old_mode, self.new_mode) and self.old_mode != self.new_mode:
            lines += [f"old mode {self.old_mode}", f"new mode {self.new_mode}"]
        if FOLDER in (self.old_mode, self.new_mode):
            lines.append(f"{'New' if self.status == 'added' else 'Deleted'} folder")
        elif self.binary:
            lines.append(f"Binary files {old} and {new} differ")
        elif self.hunks:
            lines += [f"--- {old}", f"+++ {new}"]
            lines += [line for hunk in self.hunks for line in (_head(hunk), *hunk.lines)]
        elif self.status in ("added", "deleted"):
            lines.append(f"{'New' if self.status == 'added' else 'Deleted'} empty file")
        return "".join(f"{line}\n" for line in lines)


class FolderProblem(msgspec.Struct, kw_only=True, rename="camel"):
    """Why a folder is not watched, or its snapshots are missing."""

    root: str
    reason: str


class FolderChanges(msgspec.Struct, kw_only=True, rename="camel"):
    """What changed in a session's folders. `complete` is false if files were left out because they
    are too large together; `tracked` is false if there are no snapshots, so that only what Dragoman
    itself wrote is known. `live` says that a turn is running. `ignored` are the first of the
    `ignored_count` files and folders (with a slash) that git ignores, so that nobody watches
    them."""

    files: list[ChangedFile] = []
    complete: bool = True
    tracked: bool = True
    live: bool = False
    problems: list[FolderProblem] = []
    left_out: list[LeftOut] = []
    ignored: list[str] = []
    ignored_count: int = 0


class Difference(msgspec.Struct):
    """A file that differs, what a person is shown of it, and what a restore of hunks works on."""

    shadow: Shadow
    change: TreeChange
    file: ChangedFile
    compared: Compared | None = None


async def differences(
    shadow: Shadow,
    steps: Sequence[Step],
    written: Written,
    *,
    last: RootSnapshot | None = None,
    most: int = MAX_CHANGES,
    is_brief: bool = False,
    hunks: Collection[str] = (),
) -> tuple[list[Difference], int]:
    """From the first snapshot of these steps to the last, and how many there are. What is `brief`
    has no text; with what a restore works on are only files with one of these `hunks`. Raises
    GitFailed."""
    chain = moments(list(steps), shadow.root, last)
    if len(chain) < 2:
        return [], 0
    first, final = chain[0].snapshot, chain[-1].snapshot
    changes = await tree_changes(shadow, first.tree or "", final.tree or "")
    made, gone = await _folders(shadow, first, final)
    history: _History = await _history(shadow, chain) if changes or made or gone else ()
    reader = _Reader(shadow, history, written, is_brief=is_brief, hunks=hunks)
    found = await reader.read(changes[:most])
    came = await _comings(shadow, chain, history, made | gone)
    found += [_folder(shadow, path, came[path], is_new=path in made) for path in sorted(came)]
    return found, len(changes) + len(came)


_History = Sequence[tuple[Label, Mapping[bytes, TreeChange]]]


async def _history(shadow: Shadow, chain: Sequence[FolderMoment]) -> _History:
    """What each moment changed, by name."""
    trees = [moment.snapshot.tree or "" for moment in chain]
    found = await shadow.compare_each(list(pairwise(trees)))
    return [
        (after.label, {each.path: each for each in changes})
        for after, changes in zip(chain[1:], found, strict=True)
    ]


class _LineRoom:
    """The lines that are still compared for one answer."""

    def __init__(self) -> None:
        self._left = _MOST_LINES

    def take(self, versions: Sequence[str | None]) -> bool:
        """Whether there is room for these versions of a file."""
        counts = [text.count("\n") for text in versions if text is not None]
        has_room = max(counts, default=0) <= LARGEST_LINES and sum(counts) <= self._left
        self._left -= sum(counts) if has_room else 0
        return has_room


@dataclass
class _Reader:
    """Makes differences of what git says differs."""

    shadow: Shadow
    history: _History
    written: Written
    is_brief: bool
    hunks: Collection[str]
    room: _LineRoom = field(default_factory=_LineRoom)
    writes: dict[str, dict[str, Change]] = field(default_factory=dict[str, dict[str, Change]])

    async def read(self, changes: Sequence[TreeChange]) -> list[Difference]:
        chains = [self._chain(change) for change in changes]
        blobs = [blob for chain in chains for _, blob in chain if blob is not None]
        sizes = await self.shadow.git.sizes([blob.id for blob in blobs])
        texts = await self.shadow.git.contents(_fitting([blob.id for blob in blobs], sizes))
        work = min(MAX_WORK, _MOST_WORK // max(sum(map(len, chains)), 1))

        def differences() -> list[Difference]:
            return [
                self._difference(change, chain, texts, sizes, work)
                for change, chain in zip(changes, chains, strict=True)
            ]

        return await asyncio.to_thread(differences)

    def _chain(self, change: TreeChange) -> list[tuple[Label, Blob | None]]:
        """The file's versions, the oldest first, under whatever name."""
        name, chain = change.path, list[tuple[Label, Blob | None]]()
        for label, changed in reversed(self.history):
            if (step := changed.get(name)) is None:
                continue
            chain.append((label, step.after))
            moved_from = change.old_path
            if step.before is None and moved_from is not None and moved_from in changed:
                name = moved_from
        return [(Label("other"), change.before), *reversed(chain)]

    def _difference(
        self,
        change: TreeChange,
        chain: Sequence[tuple[Label, Blob | None]],
        contents: Mapping[str, bytes],
        sizes: Mapping[str, int],
        work: int,
    ) -> Difference:
        file = self._file(change, sizes)
        versions = self._versions(file.path, chain, contents)
        # A mode, or a file that is not text, changes without another version of it.
        labels = {version.label for version in versions[1:]} or {label for label, _ in chain[1:]}
        difference = Difference(self.shadow, change, file)
        texts = [_text(version.content) for version in versions]
        before, after = texts[0], texts[-1]
        if before is None or after is None or not self.room.take(texts):
            file.binary = True
        else:
            told = [
                Version(text, version.label)
                for version, text in zip(versions, texts, strict=True)
                if text is not None
            ]
            ids = (each.id if each else "" for each in (change.before, change.after))
            found = compared(told, "\0".join((file.path, *ids)), work)
            file.added, file.removed = found.added, found.removed
            by_lines = {Label(by) for hunk in found.hunks for by in hunk.by}
            steps = {step for hunk in found.hunks for step in hunk.turns}
            if not self.is_brief:
                file.before, file.after = (
                    _shown_text(change.before, before),
                    _shown_text(change.after, after),
                )
                file.hunks = found.hunks
            if any(hunk.id in self.hunks for hunk in found.hunks):
                difference.compared = found
            if by_lines and change.status == "modified":
                file.by, file.turns = authors(by_lines), sorted(steps)
                return difference
        file.by, file.turns = authors(labels), turns(labels)
        return difference

    def _file(self, change: TreeChange, sizes: Mapping[str, int]) -> ChangedFile:
        """What is known of it without a look at its contents."""
        path_of = self.shadow.path_of
        path = shown(path_of(change.path))
        return ChangedFile(
            path=path,
            status=change.status,
            old_path=None if change.old_path is None else shown(path_of(change.old_path)),
            protected=protection(path),
            old_mode=None if change.before is None else change.before.mode,
            new_mode=None if change.after is None else change.after.mode,
            old_size=0 if change.before is None else sizes.get(change.before.id, 0),
            new_size=0 if change.after is None else sizes.get(change.after.id, 0),
        )

    def _versions(
        self,
        path: str,
        chain: Sequence[tuple[Label, Blob | None]],
        contents: Mapping[str, bytes],
    ) -> list[_Content]:
        """With what Dragoman wrote in between."""
        versions = [_Content(chain[0][0], _content(chain[0][1], contents))]
        for label, blob in chain[1:]:
            write = self._write(label.step, path)
            if write is not None and write.is_kept and not write.is_disturbed:
                _append(versions, _Content(label, write.before or b""))
                _append(versions, _Content(Label("host", label.step), write.after))
            _append(versions, _Content(label, _content(blob, contents)))
        return versions

    def _write(self, step: str | None, path: str) -> Change | None:
        if step is None:
            return None
        if step not in self.writes:
            self.writes[step] = {each.path: each for each in self.written(step)}
        return self.writes[step].get(path)


class _Content(msgspec.Struct, frozen=True):
    """A version; None for one that is not to be read."""

    label: Label
    content: bytes | None


def _append(versions: list[_Content], version: _Content) -> None:
    if versions[-1].content != version.content or version.content is None:
        versions.append(version)


def _content(blob: Blob | None, contents: Mapping[str, bytes]) -> bytes | None:
    return b"" if blob is None else contents.get(blob.id)


def _text(content: bytes | None) -> str | None:
    if content is None or b"\0" in content[:8000]:
        return None
    return content.decode("utf-8", "surrogateescape")


def _shown_text(blob: Blob | None, text: str) -> str | None:
    return (
        None if blob is None else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    )


def _fitting(ids: Sequence[str], sizes: Mapping[str, int]) -> list[str]:
    """Those that are small enough, as many as there is room for."""
    fitting: list[str] = []
    room = _MOST_TEXT
    for blob_id in dict.fromkeys(ids):
        size = sizes.get(blob_id, LARGEST_TEXT + 1)
        if size <= LARGEST_TEXT and size <= room:
            room -= size
            fitting.append(blob_id)
    return fitting


async def tree_changes(
    shadow: Shadow, before: str, after: str, *, moves: bool = True
) -> list[TreeChange]:
    """What differs. A file that only appears because the rules for ignored files changed was there
    before, and does not."""
    changes = await shadow.compare(before, after, moves=moves)
    names = {os.path.basename(each.path) for each in changes}
    new = [each.path for each in changes if each.before is None]
    if b".gitignore" not in names or not new:
        return changes
    were_ignored = await shadow.ignored_at(before, new)
    return [each for each in changes if each.path not in were_ignored]


async def _folders(
    shadow: Shadow, first: RootSnapshot, final: RootSnapshot
) -> tuple[set[str], set[str]]:
    """Folders without files that came, and those that went."""
    old, new = set(first.empty_folders), set(final.empty_folders)
    made, gone = new - old, old - new
    return made - await _there(shadow, first, made), gone - await _there(shadow, final, gone)


async def _there(shadow: Shadow, snapshot: RootSnapshot, paths: Collection[str]) -> set[str]:
    """Those of these folders that a snapshot has, with files or without."""
    empty = set(snapshot.empty_folders)
    names = {shadow.name_of(os.fsencode(path)): path for path in paths if path not in empty}
    found = await shadow.folders_at(snapshot.tree or "", list(names))
    return empty.intersection(paths) | {names[name] for name in found}


async def _comings(
    shadow: Shadow, chain: Sequence[FolderMoment], history: _History, paths: Collection[str]
) -> dict[str, set[Label]]:
    """The steps in which each of these folders came or went: in between it may have had files."""
    names = {path: shadow.name_of(os.fsencode(path)) for path in paths}
    found: dict[str, set[Label]] = {path: set() for path in paths}
    for (before, after), (label, changed) in zip(pairwise(chain), history, strict=False):
        one, other = before.snapshot, after.snapshot
        unlike, above = {*one.empty_folders} ^ {*other.empty_folders}, _above(changed)
        some = [path for path, name in names.items() if path in unlike or name in above]
        for path in await _there(shadow, one, some) ^ await _there(shadow, other, some):
            found[path].add(label)
    return found


def _above(names: Iterable[bytes]) -> set[bytes]:
    """Every folder that one of these files is in."""
    found: set[bytes] = set()
    for name in names:
        while (name := os.path.dirname(name)) and name not in found:
            found.add(name)
    return found


def _folder(shadow: Shadow, path: str, labels: set[Label], *, is_new: bool) -> Difference:
    status: FileStatus = "added" if is_new else "deleted"
    old, new = (None, Blob(FOLDER, "")) if is_new else (Blob(FOLDER, ""), None)
    change = TreeChange(shadow.name_of(os.fsencode(path)), status, before=old, after=new)
    file = ChangedFile(
        path=path,
        status=status,
        by=authors(labels),
        turns=turns(labels),
        old_mode=old.mode if old else None,
        new_mode=new.mode if new else None,
    )
    return Difference(shadow, change, file)


def _head(hunk: Hunk) -> str:
    old, new = (hunk.old_start, hunk.old_lines), (hunk.new_start, hunk.new_lines)
    return f"@@ -{_span(*old)} +{_span(*new)} @@"


def _span(start: int, length: int) -> str:
    return f"{start}" if length == 1 else f"{start},{length}"


def _name(path: str, above: str) -> str:
    name = path.removeprefix(above).lstrip("/")
    # A line feed in a name must not pass for a line of the diff.
    return name if name.isprintable() else ascii(name)


def known_changes(known: Sequence[tuple[Author, Change]]) -> FolderChanges:
    """What passed through Dragoman, or was reported, where there are no snapshots."""
    work, room = min(MAX_WORK, _MOST_WORK // max(len(known), 1)), _LineRoom()
    files = [_known(by, change, work, room) for by, change in known]
    return FolderChanges(files=files, tracked=False)


def _known(by: Author, change: Change, work: int, room: _LineRoom) -> ChangedFile:
    path = str(change.path)
    file = ChangedFile(
        path=path,
        status="modified" if change.existed else "added",
        by=[by],
        turns=[] if change.turn is None else [change.turn],
        protected=protection(path),
        old_size=len(change.before or b""),
        new_size=len(change.after),
    )
    before, after = _text(change.before or b""), _text(change.after)
    if not change.is_kept or before is None or after is None or not room.take((before, after)):
        file.binary = True
        return file
    label = Label(by, change.turn)
    found = compared([Version(before, label), Version(after, label)], path, work)
    file.before = before if change.existed else None
    file.after, file.hunks = after, found.hunks
    file.added, file.removed = found.added, found.removed
    return file
