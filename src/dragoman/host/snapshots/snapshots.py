"""The snapshots of all folders of this machine: taken, compared, restored, and let go."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Unpack

import msgspec

from dragoman.data_directory import make_private
from dragoman.errors import DragomanError, RevertConflict
from dragoman.host.snapshots import journal as j
from dragoman.host.snapshots.folder_changes import (
    ChangedFile,
    FolderChanges,
    FolderProblem,
    Written,
    differences,
)
from dragoman.host.snapshots.folder_scan import shown
from dragoman.host.snapshots.git_program import GitFailed
from dragoman.host.snapshots.shadow import Shadow, ref_name
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.host.snapshots.timeline import CUT, Step, Timeline
from dragoman.host.snapshots.undo_plan import Choices, RevertOptions, UndoPlan
from dragoman.host.workspace.changes import MAX_CHANGES, Change
from dragoman.host.workspace.regular_file import read_regular
from dragoman.session.events import FileReverted, Notice, WorkspaceSnapshot
from dragoman.session.facts import FileSummary, RootSnapshot, fields_of

logger = logging.getLogger("dragoman.host")

_SUMMARISED = 200
_IGNORED = 20
"""Files and folders that git ignores: so many are named."""
_DAY = 86400.0
_STALE = "no such change now: look at the changes again"
_MOST_TOLD = 50
"""Files that a restore names one by one."""

Record = Callable[[WorkspaceSnapshot | FileReverted], None]


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """What to take back: these steps, of them these paths and hunks, or all; `turn_id` if it is one
    turn that a person named."""

    steps: list[Step]
    paths: Collection[str] | None = None
    hunks: Collection[str] | None = None
    choices: Choices = Choices()
    turn_id: str | None = None


def undo_of(
    timeline: Timeline,
    step_id: str | None,
    *,
    since: bool = False,
    **which: Unpack[RevertOptions],
) -> Undo:
    """Of one turn or restore, or of all turns. With `since`, of that step and all after it. Raises
    KeyError for one that is unknown."""
    paths, hunks = which.get("paths"), which.get("hunks")
    steps = timeline.steps if step_id is None else timeline.since(step_id)
    if not steps and step_id is not None:
        raise KeyError(step_id)
    if step_id is None and hunks is None:
        steps = [each for each in steps if each.kind == "turn"]
    elif step_id is not None and not since:
        steps = steps[:1]
    return Undo(
        steps=list(steps),
        paths=None if paths is None else _real(paths),
        hunks=hunks,
        choices=Choices(which.get("choices") or {}, which.get("force", False)),
        turn_id=step_id,
    )


def _real(paths: Collection[str]) -> list[str]:
    """Where they are, as they are shown; the last part may be a link, which is a file like any
    other."""
    split = (os.path.split(os.path.abspath(path)) for path in paths)
    real = (os.path.join(os.path.realpath(folder), name) for folder, name in split)
    return [shown(os.fsencode(path)) for path in real]


class Reverted(msgspec.Struct, frozen=True, kw_only=True):
    """What was put back, what was kept as it is, and the restore, which can be undone as well."""

    paths: list[str] = []
    kept: list[str] = []
    restore_id: str | None = None

    def notices(self) -> list[Notice]:
        """What became of the files, in words."""
        told = [
            f"{path} {'was restored' if os.path.lexists(path) else _NEW}"
            for path in self.paths[:_MOST_TOLD]
        ]
        if (more := len(self.paths) - _MOST_TOLD) > 0:
            told.append(f"{more} more files were restored, or deleted because they were new")
        return [Notice(words, source="client") for words in told]


_NEW = "was deleted, because it was new"


class Snapshots:
    """Kept in `directory`, a folder for each folder that was read; `closed` folders never are."""

    def __init__(
        self,
        directory: Path,
        *,
        limits: SnapshotLimits = SnapshotLimits(),  # noqa: B008 - it cannot change
        closed: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.limits = limits
        self._closed = (*closed, str(directory))
        self._shadows: dict[str, Shadow] = {}
        self._roots: set[str] = set()

    def shadow(self, root: str) -> Shadow:
        """Of a real path: where a link is by now is another folder."""
        if root not in self._shadows:
            key = hashlib.sha256(os.fsencode(root)).hexdigest()[:24]
            self._roots.add(root)
            self._shadows[root] = Shadow(
                self.directory / key, root, self.limits, self._closed, self._roots
            )
        return self._shadows[root]

    async def take(self, roots: Sequence[str], session_id: str | None) -> list[RootSnapshot]:
        """Each folder as it is now, by its real path; a problem is in its snapshot."""
        shadows = [self.shadow(root) for root in _outermost(roots)]  # known to each other first
        return [await shadow.take(session_id) for shadow in shadows]

    async def read_ahead(self, roots: Sequence[str]) -> None:
        """Read the folders that were never read, so that later snapshots take less time."""
        for shadow in [self.shadow(root) for root in _outermost(roots)]:
            await shadow.read_ahead()

    async def end_turn(
        self, step: Step, end: list[RootSnapshot], doubt: str, written: Written
    ) -> WorkspaceSnapshot:
        """What goes on record of a turn that has ended, with `doubt` on who did it."""
        step.end, step.doubt = end, doubt
        files, count = await self.summary(step, written)
        return WorkspaceSnapshot("turn_end", step.id, end, files, count, doubt=doubt)

    async def end_cut(
        self, timeline: Timeline, roots: Sequence[str], session_id: str, written: Written
    ) -> WorkspaceSnapshot | None:
        """The same for a turn whose process ended before; None if there is none."""
        if (step := timeline.cut) is None:
            return None
        return await self.end_turn(step, await self.take(roots, session_id), CUT, written)

    # ── what changed ──────────────────────────────────────────────────────────────────────────

    async def changes(
        self, steps: Sequence[Step], written: Written, last: Sequence[RootSnapshot] = ()
    ) -> FolderChanges:
        """From the first of these steps to the end of the last; `last` where that is under way."""
        found = FolderChanges(live=bool(last))
        for shadow in self._of(steps):
            _note(found, steps, last, shadow.root)
            now = next((each for each in last if each.root == shadow.root), None)
            try:
                async with shadow.locked():
                    some, count = await differences(shadow, steps, written, last=now)
                    ignored = await shadow.ignored()
            except GitFailed as error:
                found.problems.append(FolderProblem(root=shadow.root, reason=str(error)))
                continue
            found.ignored += ignored[: _IGNORED - len(found.ignored)]
            found.ignored_count += len(ignored)
            found.files += [each.file for each in some]
            found.complete = found.complete and count <= MAX_CHANGES
        if len(steps) == 1:
            undone = [each for each in found.files if each.path in steps[0].undone]
            gone = [each for each in undone if await asyncio.to_thread(_is_as_before, each)]
            found.files = [each for each in found.files if each not in gone]
        return found

    async def summary(self, step: Step, written: Written) -> tuple[list[FileSummary], int]:
        """The first of the files that a step changed, and how many there are."""
        files: list[ChangedFile] = []
        total = 0
        for shadow in self._of([step]):
            with suppress(GitFailed):
                async with shadow.locked():
                    some, count = await _briefly(shadow, step, written)
                files += some
                total += count
        return [_summary(each) for each in files[:_SUMMARISED]], total

    def _of(self, steps: Sequence[Step]) -> list[Shadow]:
        roots = dict.fromkeys(each.root for step in steps for each in step.start)
        return [self.shadow(root) for root in roots]

    # ── the way back ──────────────────────────────────────────────────────────────────────────

    async def restore(
        self, undo: Undo, written: Written, *, restore_id: str, session_id: str, record: Record
    ) -> Reverted:
        """Take it back. Raises RevertConflict, with nothing done, and DragomanError where a folder
        cannot be read."""
        try:
            async with self._locked(self._of(undo.steps)) as shadows:
                now = [await each.take_locked(session_id) for each in shadows]
                plans = [
                    UndoPlan(shadow, found, undo.choices)
                    for shadow, found in zip(shadows, now, strict=True)
                ]
                await _fill(plans, undo, written)
                for plan in plans:
                    await plan.clear_ways()
                if conflicts := {k: v for plan in plans for k, v in plan.conflicts.items()}:
                    raise RevertConflict(conflicts, by_force=all(p.by_force for p in plans))
                if not any(plan.does_anything for plan in plans):
                    return Reverted(kept=[each for plan in plans for each in plan.kept])
                record(WorkspaceSnapshot("restore_start", restore_id, now))
                try:
                    works = [await each.work(restore_id, session_id) for each in plans]
                    for plan, done in zip(plans, await j.carry_out(works), strict=True):
                        plan.done = done
                except BaseException:
                    # It was taken back, and what happens from now on is not its doing.
                    record(WorkspaceSnapshot("restore_end", restore_id, now))
                    raise
                step = Step(restore_id, "restore", now)
                return await j.completed(_ended(step, undo, plans, session_id, record))
        except GitFailed as error:
            raise DragomanError(f"nothing was reverted: {error}") from error
        except OSError as error:  # such as no room for the journal
            reason = (error.strerror or str(error)).lower()
            sentence = f"nothing was reverted: {self.directory} cannot be written: {reason}"
            raise DragomanError(sentence) from error

    @asynccontextmanager
    async def _locked(self, shadows: Sequence[Shadow]) -> AsyncGenerator[list[Shadow]]:
        """In one order, so that two of us never wait for each other."""
        ordered = sorted(shadows, key=lambda each: each.root)
        async with AsyncExitStack() as stack:
            for each in ordered:
                await stack.enter_async_context(each.locked())
            yield ordered

    async def finish_left(self) -> list[j.RestoreJournal]:
        """Do what killed processes left half done."""
        done: list[j.RestoreJournal] = []
        directories = _folders(self.directory)
        for path in [path for each in directories for path in j.journals(each)]:
            with suppress(GitFailed, OSError, msgspec.DecodeError):
                done += await self._finish(path)
        for rest in [path for each in directories for path in j.rests(each)]:
            with suppress(GitFailed, OSError):
                async with self.shadow(_root_of(rest.parent.parent)).locked():
                    j.drop(rest, directories)
        return done

    async def _finish(self, path: Path) -> list[j.RestoreJournal]:
        about = [each for each in j.unfinished(path) if (each / "root").is_file()]
        async with self._locked([self.shadow(_root_of(each)) for each in about]) as shadows:
            if not j.unfinished(path):  # another process was quicker, or was not killed
                return []
            finished = await j.finish(shadows, path)
        roots = " and ".join(each.root for each in shadows)
        logger.warning("a restore of %s was cut short and is finished now", roots)
        return [finished]

    # ── letting go ────────────────────────────────────────────────────────────────────────────

    async def forget(self, session_id: str) -> None:
        """Drop the snapshots of a session, wherever they are."""
        name = ref_name(session_id)
        for directory in _folders(self.directory):
            await self._forget(directory, {name})
        with suppress(OSError):
            (self.directory / "turns" / name).unlink()

    async def _forget(self, directory: Path, names: Collection[str]) -> None:
        try:
            await self.shadow(_root_of(directory)).forget(names)
        except (GitFailed, OSError) as error:
            logger.warning("snapshots in %s could not be deleted: %s", directory, error)

    async def prune(self, now: float) -> int:
        """Drop the snapshots of sessions whose last turn is too long ago; how many sessions."""
        if self.limits.days is None:
            return 0
        before = now - self.limits.days * _DAY
        old = await asyncio.to_thread(self._old, before)
        for directory, names in old.items():
            await self._forget(directory, names)
        for directory in _folders(self.directory):
            with suppress(GitFailed, OSError):
                await self.shadow(_root_of(directory)).remove_unused(before)
        gone = {name for names in old.values() for name in names}
        for name in gone:
            with suppress(OSError):
                (self.directory / "turns" / name).unlink()
        return len(gone)

    def _old(self, before: float) -> dict[Path, set[str]]:
        """By folder, the sessions that had no turn since."""
        marks = {path.name: path for path in _marks(self.directory)}
        used = {name for name, path in marks.items() if _is_used(path, before)}
        found: dict[Path, set[str]] = {}
        for directory in _folders(self.directory):
            names = self.shadow(_root_of(directory)).sessions()
            for name in names - marks.keys():  # its age is unknown: it counts from now
                (make_private(self.directory / "turns") / name).touch(0o600)
            if old := names.intersection(marks) - used:
                found[directory] = old
        return found

    async def pack(self, roots: Sequence[str]) -> None:
        """Put what many snapshots have left in many files into few. Nobody waits for it."""
        for root in _outermost(roots):
            with suppress(GitFailed, OSError):
                await self.shadow(root).pack()

    async def maintain(self) -> None:
        """What has to be done now and then, at most once a day: for all processes together."""
        stamp = self.directory / "maintained"
        if not self.directory.is_dir() or _is_used(stamp, time.time() - _DAY):
            return
        await self.prune(time.time())
        await self.pack([_root_of(directory) for directory in _folders(self.directory)])
        stamp.touch(0o600)

    # ── who works where ───────────────────────────────────────────────────────────────────────

    def begin_turn(self, session_id: str, roots: Sequence[str]) -> TurnMark:
        """Note that a turn runs in these folders, for the others that do."""
        folder = make_private(make_private(self.directory) / "turns")
        return TurnMark(folder, session_id, _outermost(roots))


class TurnMark:
    """A file that is locked for as long as a turn runs, and touched when it ends."""

    def __init__(self, folder: Path, session_id: str, roots: Sequence[str]) -> None:
        import fcntl

        self._folder = folder
        self._path = folder / ref_name(session_id)
        self._roots = list(roots)
        self._began = time.time()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            os.truncate(self._descriptor, 0)
            named = [os.fsencode(each) for each in self._roots]
            os.write(self._descriptor, msgspec.json.encode(named))
        except OSError:
            os.close(self._descriptor)  # and the lock, which would say that a turn runs
            raise

    def end(self) -> bool:
        """Whether another session worked in one of the folders meanwhile."""
        shared = any(self._overlaps(path) for path in self._folder.iterdir() if path != self._path)
        os.utime(self._descriptor)
        os.close(self._descriptor)
        return shared

    def _overlaps(self, path: Path) -> bool:
        with suppress(OSError, msgspec.DecodeError):
            is_over = not _is_locked(path)
            if is_over and path.stat().st_mtime < self._began:
                return False
            others = msgspec.json.decode(path.read_bytes(), type=list[bytes])
            return any(_share(os.fsdecode(each), root) for each in others for root in self._roots)
        return False


def _is_locked(path: Path) -> bool:
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _marks(directory: Path) -> list[Path]:
    with suppress(OSError):
        return list((directory / "turns").iterdir())
    return []


def _is_used(path: Path, since: float) -> bool:
    """Whether a turn runs, or ran since; for a stamp, whether it is younger."""
    with suppress(OSError):
        return path.stat().st_mtime >= since or _is_locked(path)
    return False


def _share(one: str, other: str) -> bool:
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


async def _fill(plans: Sequence[UndoPlan], undo: Undo, written: Written) -> None:
    """With what is to be done. Raises RevertConflict for hunks that are not there."""
    if undo.hunks is None or undo.paths is not None:
        for plan in plans:
            await plan.undo(undo.steps, undo.paths)
    left = set(undo.hunks or ())
    for plan in plans if left else ():
        for each in (await differences(plan.shadow, undo.steps, written, hunks=left))[0]:
            if ids := left.intersection(hunk.id for hunk in each.file.hunks):
                await plan.undo_hunks(undo.steps, each, ids)
                left -= ids
    if left:
        raise RevertConflict(dict.fromkeys(sorted(left), _STALE), by_force=False)


async def _ended(
    step: Step, undo: Undo, plans: Sequence[UndoPlan], session_id: str, record: Record
) -> Reverted:
    """What goes on record of a restore that is done. For one who holds the locks."""
    step.end = [await _end_of(plan, session_id) for plan in plans]
    paths = [path for plan in plans for path in plan.paths]
    for path in paths:
        record(FileReverted(path, undo.turn_id, step.id))
    files: list[ChangedFile] = []
    total = 0
    for plan in plans:
        with suppress(GitFailed):
            some, count = await _briefly(plan.shadow, step, _nothing)
            files += some
            total += count
    summaries = [_summary(each) for each in files[:_SUMMARISED]]
    record(WorkspaceSnapshot("restore_end", step.id, step.end, summaries, total))
    kept = [each for plan in plans for each in plan.kept]
    return Reverted(paths=paths, kept=kept, restore_id=step.id)


async def _end_of(plan: UndoPlan, session_id: str) -> RootSnapshot:
    end = await plan.shadow.taken_locked(session_id)
    with suppress(GitFailed, OSError):
        return await plan.as_left(end, session_id)
    return end


async def _briefly(shadow: Shadow, step: Step, written: Written) -> tuple[list[ChangedFile], int]:
    """The first of the files that a step changed here, and how many there are."""
    some, count = await differences(shadow, [step], written, most=_SUMMARISED, is_brief=True)
    return [each.file for each in some], count


def _outermost(roots: Sequence[str]) -> list[str]:
    """Each once; what is in one of the others is read with it."""
    return [
        root
        for root in dict.fromkeys(roots)
        if not any(root != other and root.startswith(f"{other.rstrip('/')}/") for other in roots)
    ]


def _note(
    found: FolderChanges, steps: Sequence[Step], last: Sequence[RootSnapshot], root: str
) -> None:
    """What the snapshots do not have."""
    snapshots = [each for step in steps for each in (*step.start, *(step.end or ()))]
    for each in (*snapshots, *last):
        if each.root == root:
            if each.problem and each.problem not in {known.reason for known in found.problems}:
                found.problems.append(FolderProblem(root=root, reason=each.problem))
            known = {left.path for left in found.left_out}
            found.left_out += [left for left in each.left_out if left.path not in known]


def _summary(file: ChangedFile) -> FileSummary:
    return FileSummary(**fields_of(file, FileSummary))


def _nothing(step: str) -> Sequence[Change]:
    return ()


def _folders(directory: Path) -> list[Path]:
    with suppress(OSError):
        return [each for each in sorted(directory.iterdir()) if (each / "root").is_file()]
    return []


def _root_of(directory: Path) -> str:
    return os.fsdecode((directory / "root").read_bytes())


def _is_as_before(file: ChangedFile) -> bool:
    """Whether nothing is left of the change."""
    if file.status == "added":
        return not os.path.lexists(file.path)
    if file.before is None:
        return False
    before = file.before.encode()
    try:
        return read_regular(file.old_path or file.path, len(before)) == before
    except OSError:
        return False
