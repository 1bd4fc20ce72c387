"""Judges a result: runs the check in a clean checkout that has the tests of the base."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.agents.agent_fence import fence_around
from dragoman.errors import FenceError, WorktreeError
from dragoman.host.snapshots.git_output import Blob, TreeChange
from dragoman.racing.check_counts import from_junit, from_tap
from dragoman.racing.judged_files import has_parts, judged_files
from dragoman.racing.race_record import CheckCounts, CheckRun, JudgedFiles
from dragoman.session.facts import FenceMode
from dragoman.worktrees.shell_run import ShellResult, end_of, run_shell
from dragoman.worktrees.users_repository import Checkout
from dragoman.worktrees.worktrees import Worktree, Worktrees, WorktreeWish

_JUNIT = ".dragoman-junit.xml"
_TAIL = 4000
_MOST_REPORT = 64 << 20


class RaceCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The check of a race: a shell command, where it writes JUnit XML if that is not pytest's, how
    long it may take, and the fence around it."""

    command: str
    junit: str = ""
    seconds: float = 600.0
    fence: FenceMode = "require"
    setup: str = ""
    """Prepares each clean checkout, before anything of an entrant is in it."""


class Judge:
    """Of one race, whose entrants all began with the commit `base`."""

    def __init__(self, worktrees: Worktrees, origin: Checkout, base: str, check: RaceCheck) -> None:
        self._worktrees = worktrees
        self._origin = origin
        self._base = base
        self._check = check

    async def judged(self, result: str) -> JudgedFiles:
        """What this commit changes of what the judge takes from the base. Raises WorktreeError."""
        base, after = await self._trees(result)
        found = await self._origin.changes(base, after)
        ids = [blob.id for each in found if _is_read(each) for blob in _blobs(each)]
        texts = await self._origin.contents(ids)
        return judged_files(
            {os.fsdecode(each.path): _texts(each, texts) for each in found}, self._check.command
        )

    async def run(self, result: str, judged: JudgedFiles, race: str) -> CheckRun:
        """The check on this commit, but with the base's files where it changed tests. Raises
        WorktreeError, also for a setup that fails, and FenceError."""
        wish = WorktreeWish(base=self._base, setup=self._check.setup, race=race)
        worktree = await self._worktrees.make(self._origin.top, wish, origin=self._origin)
        try:
            await self._put(worktree, result, judged)
            return await self._checked(worktree)
        finally:
            worktree.release()
            with suppress(WorktreeError):
                await self._worktrees.remove(worktree.record, force=True)

    async def _put(self, worktree: Worktree, result: str, judged: JudgedFiles) -> None:
        base, after = await self._trees(result)
        with worktree.folder.scratch_index() as index:
            kept = await self._origin.files_in(base)
            names = [os.fsencode(path) for path in judged.replaced]
            changes = {name: kept.get(name) for name in names}
            tree = await self._origin.tree_with(after, changes, index)
        await worktree.files.run("read-tree", "--reset", "-u", tree)

    async def _trees(self, result: str) -> tuple[str, str]:
        return await self._origin.tree_of(self._base), await self._origin.tree_of(result)

    async def _checked(self, worktree: Worktree) -> CheckRun:
        check, folder = self._check, worktree.path
        fence = None if check.fence == "off" else fence_around(folder, mode=check.fence)
        report = os.path.join(folder, check.junit or _JUNIT)
        log = worktree.folder.path / "check.log"
        options = f"{os.environ.get('PYTEST_ADDOPTS', '')} --junitxml={report} -p no:cacheprovider"
        env = {} if check.junit else {"PYTEST_ADDOPTS": options.strip()}
        try:
            with suppress(FileNotFoundError):
                os.unlink(report)
            ran = await run_shell(
                check.command, folder, log, seconds=check.seconds, fence=fence, env=env
            )
            return await asyncio.to_thread(_as_run, ran, log, report)
        except FenceError as error:
            raise FenceError("the check", f"{error.reason}; --fence=off runs it without") from error
        finally:
            if fence is not None:
                await fence.aclose()


def _as_run(ran: ShellResult, log: Path, report: str) -> CheckRun:
    output = end_of(log, 4 << 20)
    return CheckRun(
        code=ran.code,
        seconds=round(ran.seconds, 3),
        problem=ran.problem,
        counts=_counts(report) or from_tap(output),
        output=output[-_TAIL:],
    )


def _counts(report: str) -> CheckCounts | None:
    """Of a file that the check has written, and nothing else that may be in its place."""
    with suppress(OSError):
        descriptor = os.open(report, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return from_junit(file.read(_MOST_REPORT))
    return None


def _is_read(change: TreeChange) -> bool:
    return has_parts(os.fsdecode(change.path))


def _blobs(change: TreeChange) -> Sequence[Blob]:
    return [blob for blob in (change.before, change.after) if blob is not None]


def _texts(change: TreeChange, texts: dict[str, bytes]) -> tuple[bytes | None, bytes | None]:
    before, after = change.before, change.after
    return (
        None if before is None else texts.get(before.id, b""),
        None if after is None else texts.get(after.id, b""),
    )
