"""Puts files of snapshots in their places; what is to be done is on disk before it begins.

A process that is killed half way leaves its journal, and the next one does the rest; one that fails
takes back what it has done. Each file is replaced as a whole, and no link is followed.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import os
import stat
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from dragoman.data_directory import private_file
from dragoman.errors import RemoteError, ResourceNotFound, RevertConflict
from dragoman.host.snapshots.folder_scan import shown
from dragoman.host.snapshots.git_output import LINK, PLAIN, PROGRAM, Blob
from dragoman.host.snapshots.shadow import Shadow
from dragoman.host.workspace.atomic import Existing, Swap, read_up_to, remove, replace
from dragoman.host.workspace.jail import Jail, Known, Target, at, reason_of
from dragoman.host.workspace.regular_file import SAFELY

T = TypeVar("T")
P = ParamSpec("P")

_BATCH = 64 << 20
_OVERTAKEN = "it was changed just now"
_NOT_A_FILE = "something that is not a file is now in its place"
_TOO_LARGE = "what is now in its place is too large to keep"


class Operation(msgspec.Struct, frozen=True):
    """A file that becomes another one; None for no file."""

    path: bytes
    before: Blob | None = None
    after: Blob | None = None

    @property
    def back(self) -> Operation:
        return Operation(self.path, before=self.after, after=self.before)


class Overtaken(Exception):
    """The file is not what it is expected to be: someone was quicker."""


class InTheWay(Exception):
    """What is in the place can neither be kept nor compared, and so is not replaced."""


class RestoreJournal(msgspec.Struct):
    """Files to change, folders to make, and folders to remove if nothing is left in them."""

    restore_id: str
    session_id: str
    operations: list[Operation]
    made: list[bytes] = []
    emptied: list[bytes] = []
    left: dict[str, str] = {}
    """Files that someone changed before the rest could be done, and why they stay as they are."""
    parts: list[bytes] = []
    """Where the shadows of the session's other folders are, which have a part each: with this
    journal, all of them are to be done."""


class Done(msgspec.Struct, frozen=True):
    """What a restore did to a folder itself: some of its journal may have been done by others
    meanwhile, and is not the restore's to undo."""

    operations: list[Operation]
    made: list[bytes]
    """Folders, also those that files needed."""
    emptied: list[bytes]


_WHOLE, _PART, _NEW = ".json", ".part", ".new"


def journals(directory: Path) -> Iterator[Path]:
    """Those that were left in the folder of a shadow, or stand for what is being done."""
    return iter(sorted((directory / "journal").glob(f"*{_WHOLE}")))


def rests(directory: Path) -> list[Path]:
    """What of journals may have been left without one."""
    return [each for end in (_PART, _NEW) for each in (directory / "journal").glob(f"*{end}")]


async def carry_out(works: Sequence[tuple[Shadow, RestoreJournal]]) -> list[Done]:
    """Do all of it, or nothing, also if this is cancelled. Raises RevertConflict. For one who holds
    the locks."""
    paths = [_path(shadow, journal.restore_id, _PART) for shadow, journal in works]
    first, journal = works[0]
    paths[0] = _path(first, journal.restore_id, _WHOLE)
    others = [os.fsencode(shadow.directory) for shadow, _ in works[1:]]
    try:
        await _in_thread(_write_all, paths, [each for _, each in works], others)
    except BaseException:
        _remove([*paths, *(path.with_suffix(_NEW) for path in paths)])
        raise
    done: list[_Work] = []
    try:
        for shadow, journal in works:
            done.append(_Work(shadow, journal.restore_id))
            await done[-1].do(journal)
        return [each.done for each in done]
    except BaseException as error:
        left = await completed(_take_back(done))
        if isinstance(error, RevertConflict):
            error.reasons.update(left)
        raise
    finally:
        _remove(paths)


async def _take_back(done: Sequence[_Work]) -> dict[str, str]:
    """What someone was in the way of, and why."""
    left: dict[str, str] = {}
    for each in reversed(done):
        left |= await each.take_back()
    return left


async def completed(work: Coroutine[object, object, T]) -> T:
    """Its result. A caller that is cancelled meanwhile waits for the end, and is cancelled then."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


async def _in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """A thread cannot be stopped, and what it does may have to be taken back: a caller that is
    cancelled waits for it."""
    return await completed(asyncio.to_thread(function, *args, **kwargs))


def unfinished(path: Path) -> list[Path]:
    """The folders of the shadows that the journal is about, its own first; none once it is done."""
    with suppress(FileNotFoundError):
        return [path.parent.parent, *(Path(os.fsdecode(each)) for each in _read(path).parts)]
    return []


async def finish(shadows: Sequence[Shadow], path: Path) -> RestoreJournal:
    """Do the rest of what a killed process began; what someone changed since is `left`. For one
    who holds the locks."""
    whole = _read(path)
    paths = [path]
    for shadow in shadows:
        journal = whole
        if shadow.directory != path.parent.parent:
            paths.append(_path(shadow, whole.restore_id, _PART))
            if not paths[-1].exists():
                continue
            journal = _read(paths[-1])
        work = _Work(shadow, journal.restore_id, left=whole.left)
        await work.clean_up(journal)
        await work.do(journal)
    _remove(paths)
    return whole


def drop(rest: Path, directories: Iterable[Path]) -> None:
    """Unless its journal is still there: then it is a part of that. Without one, nothing was done.
    For one who holds the lock."""
    name = rest.with_suffix(_WHOLE).name
    is_part = rest.suffix == _PART
    if not (is_part and any((each / "journal" / name).exists() for each in directories)):
        rest.unlink(missing_ok=True)


def _path(shadow: Shadow, restore_id: str, suffix: str) -> Path:
    return shadow.directory / "journal" / f"{restore_id}{suffix}"


def _read(path: Path) -> RestoreJournal:
    return msgspec.json.decode(path.read_bytes(), type=RestoreJournal)


def _remove(paths: Iterable[Path]) -> None:
    """The journal before its parts: without it, they are nothing."""
    for path in paths:
        path.unlink(missing_ok=True)


class _Work:
    """What has been done so far. With `left`, what cannot be done is noted there."""

    def __init__(self, shadow: Shadow, restore_id: str, left: dict[str, str] | None = None) -> None:
        self._shadow = shadow
        self._restore_id = restore_id
        self._private = shadow.private()
        self._jail = Jail((at(shadow.root),))
        self._done: list[Operation] = []
        self._left = left
        self._made: list[str] = []
        """Folders, each after the one it is in."""
        self._emptied: list[tuple[str, int]] = []
        """Folders that were removed, each before the one it was in, with their permissions."""

    @property
    def done(self) -> Done:
        made = [os.fsencode(each) for each in self._made]
        return Done(self._done, made, [os.fsencode(path) for path, _ in self._emptied])

    async def do(self, journal: RestoreJournal) -> None:
        """What is deleted makes room for what is created."""
        deleted = [each for each in journal.operations if each.after is None]
        created = [each for each in journal.operations if each.after is not None]
        await self._place_all(deleted)
        await _in_thread(self._remove, journal.emptied)
        await self._place_all(created)
        await _in_thread(self._make, [(os.fsdecode(each), None) for each in journal.made])

    async def take_back(self) -> dict[str, str]:
        left: dict[str, str] = {}
        done, self._done, self._left = self._done, [], left
        await self._place_all([each.back for each in reversed(done) if each.before is None])
        await _in_thread(self._jail.remove_directories, self._made)
        await _in_thread(self._make, self._emptied[::-1])
        await self._place_all([each.back for each in reversed(done) if each.before is not None])
        return left

    async def clean_up(self, journal: RestoreJournal) -> None:
        """What a killed process may have left under names of its own."""
        await _in_thread(self._clean_up, journal)

    def _clean_up(self, journal: RestoreJournal) -> None:
        for each in journal.operations:
            with suppress(RemoteError), self._jail.target(_known(each.path)) as target:
                os.unlink(self._temporary(each), dir_fd=target.directory)

    def _temporary(self, operation: Operation) -> str:
        """The same one whenever this restore works on this file."""
        name = self._restore_id.encode() + b"\0" + operation.path
        return f".dragoman-{hashlib.sha256(name).hexdigest()[:16]}"

    async def _place_all(self, operations: Sequence[Operation]) -> None:
        sizes = await self._shadow.git.sizes([each.after.id for each in operations if each.after])
        for some in _batches(operations, sizes):
            ids = [each.after.id for each in some if each.after]
            contents = await self._shadow.git.contents(ids)
            await _in_thread(self._place_some, some, contents)

    def _place_some(self, operations: Sequence[Operation], contents: dict[str, bytes]) -> None:
        for each in operations:
            path = shown(each.path)
            if self._left is not None and each.after is None and self._is_gone(each):
                continue
            try:
                content = b"" if each.after is None else contents[each.after.id]
                if self._place(each, content):
                    self._done.append(each)
            except Overtaken:
                self._object(path, _OVERTAKEN)
            except InTheWay as error:
                self._object(path, str(error))
            except KeyError:
                self._object(path, "its earlier content is gone")
            except RemoteError as error:
                self._object(path, reason_of(error))

    def _place(self, operation: Operation, content: bytes) -> bool:
        path, temporary = _known(operation.path), self._temporary(operation)
        with self._jail.target(path, create=operation.after is not None) as target:
            most = self._shadow.limits.file_bytes
            swap = Swap(
                temporary,
                operation.before is not None,
                functools.partial(_must_be_as_before, target, operation, most),
                is_program=operation.after is not None and operation.after.mode == PROGRAM,
                is_private=self._shadow.name_of(operation.path) in self._private,
            )
            is_ours = place(target, operation, content, swap, most)
            self._made += target.made
        return is_ours

    def _is_gone(self, operation: Operation) -> bool:
        """Also if its folder is gone by now, or a folder is in its place: that came after it."""
        try:
            with self._jail.target(_known(operation.path)) as target:
                status = os.stat(target.name, dir_fd=target.directory, follow_symlinks=False)
                return stat.S_ISDIR(status.st_mode)
        except ResourceNotFound:
            return True
        except RemoteError:
            return False

    def _object(self, path: str, reason: str) -> None:
        if self._left is None:
            raise RevertConflict({path: reason}, by_force=reason == _OVERTAKEN)
        self._left[path] = reason

    def _remove(self, folders: Iterable[bytes]) -> None:
        for each in folders:
            with suppress(RemoteError), self._jail.target(_known(each)) as target:
                status = os.stat(target.name, dir_fd=target.directory, follow_symlinks=False)
                os.rmdir(target.name, dir_fd=target.directory)
                self._emptied.append((target.path, stat.S_IMODE(status.st_mode)))

    def _make(self, folders: Iterable[tuple[str, int | None]]) -> None:
        for folder, mode in folders:
            with suppress(RemoteError), self._jail.target(Known(folder), create=True) as target:
                self._made += target.made
                with suppress(FileExistsError):
                    os.mkdir(target.name, dir_fd=target.directory)
                    self._made.append(target.path)
                    if mode is not None:
                        os.chmod(target.name, mode, dir_fd=target.directory)


def _known(path: bytes) -> Known:
    return Known(os.fsdecode(path))


def _batches(
    operations: Sequence[Operation], sizes: dict[str, int]
) -> Iterator[Sequence[Operation]]:
    some: list[Operation] = []
    room = _BATCH
    for each in operations:
        room -= 0 if each.after is None else sizes.get(each.after.id, 0)
        if some and room < 0:
            yield some
            some, room = [], _BATCH
        some.append(each)
    if some:
        yield some


def _write_all(paths: Sequence[Path], works: Sequence[RestoreJournal], others: list[bytes]) -> None:
    """Durable before anything is touched; the first one last, which makes them one."""
    whole = msgspec.structs.replace(works[0], parts=others)
    for path, journal in (*zip(paths[1:], works[1:], strict=True), (paths[0], whole)):
        _write(path, journal)


def _write(path: Path, journal: RestoreJournal) -> None:
    path.parent.mkdir(exist_ok=True, mode=0o700)
    new = path.with_suffix(_NEW)
    with open(new, "wb", opener=private_file) as file:
        file.write(msgspec.json.encode(journal))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


# ── one file ──────────────────────────────────────────────────────────────────────────────────


def place(target: Target, operation: Operation, content: bytes, swap: Swap, most: int) -> bool:
    """Whether it took this to do it: what someone else did is not ours to take back. Raises
    Overtaken, InTheWay for what is not a file or larger than `most`, and what the jail raises."""
    found = _found(target, target.name, most)
    now = None if found is None else found[0]
    after = operation.after
    if now == after:
        return False
    try:
        if after is None:
            remove(target, swap)
        elif after.mode == LINK:
            _link(target, content, swap)
        else:
            replace(target, content, None if found is None else found[1], swap)
    except (FileExistsError, FileNotFoundError):
        raise Overtaken from None
    return True


def _must_be_as_before(target: Target, operation: Operation, most: int, name: str) -> None:
    there = _found(target, name, most)
    if operation.before != (None if there is None else there[0]):
        raise Overtaken


def _found(target: Target, name: str, most: int) -> tuple[Blob, Existing | None] | None:
    """What is there: with what a file that replaces it takes after."""
    try:
        status = os.stat(name, dir_fd=target.directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            leads_to = os.readlink(os.fsencode(name), dir_fd=target.directory)
            return Blob(LINK, blob_id(leads_to)), None
        if not stat.S_ISREG(status.st_mode):
            raise InTheWay(_NOT_A_FILE)
        descriptor = os.open(name, os.O_RDONLY | SAFELY, dir_fd=target.directory)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        content = read_up_to(descriptor, most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise InTheWay(_TOO_LARGE)
    mode = PROGRAM if status.st_mode & stat.S_IXUSR else PLAIN
    return Blob(mode, blob_id(content)), Existing(status, content)


def blob_id(content: bytes) -> str:
    """What git calls it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _link(target: Target, content: bytes, swap: Swap) -> None:
    os.symlink(content, os.fsencode(swap.temporary), dir_fd=target.directory)
    try:
        swap.put(target)
    except BaseException:
        with suppress(OSError):
            os.unlink(swap.temporary, dir_fd=target.directory)
        raise
