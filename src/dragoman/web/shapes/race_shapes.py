"""Races and worktrees over HTTP."""

from __future__ import annotations

from dragoman.racing.race_record import RaceRecord
from dragoman.web.shapes.server_shapes import Shape
from dragoman.worktrees.worktree_record import WorktreeRecord


class RaceList(Shape):
    """The races of this machine, the newest first."""

    races: list[RaceRecord]


class WorktreeList(Shape):
    """The worktrees of this machine, the newest first."""

    worktrees: list[WorktreeRecord]


class WorktreeDiff(Shape):
    """What was changed in a worktree, as a unified diff."""

    patch: str
