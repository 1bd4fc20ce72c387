"""What is being done to a folder, on disk before it begins.

A process that is killed half way leaves its journal, and the next one does the rest; one that fails
takes back what it has done.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.data_directory import private_file
from dragoman.errors import RemoteError, RevertConflict
from dragoman.host.snapshots.placing import Operation, Overtaken, place
from dragoman.host.snapshots.shadow import Shadow, shown
from dragoman.host.workspace.jail import Jail, Resolved

_BATCH = 64 << 20
_OVERTAKEN = "it was changed just now"


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
                self._object(path, error.message)
            else:
                self._done.append(each)

    def _object(self, path: str, reason: str) -> None:
        if self._left is None:
            raise RevertConflict({path: reason})
        self._left[path] = reason

    def _remove(self, folders: Sequence[bytes]) -> None:
        # The jail removes the last one first.
        self._jail.remove_directories([os.fsdecode(each) for each in reversed(folders)])

    def _make(self, folders: Sequence[bytes]) -> None:
        for folder in folders:
            with suppress(RemoteError):
                path = Resolved(os.fsdecode(folder))
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
