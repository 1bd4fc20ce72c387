"""Brings what was done in a worktree into the user's checkout, all of it or nothing.

Trees are merged first, without touching a file. Then files are changed as git does it, which
checks all of them before it changes one; the index and `HEAD` follow. Each step leaves the
checkout so that the same merge, tried again, finishes it: a file that has the wanted content
already is not in the way.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress

from dragoman.errors import MergeConflict, WorktreeError
from dragoman.host.snapshots.git_output import Blob, TreeChange
from dragoman.worktrees.merge_remains import (
    forget_switch,
    merge_mark,
    note_switch,
    remove_merge_remains,
    take_back,
)
from dragoman.worktrees.users_repository import Checkout
from dragoman.worktrees.worktree_record import MergeResult, MergeWay, WorktreeRecord
from dragoman.worktrees.worktrees import Worktree

_STASH = "commit or stash these changes first, or merge with --patch"
_TAKEN = "git ignores what is in its place now"
_BY_HAND = (
    "resolve it in {path}: `git rebase {head}` there, then merge again; or take a part of "
    "`dragoman worktrees diff {name}`"
)


class MergeBack:
    """One merge of a worktree, which is locked."""

    def __init__(self, worktree: Worktree, into: Checkout | None = None) -> None:
        self._worktree = worktree
        self._record: WorktreeRecord = worktree.record
        self._into = into or worktree.origin
        self._index = f"{worktree.folder.path}/merge-index"

    async def merge(
        self,
        way: MergeWay,
        message: str,
        *,
        without: Collection[bytes] = (),
    ) -> MergeResult:
        """Do it; changes `without` these paths. Raises MergeConflict if it cannot be done as things
        are, WorktreeError if it could not be tried."""
        self._remove_index()
        await take_back(self._worktree.folder, self._record, self._into)
        tip = await self._tip(message, without)
        self._lock()
        try:
            if way == "patch":
                return await self._patch(await self._into.tree_of(tip))
            return await self._fast_forward(tip)
        except WorktreeError:
            await take_back(self._worktree.folder, self._record, self._into)
            raise
        finally:
            self._clean_up()

    def _lock(self) -> None:
        """Take git's lock of the user's index. It is a link to a file of ours, so that it is known
        to be ours if this process is killed."""
        mark, lock = merge_mark(self._record), os.path.join(self._into.git_dir, "index.lock")
        try:
            shutil.copy2(os.path.join(self._into.git_dir, "index"), mark)
            os.link(mark, lock)
        except FileExistsError:
            os.unlink(mark)
            reason = f"another git is at work ({lock}); try again when it has ended"
            raise WorktreeError(f"{self._into.top}: {reason}") from None

    def _clean_up(self) -> None:
        """It is over, one way or the other."""
        forget_switch(self._worktree.folder)
        remove_merge_remains(self._record)
        self._remove_index()

    def _remove_index(self) -> None:
        for path in (self._index, f"{self._index}.lock"):
            with suppress(FileNotFoundError):
                os.unlink(path)

    async def _tip(self, message: str, without: Collection[bytes]) -> str:
        """A commit with all that was done, except for some paths."""
        tip = await self._worktree.committed(message)
        if not without:
            return tip
        origin = self._worktree.origin
        kept = await origin.files_in(await origin.tree_of(self._record.base))
        changes = {path: kept.get(path) for path in without}
        tree = await origin.tree_with(await origin.tree_of(tip), changes, self._index)
        return await origin.commit(tree, (self._record.base,), message)

    # ── a patch ───────────────────────────────────────────────────────────────────────────────

    async def _patch(self, result: str) -> MergeResult:
        into = self._into
        base = await into.tree_of(self._record.base)
        now = await into.state(self._index)
        merged = await into.merge(base, now, result)
        if merged.conflicts:
            raise self._conflict(merged.conflicts)
        changes = await into.changes(now, merged.tree)
        await self._switch(now, merged.tree, changes)
        return MergeResult(way="patch", paths=_paths(changes))

    async def _switch(self, now: str, then: str, changes: list[TreeChange]) -> None:
        new = [os.fsdecode(each.path) for each in changes if each.before is None]
        if taken := {path: _TAKEN for path in new if self._is_taken(path)}:
            raise MergeConflict(self._record.name, taken, "move it out of the way first")
        note_switch(self._worktree.folder, now, then)
        try:
            await self._into.switch_files(now, then, self._index)
        except WorktreeError as error:
            forget_switch(self._worktree.folder)  # git changes all or nothing
            reason = str(error).partition(": ")[2]
            raise MergeConflict(self._record.name, {self._into.top: reason}, "try again") from error

    def _is_taken(self, path: str) -> bool:
        """Whether something that git ignores is in the place of a new file: git would overwrite
        it."""
        place = os.path.join(self._into.top, path)
        if os.path.lexists(place):
            return True
        above = os.path.dirname(path)
        while above and not os.path.lexists(os.path.join(self._into.top, above)):
            above = os.path.dirname(above)
        return bool(above) and not os.path.isdir(os.path.join(self._into.top, above))

    def _conflict(self, conflicts: dict[str, str]) -> MergeConflict:
        advice = _BY_HAND.format(
            path=self._record.path, name=self._record.name, head=self._record.head[:12]
        )
        return MergeConflict(self._record.name, conflicts, advice)

    # ── commits ───────────────────────────────────────────────────────────────────────────────

    async def _fast_forward(self, tip: str) -> MergeResult:
        into = self._into
        head = await into.head()
        goal = await self._rebased(tip, head)
        now = await into.state(self._index)
        changes = await into.changes(head, goal)
        await self._check_free(head, now, {each.path: each.after for each in changes})
        merged = await into.merge(await into.tree_of(head), now, await into.tree_of(goal))
        if merged.conflicts:
            raise self._conflict(merged.conflicts)
        await self._switch(now, merged.tree, await into.changes(now, merged.tree))
        await self._update_index(changes)
        await into.move_ref("HEAD", goal, head, f"dragoman: merge {self._record.branch}")
        return MergeResult(way="commit", paths=_paths(changes), commit=goal)

    async def _rebased(self, tip: str, head: str) -> str:
        """The commits of the worktree, one after the other on top of what is checked out."""
        origin, base = self._worktree.origin, self._record.base
        steps = await origin.commits_between(base, tip)
        if steps is None:  # it was rebased, or merged into: its outcome counts, as one commit
            steps = [await origin.commit(await origin.tree_of(tip), (base,), "")]
        if head == base:
            return tip
        before, on = base, head
        for step in steps:
            trees = [await origin.tree_of(each) for each in (before, on, step)]
            merged = await origin.merge(*trees)
            if merged.conflicts:
                raise self._conflict(merged.conflicts)
            if merged.tree != trees[1]:
                on = await origin.commit(
                    merged.tree, (on,), (await origin.message_of(step)).strip()
                )
            before = step
        return on

    async def _check_free(self, head: str, now: str, wanted: dict[bytes, Blob | None]) -> None:
        """Raises MergeConflict for files that the user has changed, unless they already are as they
        are to be."""
        into = self._into
        await into.copy_index(f"{self._index}-staged")
        try:
            staged = await into.line("write-tree", index=f"{self._index}-staged")
        except WorktreeError as error:
            reason = "a merge or rebase is under way; finish it first"
            raise MergeConflict(
                self._record.name, {into.top: reason}, "nothing was tried"
            ) from error
        finally:
            with suppress(FileNotFoundError):
                os.unlink(f"{self._index}-staged")
        changed = [each for tree in (staged, now) for each in await into.changes(head, tree)]
        in_the_way = {
            os.fsdecode(each.path): "it has changes that are not committed"
            for each in changed
            if each.path in wanted and each.after != wanted[each.path]
        }
        if in_the_way:
            raise MergeConflict(self._record.name, in_the_way, _STASH)

    async def _update_index(self, changes: list[TreeChange]) -> None:
        """Put the merged files into the user's index, with everything else in it as it is."""
        theirs = os.path.join(self._into.git_dir, "index")
        new = f"{merge_mark(self._record)}.new"
        shutil.copy2(theirs, new)
        await self._into.update_entries({each.path: each.after for each in changes}, new)
        os.replace(new, theirs)


def _paths(changes: list[TreeChange]) -> list[str]:
    return sorted(os.fsdecode(each.path) for each in changes)
