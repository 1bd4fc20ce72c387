"""Puts files of snapshots in their places; what is to be done is on disk before it begins.

A process that is killed half way leaves its journal, and the next one does the rest; one that fails
takes back what it has done. Each file is replaced as a whole, and no link is followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.data_directory import private_file
from dragoman.errors import RemoteError, RevertConflict
from dragoman.host.snapshots.folder_scan import shown
from dragoman.host.snapshots.git_output import LINK, PLAIN, PROGRAM, Blob
from dragoman.host.snapshots.shadow import Shadow
from dragoman.host.workspace.atomic import Existing, read_up_to, remove, replace
from dragoman.host.workspace.jail import Jail, Known, Target, reason_of
from dragoman.host.workspace.regular_file import SAFELY

_BATCH = 64 << 20
_OVERTAKEN = "it was changed just now"


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


class RestoreJournal(msgspec.Struct):
    """Files to change, folders to make, and folders to remove if nothing is left in them."""

    restore_id: str
    session_id: str
    operations: list[Operation]
    made: list[bytes] = []
    emptied: list[bytes] = []
    left: dict[str, str] = {}
    """Files that someone changed before the rest could be done, and why they stay as they are."""


def journals(directory: Path) -> Iterator[Path]:
    """Those that were left in the folder of a shadow, or stand for what is being done."""
    return iter(sorted((directory / "journal").glob("*.json")))


async def carry_out(shadow: Shadow, journal: RestoreJournal) -> None:
    """Do all of it, or nothing. Raises RevertConflict. For one who holds the lock."""
    path = shadow.directory / "journal" / f"{journal.restore_id}.json"
    await asyncio.to_thread(_write, path, journal)
    work = _Work(shadow)
    try:
        await work.do(journal)
    except BaseException:
        await asyncio.shield(work.take_back())
        raise
    finally:
        _done(path)


async def finish(shadow: Shadow, path: Path) -> RestoreJournal:
    """Do the rest of what a killed process began; what someone changed since is `left`. For one
    who holds the lock."""
    journal = _read(path)
    work = _Work(shadow, left=journal.left)
    await work.do(journal)
    _done(path)
    return journal


def _read(path: Path) -> RestoreJournal:
    return msgspec.json.decode(path.read_bytes(), type=RestoreJournal)


def _done(path: Path) -> None:
    path.unlink(missing_ok=True)


class _Work:
    """What has been done so far. With `left`, what cannot be done is noted there."""

    def __init__(self, shadow: Shadow, left: dict[str, str] | None = None) -> None:
        self._shadow = shadow
        self._jail = Jail((shadow.root,))
        self._done: list[Operation] = []
        self._left = left

    async def do(self, journal: RestoreJournal) -> None:
        """What is deleted makes room for what is created."""
        deleted = [each for each in journal.operations if each.after is None]
        created = [each for each in journal.operations if each.after is not None]
        await self._place_all(deleted)
        self._remove(journal.emptied)
        await self._place_all(created)
        self._make(journal.made)

    async def take_back(self) -> None:
        done, self._done, self._left = self._done, [], {}
        deleted = [each.back for each in reversed(done) if each.before is None]
        await self._place_all(deleted)
        await self._place_all([each.back for each in reversed(done) if each.before is not None])

    async def _place_all(self, operations: Sequence[Operation]) -> None:
        sizes = await self._shadow.sizes([each.after.id for each in operations if each.after])
        for some in _batches(operations, sizes):
            contents = await self._shadow.contents([each.after.id for each in some if each.after])
            await asyncio.to_thread(self._place_some, some, contents)

    def _place_some(self, operations: Sequence[Operation], contents: dict[str, bytes]) -> None:
        for each in operations:
            path = shown(each.path)
            try:
                content = b"" if each.after is None else contents[each.after.id]
                place(self._jail, each, content, self._shadow.limits.file_bytes)
            except Overtaken:
                self._object(path, _OVERTAKEN)
            except KeyError:
                self._object(path, "its earlier content is gone")
            except RemoteError as error:
                self._object(path, reason_of(error))
            else:
                self._done.append(each)

    def _object(self, path: str, reason: str) -> None:
        if self._left is None:
            raise RevertConflict({path: reason}, by_force=reason == _OVERTAKEN)
        self._left[path] = reason

    def _remove(self, folders: Sequence[bytes]) -> None:
        # The jail removes the last one first.
        self._jail.remove_directories([Known(os.fsdecode(each)) for each in reversed(folders)])

    def _make(self, folders: Sequence[bytes]) -> None:
        for folder in folders:
            with suppress(RemoteError):
                path = Known(os.fsdecode(folder))
                with self._jail.target(path, create=True) as target, suppress(FileExistsError):
                    os.mkdir(target.name, dir_fd=target.directory)


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


def _write(path: Path, journal: RestoreJournal) -> None:
    """Durable before anything is touched."""
    path.parent.mkdir(exist_ok=True, mode=0o700)
    new = path.with_suffix(".new")
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


def place(jail: Jail, operation: Operation, content: bytes, most: int) -> None:
    """Raises Overtaken, and what the jail raises. A file larger than `most` is not what is
    expected."""
    path = Known(os.fsdecode(operation.path))
    with jail.target(path, create=operation.after is not None) as target:
        mark = _mark(target)
        found = _found(target, most)
        now = None if found is None else found[0]
        if now == operation.after:
            return
        if now != operation.before and not _is_half_done(now, operation):
            raise Overtaken
        if operation.after is None:
            remove(target)
        elif operation.after.mode == LINK:
            _link(target, content)
        else:
            old = None if found is None else found[1]
            replace(target, content, old, check=lambda: _must_be_as(mark, target))
            _set_program(target, operation.after.mode == PROGRAM)


def _is_half_done(now: Blob | None, operation: Operation) -> bool:
    """The content is there and its mode is not yet."""
    after = operation.after
    return now is not None and after is not None and now.id == after.id and after.mode != LINK


def _mark(target: Target) -> tuple[int, ...] | None:
    """Another one once the file was written to or replaced; None for no file."""
    try:
        status = os.stat(target.name, dir_fd=target.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _must_be_as(mark: tuple[int, ...] | None, target: Target) -> None:
    if _mark(target) != mark:
        raise Overtaken


def _found(target: Target, most: int) -> tuple[Blob, Existing | None] | None:
    """What is there: with what a file that replaces it takes after."""
    try:
        status = os.stat(target.name, dir_fd=target.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        leads_to = os.readlink(os.fsencode(target.name), dir_fd=target.directory)
        return Blob(LINK, blob_id(leads_to)), None
    if not stat.S_ISREG(status.st_mode):
        raise Overtaken
    descriptor = os.open(target.name, os.O_RDONLY | SAFELY, dir_fd=target.directory)
    try:
        status = os.fstat(descriptor)
        content = read_up_to(descriptor, most + 1)
    finally:
        os.close(descriptor)
    mode = PROGRAM if status.st_mode & stat.S_IXUSR else PLAIN
    return Blob(mode, blob_id(content)), Existing(status, content)


def blob_id(content: bytes) -> str:
    """What git calls it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _link(target: Target, content: bytes) -> None:
    temporary = f".dragoman-{os.urandom(8).hex()}"
    os.symlink(content, os.fsencode(temporary), dir_fd=target.directory)
    os.rename(temporary, target.name, src_dir_fd=target.directory, dst_dir_fd=target.directory)


def _set_program(target: Target, wanted: bool) -> None:
    descriptor = os.open(target.name, os.O_RDONLY | SAFELY, dir_fd=target.directory)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if bool(mode & stat.S_IXUSR) != wanted:
            # Those who may read a program may run it.
            os.fchmod(descriptor, mode | (mode & 0o444) >> 2 if wanted else mode & ~0o111)
    finally:
        os.close(descriptor)
