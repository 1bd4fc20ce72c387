"""Makes, lists, finds, removes and prunes worktrees.

The record comes first and goes last, and is locked meanwhile: what a killed process left is found
by it, with the branch, the folder and git's own folder that it names.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.data_directory import data_directory, make_private, worktrees_directory
from dragoman.errors import WorktreeError
from dragoman.worktrees.merge_remains import remove_merge_remains, take_back
from dragoman.worktrees.shell_run import end_of, run_shell
from dragoman.worktrees.users_repository import Checkout, checkout_of
from dragoman.worktrees.worktree_record import (
    MergeResult,
    MergeWay,
    RecordFolder,
    WorktreeRecord,
)

BRANCHES = "dragoman"
"""The folder of our branches in a repository."""
SETUP_SECONDS = 1800.0
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,59}")
_DAY = 86400.0
_NONE = "0" * 40
_BARE = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"


class WorktreeWish(msgspec.Struct, frozen=True, kw_only=True):
    """What a new worktree is to be: its name, whether it has the uncommitted changes of the
    checkout, and the command that prepares it. It begins with `base` if that is set, a commit of
    the same repository."""

    name: str | None = None
    base: str = ""
    uncommitted: bool = False
    setup: str = ""
    title: str = ""
    race: str | None = None


ANY = WorktreeWish()


class Worktree:
    """A worktree that is locked against being removed, until `release`."""

    def __init__(
        self, record: WorktreeRecord, folder: RecordFolder, origin: Checkout | None = None
    ) -> None:
        self.record = record
        self.folder = folder
        self.origin = origin or Checkout(record.repository, record.git_dir, record.common)
        self.files = self.origin.beside(record.path, record.own)

    @property
    def path(self) -> str:
        return self.record.path

    def inside(self, folder: str) -> str:
        """Where a folder of the user's checkout is in here; made if it is not there."""
        real, top = os.path.realpath(folder), self.record.repository
        path = os.path.join(self.path, os.path.relpath(real, top)) if real != top else self.path
        os.makedirs(path, exist_ok=True)
        return path

    def release(self) -> None:
        self.folder.release()

    async def result(self) -> str:
        """The tree of what is in it now; of one without files, what its branch has. Raises
        WorktreeError."""
        if self.record.state == "branch":
            return await self.origin.tree_of(self.record.ref)
        if not self.has_files:
            raise WorktreeError(f"{self.path} is gone; `dragoman worktrees prune` cleans up")
        with self.folder.scratch_index() as index:
            return await self.files.state(index)

    @property
    def has_files(self) -> bool:
        return os.path.isdir(self.path) and os.path.isdir(self.record.own)

    async def is_unchanged(self) -> bool:
        """Whether nothing was done in it: no commit, and no file that git does not ignore."""
        if await self.origin.ref(self.record.ref) != self.record.base:
            return False
        return await self.result() == await self.origin.tree_of(self.record.base)

    async def diff(self, paths: Sequence[str] = ()) -> str:
        """What was changed in it since it was made, as a unified diff."""
        base = await self.origin.tree_of(self.record.base)
        return await self.origin.patch(base, await self.result(), paths=paths)

    async def merge(
        self, *, way: MergeWay | None = None, message: str = "", without: Collection[bytes] = ()
    ) -> MergeResult:
        """Bring all of it into the user's checkout, without these paths. `commit` replays its
        commits there, and the branch moves; `patch` changes files and commits nothing. By default
        it is a patch if the worktree began with uncommitted changes. Raises MergeConflict, and then
        nothing was changed, or WorktreeError."""
        from dragoman.worktrees.merge_back import MergeBack  # which needs this module

        record = self.record
        is_patch = record.base != record.head or record.plain
        said = message or record.title or f"Work of the worktree {record.name}"
        back = MergeBack(self)
        return await back.merge(way or ("patch" if is_patch else "commit"), said, without=without)

    async def to_branch(self, message: str) -> None:
        """Commit all of it, and remove its files: the branch stays. Raises WorktreeError."""
        tip = await self.committed(message)
        record, was = self.record, await self.origin.ref(self.record.ref)
        if tip != was:
            await self.origin.move_ref(record.ref, tip, was or _NONE)
        record.state = "branch"
        self.folder.write(record)
        await asyncio.to_thread(_remove_files, record)

    async def committed(self, message: str) -> str:
        """A commit of all that is in it; its own tip if that has all."""
        tip = await self.tip()
        tree = await self.result()
        if tree == await self.origin.tree_of(tip):
            return tip
        return await self.origin.commit(tree, (tip,), message)

    async def tip(self) -> str:
        """What is checked out in it, or the tip of its branch if it has no files."""
        if self.record.state == "branch":
            return await self.origin.ref(self.record.ref) or self.record.base
        return await self.files.head()


class Worktrees:
    """Those of this machine; records and files are kept in two folders."""

    def __init__(self, records: Path | None = None, trees: Path | None = None) -> None:
        self.records = records or data_directory() / "worktrees"
        self.trees = trees or worktrees_directory()

    # ── making ────────────────────────────────────────────────────────────────────────────────

    async def make(
        self, folder: str, wish: WorktreeWish = ANY, *, origin: Checkout | None = None
    ) -> Worktree:
        """A new one of the repository that `folder` is in. Raises WorktreeError; also for a setup
        that failed, and then it stays, to be looked at."""
        origin = origin or await checkout_of(folder)
        worktree = self._reserved(origin, wish.base or await origin.head(), wish)
        try:
            await self._build(worktree, wish)
        except BaseException:
            await self._undone(worktree)
            raise
        await self._set_up(worktree, wish.setup)
        worktree.folder.share()
        return worktree

    async def make_plain(self, folder: str, wish: WorktreeWish = ANY) -> Worktree:
        """The same of a folder in no repository, as it is now; the repository is one of ours."""
        place = Path(_real(str(make_private(self.records)))) / f"{_key(folder)}.git"
        await asyncio.to_thread(_make_bare, place)
        origin = Checkout(_real(folder), str(place), str(place))
        worktree = self._reserved(origin, "", wish)
        try:
            with worktree.folder.scratch_index() as index:
                tree = await origin.state(index)
            worktree.record.head = await origin.commit(tree, (), "as it was")
            await self._fill(worktree, worktree.record.head)
        except BaseException:
            await self._undone(worktree)
            raise
        await self._set_up(worktree, wish.setup)
        worktree.folder.share()
        return worktree

    async def make_or_open(self, folder: str, wish: WorktreeWish) -> Worktree:
        """The one of that name, if there is one already with its files."""
        if wish.name is not None:
            origin = await checkout_of(folder)
            found = RecordFolder(self.records / _id(wish.name, origin.common))
            if found.take(alone=False):
                record = found.read()
                if record is not None and record.state == "ready":
                    return await self._reopened(found, record, wish.setup)
                found.release()
        return await self.make(folder, wish)

    async def _reopened(self, folder: RecordFolder, record: WorktreeRecord, setup: str) -> Worktree:
        record.used_at = time.time()
        worktree = Worktree(record, folder)
        if record.setup_code not in (None, 0) and folder.take():
            await self._set_up(worktree, setup)
            folder.share()
        else:
            folder.write(record)
        return worktree

    def _reserved(self, origin: Checkout, head: str, wish: WorktreeWish) -> Worktree:
        """With its record, locked. Raises WorktreeError."""
        name = wish.name or f"w-{os.urandom(3).hex()}"
        check_name(name)
        identity = _id(name, origin.common)
        folder = RecordFolder(make_private(self.records) / identity)
        try:
            folder.path.mkdir(mode=0o700)
        except FileExistsError:
            raise WorktreeError(
                f"there is a worktree {name} already; `dragoman worktrees list` shows it"
            ) from None
        if not folder.take():
            raise WorktreeError(f"the worktree {name} was removed while it was made; try again")
        make_private(self.trees)
        now = time.time()
        record = WorktreeRecord(
            id=identity,
            name=name,
            repository=origin.top,
            git_dir=origin.git_dir,
            common=origin.common,
            own=os.path.join(origin.common, "worktrees", f"dragoman-{identity}"),
            path=str(self.trees / identity / os.path.basename(origin.top)),
            branch=f"{BRANCHES}/{name}",
            base=head,
            head=head,
            created_at=now,
            used_at=now,
            is_named=wish.name is not None,
            title=wish.title,
            race=wish.race,
            plain=os.path.dirname(origin.git_dir) == os.path.realpath(self.records),
        )
        folder.write(record)
        return Worktree(record, folder, origin)

    async def _build(self, worktree: Worktree, wish: WorktreeWish) -> None:
        record, origin = worktree.record, worktree.origin
        if await origin.ref(record.ref) is not None:
            record.branch = ""  # not ours: nothing of it is to be removed
            worktree.folder.write(record)
            raise WorktreeError(
                f"there is a branch {BRANCHES}/{record.name} already; choose another name, or "
                f"delete it: git branch -D {BRANCHES}/{record.name}"
            )
        base = wish.base or record.head
        if wish.uncommitted and not wish.base:
            with worktree.folder.scratch_index() as index:
                tree = await origin.state(index)
            if tree != await origin.tree_of(record.head):
                base = await origin.commit(tree, (record.head,), "uncommitted changes")
        await self._fill(worktree, base)

    async def _fill(self, worktree: Worktree, base: str) -> None:
        record, origin = worktree.record, worktree.origin
        record.base = base
        worktree.folder.write(record)
        # As `git worktree add` does it, which would run a hook.
        await origin.move_ref(record.ref, base, "0" * len(base))
        _link(record)
        await worktree.files.fill(base)
        record.state = "ready"
        worktree.folder.write(record)

    async def _undone(self, worktree: Worktree) -> None:
        worktree.record.state = "removing"
        with suppress(OSError, WorktreeError):
            await _removed(worktree)
        worktree.release()

    async def _set_up(self, worktree: Worktree, command: str) -> None:
        record = worktree.record
        if not command:
            return
        log = worktree.folder.setup_log
        ran = await run_shell(command, worktree.path, log, seconds=SETUP_SECONDS)
        record.setup, record.setup_code = command, -1 if ran.code is None else ran.code
        worktree.folder.write(record)
        if ran.code:
            problem = f"it exited with code {ran.code}"
        elif not (problem := ran.problem):
            return
        worktree.release()
        said = end_of(log, 1000).strip()
        raise WorktreeError(
            f"the setup of the worktree {record.name} failed ({command!r}: {problem}); all of its "
            f"output is in {log}\n{said}"
        )

    # ── finding ───────────────────────────────────────────────────────────────────────────────

    def all(self, common: str | None = None) -> list[WorktreeRecord]:
        """Those of one repository, or all; the newest first."""
        found = [record for each in self._folders() if (record := each.read()) is not None]
        wanted = [each for each in found if common in (None, each.common)]
        return sorted(wanted, key=lambda each: -each.created_at)

    def _folders(self) -> list[RecordFolder]:
        with suppress(FileNotFoundError):
            places = sorted(self.records.iterdir())
            return [RecordFolder(each) for each in places if each.is_dir() and "." not in each.name]
        return []

    def find(self, word: str, common: str | None = None) -> WorktreeRecord:
        """By name, in one repository if that is known, by id, or by a path in it. Raises
        WorktreeError."""
        everywhere = self.all()
        for found in (
            [each for each in everywhere if each.id == word],
            [each for each in everywhere if each.name == word and each.common == common],
            [each for each in everywhere if each.name == word],
            [each for each in everywhere if _is_in(word, each.path)],
        ):
            if len(found) == 1:
                return found[0]
            if found:
                ids = ", ".join(each.id for each in found)
                raise WorktreeError(f"several repositories have a worktree {word}: {ids}")
        raise WorktreeError(f"there is no worktree {word}; `dragoman worktrees list` shows all")

    def opened(self, record: WorktreeRecord) -> Worktree:
        """Not locked yet."""
        return Worktree(record, self.folder_of(record))

    def folder_of(self, record: WorktreeRecord) -> RecordFolder:
        return RecordFolder(self.records / record.id)

    # ── removing ──────────────────────────────────────────────────────────────────────────────

    async def remove(self, record: WorktreeRecord, *, force: bool = False) -> None:
        """With its files and its branch. Raises WorktreeError if something was done in it, unless
        `force`, and if it is in use."""
        worktree = self.opened(record)
        with worktree.folder.alone(record.name):
            if not force and record.state == "ready" and not await worktree.is_unchanged():
                raise WorktreeError(
                    f"{record.name} has changes that exist nowhere else; `dragoman worktrees diff "
                    f"{record.name}` shows them, --force removes them"
                )
            if not force and record.state == "branch":
                raise WorktreeError(f"the branch {record.branch} has changes; --force deletes it")
            await _removed(worktree)

    async def remove_if_unchanged(self, worktree: Worktree) -> bool:
        """When its session is over; whether it was removed."""
        record = worktree.record
        if not worktree.folder.take():
            return False  # another session is in it
        if record.is_named or not await worktree.is_unchanged():
            worktree.folder.share()
            return False
        await _removed(worktree)
        worktree.release()
        return True

    async def prune(
        self,
        *,
        days: float | None = None,
        dry: bool = False,
        over: Collection[str] = (),
        but: Collection[str] = (),
    ) -> list[WorktreeRecord]:
        """Remove what killed processes left, unchanged worktrees, those of races that are `over`,
        and with `days` all that were not used for so long. Those in use stay, and those with the
        ids in `but`. What was removed, or would be if it is a `dry` run."""
        gone: list[WorktreeRecord] = []
        for folder in self._folders():
            if folder.path.name in but or not folder.take():
                continue
            try:
                if (record := folder.read()) is None:
                    await asyncio.to_thread(shutil.rmtree, folder.path, ignore_errors=True)
                    continue
                worktree = Worktree(record, folder)
                if not dry:
                    with suppress(WorktreeError):
                        await take_back(folder, record, worktree.origin)
                if await self._is_prunable(worktree, days, over):
                    gone.append(record)
                    if not dry:
                        with suppress(WorktreeError):  # the next one tries it again
                            await _removed(worktree)
            finally:
                folder.release()
        if not dry:
            await asyncio.to_thread(self._sweep)
        return gone

    async def _is_prunable(
        self, worktree: Worktree, days: float | None, over: Collection[str]
    ) -> bool:
        record = worktree.record
        if record.state in ("making", "removing") or record.race in over:
            return True
        if days is not None and record.used_at < time.time() - days * _DAY:
            return True
        if record.state == "branch" or not worktree.has_files:
            return record.state == "ready"  # its files were removed
        with suppress(WorktreeError):
            return await worktree.is_unchanged()
        return False

    def _sweep(self) -> None:
        """Folders with files, and repositories of ours, that no record names."""
        known = self.all()
        ids, places = {each.id for each in known}, {each.common for each in known}
        with suppress(FileNotFoundError):
            for each in self.trees.iterdir():
                if each.name not in ids and not (self.records / each.name).exists():
                    shutil.rmtree(each, ignore_errors=True)
        with suppress(FileNotFoundError):
            for each in self.records.glob("*.git"):
                if str(each) not in places and time.time() - each.stat().st_mtime > _DAY:
                    shutil.rmtree(each, ignore_errors=True)


def check_name(name: str) -> None:
    """Raises WorktreeError for one that cannot be part of a branch's name."""
    if not _NAME.fullmatch(name) or name.endswith(".lock"):
        raise WorktreeError(
            f"{name!r} cannot be the name of a worktree: use up to 60 letters, digits, dots, "
            "dashes and underscores, and begin with a letter or digit"
        )


def is_worktree(path: str) -> bool:
    """Whether a folder is in the files of a worktree of ours."""
    return _is_in(path, str(worktrees_directory()))


def _is_in(path: str, folder: str) -> bool:
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return real == top or real.startswith(f"{top}/")


def _id(name: str, common: str) -> str:
    return f"{name.replace('.', '_')}-{_key(name + common)}"


def _real(folder: str) -> str:
    return os.path.realpath(folder)


def _key(text: str) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(text))).hexdigest()[:10]


def _link(record: WorktreeRecord) -> None:
    """Git's own folder for the worktree, whole or not at all, and the file in the worktree that
    names it."""
    new = _new_folder(record)
    os.makedirs(new)
    os.makedirs(os.path.dirname(record.own), exist_ok=True)
    os.makedirs(record.path)
    for path, line in (
        (f"{new}/gitdir", f"{record.path}/.git"),
        (f"{new}/commondir", "../.."),
        (f"{new}/HEAD", f"ref: {record.ref}"),
        (f"{record.path}/.git", f"gitdir: {record.own}"),
    ):
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{line}\n")
    os.rename(new, record.own)


def _new_folder(record: WorktreeRecord) -> str:
    """Of git's own folder, until all of it is there: git stumbles over a half one."""
    return os.path.join(record.common, f"dragoman-new-{record.id}")


def _make_bare(place: Path) -> None:
    for name in ("objects", "refs", "info"):
        make_private(place / name)
    (place / "config").write_bytes(_BARE)
    (place / "HEAD").write_bytes(b"ref: refs/heads/none\n")


async def _removed(worktree: Worktree) -> None:
    """All of it, in an order in which a kill leaves what names the rest. For one who holds its
    lock."""
    record = worktree.record
    record.state = "removing"
    worktree.folder.write(record)
    remove_merge_remains(record)
    await asyncio.to_thread(_remove_files, record)
    if _is_branch_ours(record):
        _remove_locks(record)
        if not _removed_branch_file(record):
            await worktree.origin.delete_ref(record.ref)
    await asyncio.to_thread(shutil.rmtree, worktree.folder.path)


def _remove_files(record: WorktreeRecord) -> None:
    """The folder with the files may have been made unreadable by what ran in it."""
    tree = os.path.dirname(record.path)
    shutil.rmtree(tree, ignore_errors=True)
    if os.path.lexists(tree):
        for folder, folders, _ in os.walk(tree):
            for name in folders:
                inner = os.path.join(folder, name)
                if not os.path.islink(inner):
                    with suppress(OSError):
                        os.chmod(inner, 0o700)
        shutil.rmtree(tree, ignore_errors=True)
    # At once, as far as git can see.
    gone = os.path.join(record.common, f"dragoman-gone-{record.id}")
    for each in (_new_folder(record), record.own):
        shutil.rmtree(gone, ignore_errors=True)
        with suppress(OSError):
            os.rename(each, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _remove_locks(record: WorktreeRecord) -> None:
    """What a killed git left next to our branch."""
    for name in (f"{record.ref}.lock", f"logs/{record.ref}.lock"):
        with suppress(OSError):
            os.unlink(os.path.join(record.common, name))


def _removed_branch_file(record: WorktreeRecord) -> bool:
    """A branch that is a file of its own, as one that was just made: git would lock all packed
    branches of the repository to delete it, and a kill would leave that lock."""
    path, log = (os.path.join(record.common, each) for each in (record.ref, f"logs/{record.ref}"))
    packed = _lines(Path(record.common, "packed-refs"))
    if any(line.endswith(f" {record.ref}") for line in packed):
        return False
    for each in (path, log):
        with suppress(FileNotFoundError):
            os.unlink(each)
    return not os.path.isdir(os.path.join(record.common, "reftable"))


def _is_branch_ours(record: WorktreeRecord) -> bool:
    """Whether it may go: it stays while the user looks at it in a checkout of their own."""
    if not record.branch or not os.path.isdir(record.common):
        return False
    heads = [Path(record.common, "HEAD"), *Path(record.common).glob("worktrees/*/HEAD")]
    line = f"ref: {record.ref}"
    return all(line not in _lines(each) for each in heads)


def _lines(path: Path) -> list[str]:
    """None if there is no such file."""
    with suppress(OSError):
        return path.read_text("utf-8", "replace").splitlines()
    return []
