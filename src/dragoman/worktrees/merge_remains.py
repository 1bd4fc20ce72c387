"""What a merge leaves while it is under way, so that one that was killed can be taken back.

A mark next to the user's index says that a lock there is ours; a note in the folder of the record
says which files are being changed, and from what.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import suppress

import msgspec

from dragoman.data_directory import private_file
from dragoman.host.snapshots.git_output import LINK, Blob, TreeChange
from dragoman.worktrees.users_repository import Checkout
from dragoman.worktrees.worktree_record import RecordFolder, WorktreeRecord

_NOTE = "merge.json"


class _Switch(msgspec.Struct):
    """Two trees: what the files were, and what they were to be."""

    before: str
    after: str


def note_switch(folder: RecordFolder, before: str, after: str) -> None:
    """The files are about to be changed."""
    path = folder.path / _NOTE
    new = path.with_suffix(".new")
    with open(new, "wb", opener=private_file) as file:
        file.write(msgspec.json.encode(_Switch(before, after)))
    new.replace(path)


def forget_switch(folder: RecordFolder) -> None:
    """They were changed, or none was."""
    with suppress(FileNotFoundError):
        os.unlink(folder.path / _NOTE)


async def take_back(folder: RecordFolder, record: WorktreeRecord, into: Checkout) -> None:
    """What a killed merge did to the user's files, if there is such a merge: those that it had
    changed, or was writing, are as before. What someone changed since stays. For one who holds the
    lock of the worktree. Raises WorktreeError."""
    remove_merge_remains(record)
    if (cut := _cut(folder)) is None:
        return
    with folder.scratch_index() as index:
        now = await into.files_in(await into.state(index))
    changes = await into.changes(cut.before, cut.after)
    texts = await into.contents([each.after.id for each in changes if each.after])
    ours = {
        each.path: each.before
        for each in changes
        if _is_ours(into.top, each, now.get(each.path), texts)
    }
    with folder.scratch_index() as index:
        await into.put_files(cut.before, [name for name in ours if ours[name]], index)
    for name, before in ours.items():
        if before is None:
            _remove(into.top, name)
    forget_switch(folder)


def _cut(folder: RecordFolder) -> _Switch | None:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((folder.path / _NOTE).read_bytes(), type=_Switch)
    return None


def _is_ours(top: str, change: TreeChange, now: Blob | None, texts: dict[str, bytes]) -> bool:
    """Whether the file is as the merge left it: changed, removed, or written in part."""
    if now == change.after or now is None:
        return True
    if now == change.before or change.after is None or LINK in (now.mode, change.after.mode):
        return False
    with suppress(OSError), open(os.path.join(os.fsencode(top), change.path), "rb") as file:
        return texts.get(change.after.id, b"").startswith(file.read())
    return False


def _remove(top: str, name: bytes) -> None:
    path = os.path.join(os.fsencode(top), name)
    with suppress(OSError):
        os.unlink(path)
        os.removedirs(os.path.dirname(path))


def merge_mark(record: WorktreeRecord) -> str:
    """Next to the user's index, for as long as a merge is under way."""
    return os.path.join(record.git_dir, f"dragoman-merge-{record.id}")


def remove_merge_remains(record: WorktreeRecord) -> None:
    """What a merge that was killed left in the user's repository. For one who holds the lock of
    the worktree."""
    mark = merge_mark(record)
    if not os.path.exists(mark):
        return
    index_lock = os.path.join(record.git_dir, "index.lock")
    with suppress(OSError):
        if os.path.samefile(mark, index_lock):
            os.unlink(index_lock)
    for lock in _head_locks(record):
        with suppress(OSError):
            os.unlink(lock)
    for each in (f"{mark}.new.lock", f"{mark}.new", mark):
        with suppress(OSError):
            os.unlink(each)


def _head_locks(record: WorktreeRecord) -> Generator[str]:
    """Of what is checked out, which the last step of a merge moves."""
    yield os.path.join(record.git_dir, "HEAD.lock")
    with suppress(OSError, UnicodeDecodeError):
        with open(os.path.join(record.git_dir, "HEAD"), encoding="utf-8") as file:
            line = file.read().strip()
        if line.startswith("ref: "):
            yield os.path.join(record.common, f"{line.removeprefix('ref: ')}.lock")
