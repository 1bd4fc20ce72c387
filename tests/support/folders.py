"""Folders that something happens in, and what is in them."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from dragoman.host.snapshots.folder_changes import FolderChanges
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.host.snapshots.snapshots import Reverted, Snapshots, Undo
from dragoman.host.snapshots.timeline import Timeline
from dragoman.host.snapshots.undo_plan import Choice, Choices
from dragoman.host.workspace.changes import Change
from dragoman.session import events as e


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=A Person", "-c", "user.email=a@example.org")
    ran = subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return ran.stdout


def contents(folder: Path, *, but: Collection[str] = ()) -> dict[str, object]:
    """Everything beneath a folder: the bytes of a file and whether it is a program, where a link
    leads, None for a folder."""
    found: dict[str, object] = {}
    for directory, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each not in but]
        for name in (*folders, *files):
            path = Path(directory, name)
            key = str(path.relative_to(folder))
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found[key] = f"-> {path.readlink()}"
            elif stat.S_ISDIR(mode):
                found[key] = None
            else:
                found[key] = (path.read_bytes(), bool(mode & stat.S_IXUSR))
    return found


def lines(*numbers: int) -> str:
    return "".join(f"line {number}\n" for number in numbers)


class Watched:
    """A folder whose turns are watched, without an agent: `turn` does what an agent would."""

    def __init__(self, folder: Path, data: Path, limits: SnapshotLimits | None = None) -> None:
        self.folder = folder
        self.snapshots = Snapshots(data, limits=limits or SnapshotLimits())
        self.timeline = Timeline()
        self.events: list[e.Event] = []
        self.writes: dict[str, list[Change]] = {}
        self._restores = 0

    def record(self, event: e.WorkspaceSnapshot | e.FileReverted) -> None:
        self.events.append(event)
        self.timeline.feed(event)

    def written(self, step: str) -> Sequence[Change]:
        return self.writes.get(step, ())

    async def take(self) -> e.WorkspaceSnapshot:
        return e.WorkspaceSnapshot(
            "turn_start", "", await self.snapshots.take([str(self.folder)], "s")
        )

    async def turn(self, turn_id: str, act: Callable[[Path], object], *, doubt: str = "") -> None:
        found = await self.snapshots.take([str(self.folder)], "s")
        self.record(e.WorkspaceSnapshot("turn_start", turn_id, found))
        act(self.folder)
        found = await self.snapshots.take([str(self.folder)], "s")
        self.record(e.WorkspaceSnapshot("turn_end", turn_id, found, doubt=doubt))

    async def changes(self, *steps: str) -> FolderChanges:
        wanted = [each for each in self.timeline.steps if not steps or each.id in steps]
        return await self.snapshots.changes(wanted, self.written)

    async def revert(
        self,
        *steps: str,
        paths: Collection[str] | None = None,
        hunks: Collection[str] | None = None,
        force: bool = False,
        **choices: Choice,
    ) -> Reverted:
        """`choices` by the names of files, with an underscore for a dot."""
        known = self.timeline.steps
        wanted = [each for each in known if each.id in steps or (not steps and each.kind == "turn")]
        chosen: dict[str, Choice] = {
            str(self.folder / name.replace("_", ".")): each for name, each in choices.items()
        }
        undo = Undo(
            steps=wanted,
            paths=None if paths is None else [str(self.folder / path) for path in paths],
            hunks=hunks,
            choices=Choices(chosen, force),
        )
        return await self.restore(undo)

    async def restore(self, undo: Undo) -> Reverted:
        self._restores += 1
        return await self.snapshots.restore(
            undo,
            self.written,
            restore_id=f"restore-{self._restores}",
            session_id="s",
            record=self.record,
        )
