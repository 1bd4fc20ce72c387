"""Kills the making, merging or removing of a worktree before each of its steps, prunes, and looks
what is left.

Its first three arguments are a folder to work in, what is killed, and "first:stride" of the steps;
`killing_steps.c` is preloaded. Prints how many steps there were, or what is wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.folders import contents, git
from support.killing import Steps, apart

from dragoman.worktrees.merge_back import MergeBack
from dragoman.worktrees.worktrees import Worktrees, WorktreeWish


def act(folder: Path) -> None:
    (folder / "edited").write_text("the agent's\n")
    (folder / "gone").unlink()
    (folder / "new").write_text("new\n")


class Trial:
    """A project with a worktree that has changes, as it was before what is killed."""

    def __init__(self, top: Path) -> None:
        self.work, self.kept = top / "work", top / "kept"
        self.project = self.work / "project"

    @property
    def worktrees(self) -> Worktrees:
        return Worktrees(self.work / "records", self.work / "trees")

    async def begin(self) -> None:
        self.project.mkdir(parents=True)
        git(self.project, "init", "-q", "-b", "main")
        for name in ("edited", "gone", "mine"):
            (self.project / name).write_text(f"{name}\n" * 9)
        git(self.project, "add", ".")
        git(self.project, "commit", "-qm", "first")
        (self.project / "mine").write_text("not committed\n")
        (self.project / "untracked").write_text("untracked\n")
        worktree = await self.worktrees.make(str(self.project), WorktreeWish(name="done"))
        act(Path(worktree.path))
        shutil.copytree(self.work, self.kept, symlinks=True)

    def again(self) -> None:
        """In its place: git's files name each other by their paths."""
        shutil.rmtree(self.work)
        shutil.copytree(self.kept, self.work, symlinks=True)

    # ── what is killed ────────────────────────────────────────────────────────────────────────

    async def make(self) -> None:
        wish = WorktreeWish(name="next", uncommitted=True, setup="touch ready")
        await self.worktrees.make(str(self.project), wish)

    async def merge(self) -> None:
        await self._merge("commit")

    async def patch(self) -> None:
        await self._merge("patch")

    async def _merge(self, way: str) -> None:
        worktree = self.worktrees.opened(self.worktrees.find("done"))
        with worktree.folder.alone("done"):
            await MergeBack(worktree).merge(way, "the work")  # type: ignore[arg-type]

    async def remove(self) -> None:
        await self.worktrees.remove(self.worktrees.find("done"), force=True)

    async def branch(self) -> None:
        worktree = self.worktrees.opened(self.worktrees.find("done"))
        with worktree.folder.alone("done"):
            await worktree.to_branch("kept")

    # ── what is left ──────────────────────────────────────────────────────────────────────────

    async def check(self, what: str) -> None:
        git(self.project, "fsck", "--full", "--strict")
        await self.worktrees.prune()
        if what in ("merge", "patch", "branch"):
            names = [each.name for each in self.worktrees.all()]
            assert names == ["done"], names
        if what in ("merge", "patch"):  # it can be finished
            self._check_mine()
            await self._merge("commit" if what == "merge" else "patch")
            assert (self.project / "edited").read_text() == "the agent's\n"
            assert not (self.project / "gone").exists()
            log = git(self.project, "log", "--format=%s").split("\n")[:-1]
            assert log == (["the work", "first"] if what == "merge" else ["first"]), log
        self._check_mine()
        for record in self.worktrees.all():
            await self.worktrees.remove(record, force=True)
        self._check_nothing_left()
        if what in ("make", "remove", "branch"):
            self._check_untouched()

    def _check_mine(self) -> None:
        assert (self.project / "mine").read_text() == "not committed\n"
        assert (self.project / "untracked").read_text() == "untracked\n"

    def _check_untouched(self) -> None:
        before = contents(self.kept / "project", but=[".git"])
        assert contents(self.project, but=[".git"]) == before
        for name in ("index", "HEAD", "refs/heads/main"):
            now, then = (Path(top, ".git", name) for top in (self.project, self.kept / "project"))
            assert now.read_bytes() == then.read_bytes(), name

    def _check_nothing_left(self) -> None:
        repository = self.project / ".git"
        left = [*self.worktrees.records.iterdir(), *self.worktrees.trees.iterdir()]
        left += [each for each in repository.rglob("*") if "dragoman" in each.name]
        left += list(repository.rglob("*.lock"))
        left = [each for each in left if not each.is_dir() or any(each.iterdir())]
        assert left == [], left


def main(top: Path, what: str, first: int, stride: int) -> None:
    trial, steps = Trial(top), Steps(os.environ["STEPS"])
    assert apart(trial.begin) == 0
    assert apart(getattr(trial, what), steps, 0) == 0
    count = steps.stop()
    tried = range(first, count + 1, stride)
    for at in tried:
        trial.again()
        ended = apart(getattr(trial, what), steps, at)
        steps.stop()
        if ended not in (0, -signal.SIGKILL):  # another time, there may be a step less
            sys.exit(f"killed at {at}, it ended with {ended}")
        if apart(lambda: trial.check(what)) != 0:
            sys.exit(f"that was left by {what}, killed at step {at} of {count}")
    os.write(1, json.dumps({"steps": count, "tried": len(tried)}).encode())


main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3].split(":")))
