"""Reads and replaces one file in a directory that is held open.

A replace is all or nothing: the new content is written beside the old, made durable, and put
in its place by a rename. Speaks in `OSError`; `Jail.target` turns them into refusals.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress

import msgspec

from dragoman.host.jail import Target, os_error
from dragoman.host.regular_file import SAFELY

_CHUNK = 1 << 20
# Never carried over: a program that runs as its owner must not run what an agent wrote.
_PERMISSIONS = 0o777


class Existing(msgspec.Struct, frozen=True):
    """What is in the place of a target now."""

    status: os.stat_result
    content: bytes


def read_up_to(descriptor: int, most: int) -> bytes:
    """The file's content, or its first `most` bytes; its size is only a hint, it may grow."""
    size = os.fstat(descriptor).st_size
    content = os.read(descriptor, min(size + 1, most))
    while len(content) < most and (more := os.read(descriptor, min(_CHUNK, most - len(content)))):
        content += more
    return content


def existing(target: Target, most: int) -> Existing | None:
    """The regular file that a write would replace, None if there is none; of a large one the
    first `most` bytes and one more.

    It must be writable as well: a rename would ignore that it is write-protected.
    """
    try:
        _must_be_regular(os.stat(target.name, dir_fd=target.directory, follow_symlinks=False))
        descriptor = os.open(target.name, os.O_RDWR | SAFELY, dir_fd=target.directory)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        _must_be_regular(status)
        content = read_up_to(descriptor, most + 1)
    finally:
        os.close(descriptor)
    return Existing(status, content)


def replace(target: Target, content: bytes, old: Existing | None) -> None:
    """Put `content` in the target's place with the old permissions; another hard link to the
    old file keeps the old content."""
    temporary = f".dragoman-{os.urandom(8).hex()}"
    # The system's umask applies to a new file; a replaced one may be private until it is named.
    mode = 0o666 if old is None else 0o600
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFELY
    descriptor = os.open(temporary, flags, mode, dir_fd=target.directory)
    try:
        try:
            _fill(descriptor, content, old)
        finally:
            os.close(descriptor)
        os.rename(temporary, target.name, src_dir_fd=target.directory, dst_dir_fd=target.directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=target.directory)
        raise
    _sync_directory(target.directory)


def remove(target: Target) -> None:
    os.unlink(target.name, dir_fd=target.directory)
    _sync_directory(target.directory)


def _fill(descriptor: int, content: bytes, old: Existing | None) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest[: _CHUNK * 8]) :]
    if old is not None:
        _take_after(descriptor, old.status)
    os.fsync(descriptor)


def _take_after(descriptor: int, old: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & _PERMISSIONS)


def _must_be_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise os_error(errno.EISDIR)
    if stat.S_ISLNK(status.st_mode):
        raise os_error(errno.ELOOP)
    if not stat.S_ISREG(status.st_mode):
        raise os_error(errno.ENXIO)


def _sync_directory(directory: int) -> None:
    # The rename has happened: an error now would say that it had not.
    with suppress(OSError):
        readable = os.open(".", os.O_RDONLY | SAFELY, dir_fd=directory)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)
