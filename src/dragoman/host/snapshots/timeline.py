"""The turns and restores of a session, with the snapshots before and after each. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.host.snapshots.line_history import Label
from dragoman.session.events import FileReverted, SessionOpened, WorkspaceSnapshot
from dragoman.session.facts import Author, RootSnapshot

TYPES = ("session_opened", "workspace_snapshot", "file_reverted")
CUT = "the process that ran the turn ended before the folder was read again"


class Step(msgspec.Struct):
    """A turn or a restore. Without an `end` it is under way, or was cut short."""

    id: str
    kind: Literal["turn", "restore"]
    start: list[RootSnapshot]
    end: list[RootSnapshot] | None = None
    doubt: str = ""
    undone: set[str] = msgspec.field(default_factory=set[str])
    """Files in which something that it did was undone."""
    own: set[str] | None = None
    """For a restore that came to its end, the files that it changed itself."""

    @property
    def label(self) -> Label:
        """Whose doing it is that the folder is another one at its end."""
        by: Author = "restore" if self.kind == "restore" else "unknown" if self.doubt else "agent"
        return Label(by, self.id)

    @property
    def left_no_trace(self) -> bool:
        """Whether every folder was read before and after it, and is the same."""
        ends = {each.root: each for each in self.end or ()}
        return bool(self.start) and all(
            each.tree is not None and each.root in ends and _is_same(each, ends[each.root])
            for each in self.start
        )


class FolderMoment(msgspec.Struct, frozen=True):
    """A folder at some time, and whose doing it is that it is not as it was at the one before."""

    snapshot: RootSnapshot
    label: Label


class Timeline:
    """From the events of a session in order. With `opened_as`, only from when it was first opened
    under that id on: a fork begins with the events of its parent."""

    def __init__(self, opened_as: str | None = None) -> None:
        self.steps: list[Step] = []
        self._opened_as = opened_as
        self._is_own = opened_as is None

    def feed(self, event: object) -> None:
        match event:
            case SessionOpened():
                self._is_own = self._is_own or event.session_id == self._opened_as
            case WorkspaceSnapshot() if self._is_own:
                self._note(event)
            case FileReverted():
                self._note_reverted(event)
            case _:
                pass

    def _note(self, event: WorkspaceSnapshot) -> None:
        if event.moment in ("turn_start", "restore_start"):
            self._end_last(event.roots)
            kind = "turn" if event.moment == "turn_start" else "restore"
            own = set[str]() if kind == "restore" else None
            self.steps.append(Step(event.step_id, kind, event.roots, own=own))
        elif self.steps and self.steps[-1].id == event.step_id:
            self.steps[-1].end, self.steps[-1].doubt = event.roots, event.doubt

    def _note_reverted(self, event: FileReverted) -> None:
        if event.turn_id and (step := self.step(event.turn_id)) is not None:
            step.undone.add(event.path)
        last = self.steps[-1] if self.steps else None
        if last is not None and last.id == event.restore_id and last.own is not None:
            last.own.add(event.path)

    def _end_last(self, roots: list[RootSnapshot]) -> None:
        """What was cut short ends where the next begins; it is uncertain who did it."""
        if self.steps and self.steps[-1].end is None:
            self.steps[-1].end, self.steps[-1].doubt, self.steps[-1].own = roots, CUT, None

    def step(self, step_id: str) -> Step | None:
        return next((each for each in self.steps if each.id == step_id), None)

    def has_snapshots(self, step_id: str | None) -> bool:
        """Whether there are any of this turn or restore; of one of them for None."""
        wanted = [each for each in self.steps if step_id in (None, each.id)]
        return any(root.tree is not None for step in wanted for root in step.start)

    def problem(self, step_id: str | None) -> str:
        """Why a folder could not be read before this turn or restore, or before one of them."""
        wanted = [each for each in self.steps if step_id in (None, each.id)]
        return next((root.problem for each in wanted for root in each.start if root.problem), "")

    @property
    def cut(self) -> Step | None:
        """The last turn, if nobody has read the folders after it."""
        last = self.steps[-1] if self.steps else None
        return last if last is not None and last.kind == "turn" and last.end is None else None

    def since(self, step_id: str) -> list[Step]:
        """This step and those after it."""
        ids = [each.id for each in self.steps]
        return self.steps[ids.index(step_id) :] if step_id in ids else []

    @property
    def roots(self) -> list[str]:
        """Every folder there is a snapshot of."""
        found = (each.root for step in self.steps for each in step.start)
        return list(dict.fromkeys(found))


def moments(steps: list[Step], root: str, last: RootSnapshot | None = None) -> list[FolderMoment]:
    """What is known of one folder, in order, each different from the one before. `last` stands for
    the end of the step that is under way."""
    found: list[FolderMoment] = []
    for step in steps:
        _add(found, _of(root, step.start), Label("other"))
        end = last if step.end is None else _of(root, step.end)
        _add(found, end, step.label)
    return found


def _of(root: str, roots: list[RootSnapshot]) -> RootSnapshot | None:
    return next((each for each in roots if each.root == root), None)


def _add(found: list[FolderMoment], snapshot: RootSnapshot | None, label: Label) -> None:
    if snapshot is None or snapshot.tree is None:
        return
    if found and _is_same(found[-1].snapshot, snapshot):
        return
    found.append(FolderMoment(snapshot, label))


def _is_same(one: RootSnapshot, other: RootSnapshot) -> bool:
    return one.tree == other.tree and one.empty_folders == other.empty_folders
