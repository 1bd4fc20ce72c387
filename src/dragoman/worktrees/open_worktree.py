"""A worktree for a part of a program."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.worktrees.worktrees import Worktree, Worktrees, WorktreeWish


@asynccontextmanager
async def worktree(
    folder: str | os.PathLike[str] = ".",
    *,
    name: str | None = None,
    uncommitted: bool = False,
    setup: str = "",
) -> AsyncGenerator[Worktree]:
    """A git worktree of the repository that `folder` is in, on a branch of its own, outside of the
    checkout. Start sessions in its `path`.

    With a `name` it is the worktree of that name if there is one, and it stays; without, it is
    removed at the end if nothing was changed in it. It begins with the `uncommitted` changes of the
    checkout if you wish. `setup` is a shell command that runs once in it. Raises WorktreeError.
    """
    worktrees = Worktrees()
    wish = WorktreeWish(name=name, uncommitted=uncommitted, setup=setup)
    opened = await worktrees.make_or_open(os.fspath(folder), wish)
    try:
        yield opened
    finally:
        try:
            await worktrees.remove_if_unchanged(opened)
        finally:
            opened.release()
