"""Reads and replaces one file in a directory that is held open.

A replace is all or nothing: the new content is written next to the old, made durable, and put
in its place by a rename; nothing of it is left for long if that is cut short. Speaks in `OSError`;
`Jail.target` turns them into refusals.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

import msgspec

from dragoman.host.workspace.jail import Target, os_error
from dragoman.host.workspace.regular_file import SAFELY

_CHUNK = 1 << 20
# Never carried over: a program that runs as its owner must not run what an agent wrote.
_PERMISSIONS = 0o777
_NAMELESS: int = getattr(os, "O_TMPFILE", 0)
_LEFT = re.compile(r"\.dragoman-[0-9a-f]{16}\Z")
_MOST_ENTRIES = 10_000
_MOST_SWEPT = 10_000
_swept: set[tuple[int, int]] = set()
# Of renameat2.
_NO_REPLACE, _EXCHANGE = 1, 2


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


def replace(target: Target, content: bytes, old: Existing | None, swap: Swap | None = None) -> None:
    """Put `content` in the target's place with the old permissions; another hard link to the
    old file keeps the old content. With a `swap`, only in place of what it expects.

    The new file has no name until it is whole, where the system can do that. A name that is left
    anyway, by a process that was killed, is removed by the next one that writes here.
    """
    _sweep(target.directory)
    # The system's umask applies to a new file; a replaced one may be private until it is named.
    is_private = old is not None or (swap is not None and swap.is_private)
    mode = 0o600 if is_private else 0o666
    temporary = new_name() if swap is None else swap.temporary
    descriptor, is_named = _open_new(target.directory, temporary, mode)
    try:
        _fill(descriptor, content, old)
        if swap is not None:
            set_program(descriptor, swap.is_program)
        # Some systems tell only then that there was no room; the lock is kept by the other one.
        os.close(os.dup(descriptor))
        if not is_named:
            _name(descriptor, target.directory, temporary)
            is_named = True
        if swap is not None:
            swap.put(target)
        else:
            _rename(target.directory, temporary, target.name)
    except BaseException:
        if is_named:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=target.directory)
        raise
    finally:
        os.close(descriptor)
    _sync_directory(target.directory)


def new_name() -> str:
    """Of a file that is to take another's place."""
    return f".dragoman-{os.urandom(8).hex()}"


def set_program(descriptor: int, wanted: bool) -> None:
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if bool(mode & stat.S_IXUSR) != wanted:
        # Those who may read a program may run it.
        os.fchmod(descriptor, mode | (mode & 0o444) >> 2 if wanted else mode & ~0o111)


def _open_new(directory: int, name: str, mode: int) -> tuple[int, bool]:
    """A new file and whether it has the name yet. It is locked for as long as it is open, which
    tells it from one that was left."""
    with suppress(OSError):
        if _NAMELESS and os.path.isdir("/proc/self/fd"):
            flags = os.O_WRONLY | _NAMELESS | SAFELY
            descriptor = os.open(".", flags, mode, dir_fd=directory)
            _lock(descriptor)
            return descriptor, False
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFELY
    descriptor = os.open(name, flags, mode, dir_fd=directory)
    _lock(descriptor)
    return descriptor, True


def _name(descriptor: int, directory: int, name: str) -> None:
    os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=directory, follow_symlinks=True)


def _lock(descriptor: int) -> bool:
    """Whether nobody else has the file locked; a system without locks keeps what is left."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(directory: int) -> None:
    """Remove what a killed process has left, once for each directory and process."""
    with suppress(OSError):
        status = os.fstat(directory)
        identity = status.st_dev, status.st_ino
        if identity in _swept:
            return
        if len(_swept) >= _MOST_SWEPT:
            _swept.clear()
        _swept.add(identity)
        readable = os.open(".", os.O_RDONLY | SAFELY, dir_fd=directory)
        try:
            with os.scandir(readable) as entries:
                left = [e.name for e in islice(entries, _MOST_ENTRIES) if _LEFT.match(e.name)]
            for name in left:
                _remove_left(readable, name)
        finally:
            os.close(readable)


def _remove_left(directory: int, name: str) -> None:
    """Only a file of our own that no process holds: a regular one, with this one name."""
    with suppress(OSError):
        descriptor = os.open(name, os.O_RDONLY | SAFELY, dir_fd=directory)
        try:
            status = os.fstat(descriptor)
            ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            if ours and status.st_nlink == 1 and _lock(descriptor):
                os.unlink(name, dir_fd=directory)
        finally:
            os.close(descriptor)


def remove(target: Target, swap: Swap | None = None) -> None:
    if swap is None:
        os.unlink(target.name, dir_fd=target.directory)
    else:
        swap.take_away(target)
    _sync_directory(target.directory)


class Swap(msgspec.Struct, frozen=True):
    """Puts the file `temporary` in a target's place, or takes the target away, only if what is
    there is what is expected: `check` raises for the file of that name if it is not. Someone may
    save it at that very moment: what was in the place is looked at once more when it is out of it,
    and goes back."""

    temporary: str
    is_there: bool
    """Whether there is to be a file in the place."""
    check: Callable[[str], None]
    is_program: bool = False
    is_private: bool = False
    """Whether a file that is new is for its owner alone."""

    def put(self, target: Target) -> None:
        """Raises OSError, FileExistsError and FileNotFoundError among them, and what `check`
        does."""
        self.check(target.name)
        if not self.is_there:
            _rename(target.directory, self.temporary, target.name, _NO_REPLACE)
            return
        ours = _inode(target.directory, self.temporary)
        if not _rename(target.directory, self.temporary, target.name, _EXCHANGE):
            return
        try:
            self.check(self.temporary)
        except BaseException:
            # What someone put there since is newer than what we have taken out.
            if _inode(target.directory, target.name) == ours:
                _rename(target.directory, self.temporary, target.name, _EXCHANGE)
            raise
        self._discard(target.directory)

    def take_away(self, target: Target) -> None:
        """The same for a file that is to go."""
        self.check(target.name)
        _rename(target.directory, target.name, self.temporary, _NO_REPLACE)
        try:
            self.check(self.temporary)
        except BaseException:
            _rename(target.directory, self.temporary, target.name, _NO_REPLACE)
            raise
        self._discard(target.directory)

    def _discard(self, directory: int) -> None:
        # It is done: an error now would say that it was not.
        with suppress(OSError):
            os.unlink(self.temporary, dir_fd=directory)


def _rename(directory: int, old: str, new: str, flags: int = 0) -> bool:
    """Whether it heeded the flags: not every file system can."""
    if flags and (call := _renameat2()) is not None:
        import ctypes

        if not call(directory, os.fsencode(old), directory, os.fsencode(new), flags):
            return True
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(code, os.strerror(code), new)
    os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
    return not flags


@functools.cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        kinds = (ctypes.c_int, ctypes.c_char_p)
        call.argtypes = (*kinds, *kinds, ctypes.c_uint)
    return call


def _inode(directory: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None


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
