"""Takes what turns did to a folder back out of it, as it is now.

Three versions of each file meet: before the turn, after it, and now. Where someone changed the
file since, both are merged, line by line; what cannot be is a conflict, and nothing is done until a
person has chosen.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypedDict

import msgspec

from dragoman.host.snapshots.folder_changes import Difference, tree_changes
from dragoman.host.snapshots.folder_scan import shown
from dragoman.host.snapshots.git_output import LINK, PLAIN, Blob
from dragoman.host.snapshots.journal import Done, Operation, RestoreJournal
from dragoman.host.snapshots.shadow import Shadow, is_rules
from dragoman.host.snapshots.timeline import Step
from dragoman.host.workspace.diffs import merged, without
from dragoman.session.facts import RootSnapshot

Choice = Literal["keep", "restore"]
"""What becomes of a file that someone changed since: it stays, or its earlier content is put over
it."""

_CHANGED = "someone changed the same lines since"
_CHANGED_FILE = "someone changed it since"
_CREATED = "someone created it again since"
_DELETED = "someone deleted it since"
_NOT_KEPT = "its earlier content was too large to keep"
_FILE_IN_THE_WAY = "a file is now where its folder was"
_LINK_IN_THE_WAY = "a symbolic link is now where its folder was"
_FOLDER_IN_THE_WAY = "a folder is now in its place"
_NEVER_FORCED = (_NOT_KEPT, _FILE_IN_THE_WAY, _LINK_IN_THE_WAY, _FOLDER_IN_THE_WAY)
"""That would take another file than the one that is chosen."""


class RevertOptions(TypedDict, total=False):
    """Which files and hunks are undone, and what becomes of those that someone changed since."""

    paths: Collection[str] | None
    hunks: Collection[str] | None
    force: bool
    choices: Mapping[str, Literal["keep", "restore"]] | None


class Choices(msgspec.Struct, frozen=True):
    """What a person chose: for some files, and for all others if `force`."""

    by_path: Mapping[str, Choice] = {}
    force: bool = False

    def of(self, path: str) -> Choice | None:
        if (chosen := self.by_path.get(path)) is not None:
            return chosen
        return "restore" if self.force else None


class UndoPlan:
    """What to do to one folder, from what it is `now`; `conflicts` are to be chosen first."""

    def __init__(self, shadow: Shadow, now: RootSnapshot, choices: Choices) -> None:
        self.shadow = shadow
        self.conflicts: dict[str, str] = {}
        self.by_force = True
        """Whether `force` would settle all of them."""
        self.kept: list[str] = []
        self.done = Done([], [], [])
        self._now = now
        self._choices = choices
        self._found: dict[bytes, Blob | None] = {}
        self._wanted: dict[bytes, Blob | None] = {}
        self._first: RootSnapshot | None = None
        self._folders: dict[bytes, bool] = {}
        """By name, whether it is to be there."""
        self._settled: set[bytes] = set()
        """Files that stay, whatever else was done to them."""

    @property
    def does_anything(self) -> bool:
        return bool(self._changed() or self._folders)

    @property
    def paths(self) -> list[str]:
        """What was changed: of the folders, those that are more than the way to a file."""
        changed = {*self.done.made, *self.done.emptied}
        folders = [self.shadow.path_of(name) for name in self._folders]
        files = [each.path for each in self.done.operations]
        return [shown(each) for each in (*files, *(path for path in folders if path in changed))]

    def _path(self, name: bytes) -> str:
        return shown(self.shadow.path_of(name))

    # ── whole turns ───────────────────────────────────────────────────────────────────────────

    async def undo(self, steps: Sequence[Step], paths: Collection[str] | None) -> None:
        """Take these steps back out, the last one first."""
        self._first = self._start_of(steps)
        for step in reversed(steps):
            start, end = self._of(step.start), self._of(step.end or [self._now])
            if start is not None and end is not None:
                await self._undo_step(start, end, paths, step.own)

    def _start_of(self, steps: Sequence[Step]) -> RootSnapshot | None:
        return next((found for step in steps if (found := self._of(step.start))), None)

    def _of(self, roots: Iterable[RootSnapshot]) -> RootSnapshot | None:
        found = (each for each in roots if each.root == self.shadow.root and each.tree)
        return next(found, None)

    async def _undo_step(
        self,
        start: RootSnapshot,
        end: RootSnapshot,
        paths: Collection[str] | None,
        own: Collection[str] | None,
    ) -> None:
        changes = await tree_changes(self.shadow, start.tree or "", end.tree or "")
        chosen: dict[bytes, tuple[Blob | None, Blob | None]] = {}
        for change in changes:
            names = [change.path] if change.old_path is None else [change.old_path, change.path]
            if paths is not None and not any(self._path(name) in paths for name in names):
                continue
            if change.old_path is None:
                chosen[change.path] = (change.before, change.after)
            else:
                chosen[change.old_path] = (change.before, None)
                chosen[change.path] = (None, change.after)
        if own is not None:
            # The place of a link that someone deleted may have become a folder.
            chosen = {name: each for name, each in chosen.items() if self._path(name) in own}
        await self._look([name for name in chosen if name not in self._found])
        for name, (before, after) in chosen.items():
            if name not in self._settled:
                await self._take_back(name, before, after, start)
        await self._undo_folders(start, end, paths)

    async def _look(self, names: Sequence[bytes]) -> None:
        there = await self.shadow.blobs_at(self._now.tree or "", names)
        for name in names:
            self._found[name] = self._wanted[name] = there.get(name)

    async def _undo_folders(
        self, start: RootSnapshot, end: RootSnapshot, paths: Collection[str] | None
    ) -> None:
        old, new = set(start.empty_folders), set(end.empty_folders)
        unlike = [path for path in old ^ new if paths is None or path in paths]
        names = {self.shadow.name_of(os.fsencode(path)): path in old for path in unlike}
        # One that had files before is there again with them.
        had_files = await self.shadow.folders_at(start.tree or "", list(names))
        self._folders |= {name: there for name, there in names.items() if name not in had_files}

    async def _take_back(
        self, name: bytes, before: Blob | None, after: Blob | None, start: RootSnapshot
    ) -> None:
        path, now = self._path(name), self._wanted[name]
        if self._choices.by_path.get(path) == "keep":
            self._keep(name)
        elif before is None and _may_be_left_out(path, start):
            self._object(name, _NOT_KEPT, None)
        elif now == after:
            self._wanted[name] = before
        elif now != before:
            result = await self._merge(base=after, ours=now, theirs=before)
            if isinstance(result, str):
                self._object(name, result, before)
            else:
                self._wanted[name] = result

    def _object(self, name: bytes, reason: str, before: Blob | None) -> None:
        path = self._path(name)
        choice = self._choices.of(path)
        if choice == "restore" and reason not in _NEVER_FORCED:
            self._wanted[name] = before
        else:
            self.conflicts[path] = reason
            self.by_force &= reason not in _NEVER_FORCED

    def _keep(self, name: bytes) -> None:
        self._wanted[name] = self._found[name]
        self._settled.add(name)
        self.kept.append(self._path(name))

    async def _merge(
        self, base: Blob | None, ours: Blob | None, theirs: Blob | None
    ) -> Blob | str | None:
        """What both lead to, or why there is no such thing."""
        if base is None:
            return _CREATED
        if ours is None:
            return _DELETED
        if theirs is None or LINK in (base.mode, ours.mode, theirs.mode):
            return _CHANGED_FILE
        mode = ours.mode if theirs.mode == base.mode else theirs.mode
        if base.id in (ours.id, theirs.id):
            return Blob(mode, theirs.id if ours.id == base.id else ours.id)
        contents = await self.shadow.git.contents([base.id, ours.id, theirs.id])
        texts = [_text(contents.get(each.id)) for each in (base, ours, theirs)]
        if None in texts:
            return _CHANGED_FILE
        result = merged(*(text or "" for text in texts))
        if result is None:
            return _CHANGED
        return Blob(mode, await self.shadow.git.keep_content(_bytes(result)))

    # ── hunks ─────────────────────────────────────────────────────────────────────────────────

    async def undo_hunks(
        self, steps: Sequence[Step], found: Difference, ids: Collection[str]
    ) -> None:
        """Put the earlier lines back in place of these hunks of a file, as these steps left it."""
        self._first = self._start_of(steps)
        change, compared = found.change, found.compared
        if compared is None:
            return
        hunks = zip(compared.hunks, compared.steps, strict=True)
        chosen = [steps for hunk, steps in hunks if hunk.id in ids]
        name = change.path
        await self._look([name])
        content = _bytes(without(compared.old, compared.new, chosen))
        before = None
        if change.before is not None or len(chosen) < len(compared.hunks):
            mode = (change.after or change.before or Blob(PLAIN, "")).mode
            before = Blob(mode, await self.shadow.git.keep_content(content))
        await self._take_back(name, before, change.after, self._now)

    # ── what is in the way ────────────────────────────────────────────────────────────────────

    async def clear_ways(self) -> None:
        """Note what someone else put where files are to come back: that stays."""
        coming = [name for name, blob in self._wanted.items() if blob and not self._found[name]]
        if not coming:
            return
        tree = self._now.tree or ""
        above = dict.fromkeys(folder for name in coming for folder in _above(name))
        there = await self.shadow.blobs_at(tree, list(above))
        files = self._staying(there)
        folders = await self.shadow.folders_at(tree, coming)
        inside = self._staying(await self.shadow.files_beneath(tree, list(folders)))
        empty = {self.shadow.name_of(os.fsencode(each)) for each in self._now.empty_folders}
        inside |= {each for each in empty if self._folders.get(each, True)}
        taken = inside.union(*map(_above, inside))
        for name in coming:
            if found := files.intersection(_above(name)):
                is_link = there[found.pop()].mode == LINK
                self._object(name, _LINK_IN_THE_WAY if is_link else _FILE_IN_THE_WAY, None)
            elif name in taken:
                self._object(name, _FOLDER_IN_THE_WAY, None)

    def _staying(self, names: Iterable[bytes]) -> set[bytes]:
        return {each for each in names if each not in self._wanted or self._wanted[each]}

    # ── doing it ──────────────────────────────────────────────────────────────────────────────

    async def work(self, restore_id: str, session_id: str) -> tuple[Shadow, RestoreJournal]:
        """What is to be done, and where."""
        made = [self.shadow.path_of(name) for name, there in self._folders.items() if there]
        emptied = await self._emptied()
        journal = RestoreJournal(restore_id, session_id, self._operations(), made, emptied)
        return self.shadow, journal

    def _operations(self) -> list[Operation]:
        return [
            Operation(self.shadow.path_of(name), before=self._found[name], after=blob)
            for name, blob in self._changed().items()
        ]

    def _changed(self) -> dict[bytes, Blob | None]:
        return {name: blob for name, blob in self._wanted.items() if blob != self._found[name]}

    async def as_left(self, end: RootSnapshot, session_id: str) -> RootSnapshot:
        """The folder at the end of the restore, without what someone else did to it meanwhile."""
        if self._now.tree is None or end.tree is None:
            return end
        changed = {self.shadow.name_of(each.path): each.after for each in self.done.operations}
        found = await self.shadow.compare_plainly(self._now.tree, end.tree)
        if any(is_rules(name) for name in (*changed, *found)):
            return end
        empty = self._left_empty(end)
        if changed == found and empty == end.empty_folders:
            return end
        tree = await self.shadow.tree_with(self._now.tree, changed, session_id)
        return msgspec.structs.replace(end, tree=tree, empty_folders=empty)

    def _left_empty(self, end: RootSnapshot) -> list[str]:
        """Those that were empty before, and those that are now, if nothing was done in them."""
        done = self.done
        paths = (*(each.path for each in done.operations), *done.made, *done.emptied)
        names = [self.shadow.name_of(each) for each in paths]
        above = {folder for name in names for folder in (name, *_above(name))}
        ours = {shown(self.shadow.path_of(name)) for name in above}
        before, after = self._now.empty_folders, end.empty_folders
        left = [each for each in after if each in ours or each in before]
        return left + [each for each in before if each not in ours and each not in after]

    async def _emptied(self) -> list[bytes]:
        """Folders that were not there before and may be empty now, the innermost first."""
        taken = [name for name, blob in self._wanted.items() if blob is None]
        gone = [name for name, there in self._folders.items() if not there]
        folders = {folder for name in (*taken, *gone) for folder in _above(name)} | {*gone}
        if self._first is None or not folders:
            return []
        names = [self.shadow.name_of(os.fsencode(each)) for each in self._first.empty_folders]
        known = await self.shadow.folders_at(self._first.tree or "", list(folders))
        known |= {*names, *(folder for name in names for folder in _above(name))}
        innermost = sorted(folders - known, key=lambda name: -name.count(b"/"))
        return [self.shadow.path_of(name) for name in innermost]


def _may_be_left_out(path: str, snapshot: RootSnapshot) -> bool:
    named = {each.path for each in snapshot.left_out}
    return path in named or snapshot.left_out_count > len(named)


def _above(name: bytes) -> Iterable[bytes]:
    while name := os.path.dirname(name):
        yield name


def _text(content: bytes | None) -> str | None:
    if content is None or b"\0" in content[:8000]:
        return None
    return content.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
