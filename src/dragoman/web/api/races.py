"""Races and worktrees of this machine, for the page."""

from __future__ import annotations

import asyncio

from dragoman.racing.race_record import RaceRecord
from dragoman.racing.races import Races
from dragoman.web.context import Server
from dragoman.web.shapes.race_shapes import RaceList, WorktreeDiff, WorktreeList
from dragoman.worktrees.worktrees import Worktrees


async def list_races(server: Server) -> RaceList:
    return RaceList(races=await asyncio.to_thread(Races().all))


async def show_race(server: Server, race_id: str) -> RaceRecord:
    """Raises RaceError."""
    return await asyncio.to_thread(Races().find, race_id)


async def list_worktrees(server: Server) -> WorktreeList:
    return WorktreeList(worktrees=await asyncio.to_thread(Worktrees().all))


async def worktree_diff(server: Server, worktree_id: str) -> WorktreeDiff:
    """Raises WorktreeError."""
    worktrees = Worktrees()
    record = await asyncio.to_thread(worktrees.find, worktree_id)
    return WorktreeDiff(patch=await worktrees.opened(record).diff())
