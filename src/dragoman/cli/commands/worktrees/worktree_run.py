"""`--worktree`: a run or a chat works in a worktree, made before and looked at after."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager

from dragoman.agents.settings.settings_file import load_settings
from dragoman.cli import standard_streams
from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.run.agent_setup import folder
from dragoman.errors import WorktreeError
from dragoman.worktrees.users_repository import checkout_of
from dragoman.worktrees.worktrees import Worktree, Worktrees, WorktreeWish


def around(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The same command, in a worktree."""

    def in_there(options: argparse.Namespace) -> int:
        standard_streams.raise_when_interrupted()
        with in_worktree(options):
            return run(options)

    return in_there


@contextmanager
def in_worktree(options: argparse.Namespace) -> Generator[None]:
    """From here on the workspace of the options is in the worktree that they wish. Raises
    UsageError, WorktreeError."""
    _check(options)
    workspace = folder("--cwd", options.cwd or ".")
    worktrees = Worktrees()
    wish = WorktreeWish(
        name=options.worktree or None,
        uncommitted=options.uncommitted,
        title=_title(options.prompt),
        setup=load_settings(options.settings).worktrees.setup_in(os.path.realpath(workspace)),
    )
    worktree = asyncio.run(worktrees.make_or_open(workspace, wish))
    options.project, options.cwd = workspace, worktree.inside(workspace)
    tell(f"worktree {worktree.record.name}, on branch {worktree.record.branch}: {worktree.path}")
    try:
        yield
    finally:
        # After `--no-wait` too: then nobody listens, but an unchanged one still goes.
        tell(asyncio.run(_ended(worktrees, worktree)))


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError."""
    for option, value in (
        ("--resume", options.resume),
        ("--fork", options.fork),
        ("--continue", options.continues or None),
        ("--steer", getattr(options, "steer", None)),
    ):
        if value is not None:
            raise UsageError(
                f"--worktree and {option} exclude each other: a session stays in its directory"
            )
    if options.files == "there":
        raise UsageError("--worktree needs a workspace on this machine; remove --files there")


def _title(prompt: str | None) -> str:
    """The first line of the prompt."""
    lines = (prompt or "").strip().splitlines()
    return os.fsencode(lines[0]).decode("utf-8", "replace")[:200] if lines else ""


async def _ended(worktrees: Worktrees, worktree: Worktree) -> str:
    record = worktree.record
    try:
        if await worktrees.remove_if_unchanged(worktree):
            return f"nothing was changed in the worktree {record.name}; it was removed"
        return await in_words(worktree)
    finally:
        worktree.release()


async def in_words(worktree: Worktree) -> str:
    """What was changed in it, and what to do with that."""
    name, origin = worktree.record.name, worktree.origin
    base, result = await origin.tree_of(worktree.record.base), await worktree.result()
    count = len(await origin.changes(base, result))
    if not count:
        return f"nothing was changed in the worktree {name}"
    added, removed = await origin.line_counts(base, result)
    files = f"{count} file{'' if count == 1 else 's'} changed (+{added} -{removed})"
    return (
        f"worktree {name}: {files}; `dragoman worktrees diff {name}` shows it, `dragoman "
        f"worktrees merge {name}` merges it"
    )


async def common_here() -> str | None:
    """What the checkouts of the repository in the current folder share; None in no repository."""
    try:
        return (await checkout_of(os.getcwd())).common
    except WorktreeError:
        return None
