"""Kills a snapshot, a restore or a deletion before each of its steps, and looks what is left.

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

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.folders import contents, git
from support.killing import Steps, apart

from dragoman.host.snapshots.shadow import Shadow, ref_name
from dragoman.host.snapshots.snapshots import Snapshots, undo_of
from dragoman.host.snapshots.timeline import Step, Timeline

ROOTS = ("here", "there")


def fill(folder: Path) -> None:
    (folder / "sub").mkdir(parents=True)
    for name in ("edited", "gone", "moved", "sub/gone", "tool", "mine"):
        (folder / name).write_text("".join(f"{name} {number}\n" for number in range(9)))
    (folder / "link").symlink_to("edited")
    (folder / "void").mkdir()
    git(folder, "init", "-q")
    git(folder, "add", "edited", "tool")
    git(folder, "commit", "-qm", "first")
    (folder / "tool").write_text("staged\n")
    git(folder, "add", "tool")


def act(folder: Path) -> None:
    (folder / "edited").write_text("the agent's\n")
    (folder / "gone").unlink()
    (folder / "moved").rename(folder / "elsewhere")
    shutil.rmtree(folder / "sub")
    (folder / "sub").write_text("a file now\n")
    (folder / "tool").chmod(0o755)
    (folder / "link").unlink()
    (folder / "link").symlink_to("tool")
    (folder / "void").rmdir()
    (folder / "new" / "deep").mkdir(parents=True)
    (folder / "new" / "deep" / "file").write_text("new\n")


class Trial:
    """Folders and snapshots of them, as they were before what is killed."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.work, self.kept = top / "work", top / "kept"
        self.roots = [str(self.work / name) for name in ROOTS]

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.work / "data")

    @property
    def shadows(self) -> list[Shadow]:
        snapshots = self.snapshots
        return [snapshots.shadow(root) for root in self.roots]

    async def begin(self) -> None:
        for root in self.roots:
            fill(Path(root))
        snapshots = self.snapshots
        start = await snapshots.take(self.roots, "s")
        await snapshots.take(self.roots, "other")
        for root in self.roots:
            shutil.copytree(root, self.top / "before" / Path(root).name, symlinks=True)
            act(Path(root))
        end = await snapshots.take(self.roots, "s")
        for root in self.roots:
            (Path(root) / "mine").write_text("since\n")
        await snapshots.take(self.roots, "other")
        for root in self.roots:
            (Path(root) / "mine").write_text("and since\n")
        step = Step("turn", "turn", start, end)
        (self.work / "step").write_bytes(msgspec.json.encode(step))
        shutil.copytree(self.work, self.kept, symlinks=True)

    def again(self) -> None:
        shutil.rmtree(self.work)
        shutil.copytree(self.kept, self.work, symlinks=True)

    @property
    def timeline(self) -> Timeline:
        timeline = Timeline()
        timeline.steps = [msgspec.json.decode((self.work / "step").read_bytes(), type=Step)]
        return timeline

    def now(self) -> list[dict[str, object]]:
        return [contents(Path(root), but=[".git"]) for root in self.roots]

    # ── what is killed ────────────────────────────────────────────────────────────────────────

    async def snapshot(self) -> None:
        found = await self.snapshots.take(self.roots, "s")
        assert [each.problem for each in found] == ["", ""], found

    async def restore(self) -> None:
        await self.snapshots.restore(
            undo_of(self.timeline, "turn"),
            lambda _: (),
            restore_id="restore-1",
            session_id="s",
            record=lambda _: None,
        )

    async def forget(self) -> None:
        await self.snapshots.forget("other")

    async def forget_all(self) -> None:
        snapshots = self.snapshots
        await snapshots.forget("other")
        await snapshots.forget("s")

    # ── what is left ──────────────────────────────────────────────────────────────────────────

    async def check(self, what: str, after: list[dict[str, object]]) -> None:
        before = [contents(self.kept / name, but=[".git"]) for name in ROOTS]
        self._check_users_repository()
        snapshots = self.snapshots
        finished = await snapshots.finish_left()
        now = self.now()
        if finished:
            assert [each.left for each in finished] == [{}], finished
            assert now == after, f"it was finished, and it is {now}"
        else:
            assert now in (before, after), f"neither before nor after: {now}"
        if what == "restore" and now == before:  # it can be done
            await self.restore()
            assert self.now() == after
        if what.startswith("forget"):
            await getattr(self, what)()
        found = await snapshots.take(self.roots, "s")
        assert [each.problem for each in found] == ["", ""], found
        self._check_users_repository()
        for shadow in self.shadows:
            await self._check_shadow(shadow, what)
        if what in ("snapshot", "restore", "forget"):
            changes = await snapshots.changes(self.timeline.steps, lambda _: ())
            assert len(changes.files) >= 2 * 8, changes.problems

    def _check_users_repository(self) -> None:
        for name in ROOTS:
            kept, now = (contents(top / name / ".git") for top in (self.kept, self.work))
            assert now == kept, f"the repository of {name} was changed"

    async def _check_shadow(self, shadow: Shadow, what: str) -> None:
        repository = Path(shadow.git.directory)
        names = [str(each.relative_to(shadow.directory)) for each in shadow.directory.rglob("*")]
        left = [each for each in names if each.endswith((".lock", ".new", ".json", ".part"))]
        assert left == [], left
        git(repository, "--git-dir=.", "fsck", "--full", "--strict")
        known = shadow.sessions()
        wanted = {"s"} if what.startswith("forget") else {"s", "other"}
        assert known == {ref_name(each) for each in wanted}, f"{len(known)} sessions"


def main(top: Path, what: str, first: int, stride: int) -> None:
    trial, steps = Trial(top), Steps(os.environ["STEPS"])
    assert apart(trial.begin) == 0
    assert apart(getattr(trial, what), steps, 0) == 0
    count, after = steps.stop(), trial.now()
    tried = range(first, count + 1, stride)
    for at in tried:
        trial.again()
        ended = apart(getattr(trial, what), steps, at)
        steps.stop()
        if ended not in (0, -signal.SIGKILL):  # another time, there may be a step less
            sys.exit(f"killed at {at}, it ended with {ended}")
        if apart(lambda: trial.check(what, after)) != 0:
            sys.exit(f"that was left by {what}, killed at step {at} of {count}")
    os.write(1, json.dumps({"steps": count, "tried": len(tried)}).encode())


main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3].split(":")))
