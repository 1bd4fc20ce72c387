"""Puts one file of a snapshot in its place, all or nothing. Never follows a link."""

from __future__ import annotations

import hashlib
import os
import stat

import msgspec

from dragoman.host.snapshots.git_output import LINK, PLAIN, PROGRAM, Blob
from dragoman.host.workspace.atomic import Existing, read_up_to, remove, replace
from dragoman.host.workspace.jail import Jail, Resolved, Target
from dragoman.host.workspace.regular_file import SAFELY


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


def place(jail: Jail, operation: Operation, content: bytes, most: int) -> None:
    """Raises Overtaken, and what the jail raises. A file larger than `most` is not what is
    expected."""
    path = Resolved(os.fsdecode(operation.path))
    with jail.target(path, create=operation.after is not None) as target:
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
            replace(target, content, old)
            _set_program(target, operation.after.mode == PROGRAM)


def _is_half_done(now: Blob | None, operation: Operation) -> bool:
    """The content is there and its mode is not yet."""
    after = operation.after
    return now is not None and after is not None and now.id == after.id and after.mode != LINK


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
