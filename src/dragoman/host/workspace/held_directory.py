"""Directories held open: reached without following links, and used to start programs in.

`openat2` does it in one call where there is one; elsewhere each component is opened from the
one before it, following nothing. Both say ELOOP or ENOTDIR when a link is in the way.
Knows nothing of roots, files or refusals in words.

On Linux the program enters it through the descriptor. Elsewhere it enters by the real name of
what was opened; between the two, someone who may rename directories could put another there.
"""

from __future__ import annotations

import errno
import functools
import os
import struct
import sys
from collections.abc import Callable

# The number is the same on every architecture here, and on all that Linux gained since 2019.
SYS_OPENAT2 = 437
OPENAT2_MACHINES = ("x86_64", "aarch64")
AT_FDCWD = -100
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
# A descriptor that only names a place needs no right to read it, where the system has those.
_NAME_ONLY: int = getattr(os, "O_PATH", os.O_RDONLY)
_DIRECTORY: int = _NAME_ONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_HOW = struct.pack("QQQ", _DIRECTORY, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

SUPPORTED = os.open in os.supports_dir_fd and _NOFOLLOW != 0


@functools.cache
def has_openat2() -> bool:
    """Whether the kernel, and whatever filters its calls, lets us use `openat2`."""
    if sys.platform != "linux" or os.uname().machine not in OPENAT2_MACHINES:
        return False
    try:
        os.close(_openat2("/"))
    except OSError:
        return False
    return True


def open_unlinked(path: str) -> int:
    """The directory at an absolute path without `..` in which no component is a link."""
    return _openat2(path) if has_openat2() else _walk(path)


def open_child(directory: int, name: str) -> int:
    """The directory called `name` in `directory`, which must not be a link."""
    return os.open(name, _DIRECTORY | _NOFOLLOW, dir_fd=directory)


def _walk(path: str) -> int:
    current = os.open("/", _DIRECTORY)
    for part in path.split("/"):
        if part:
            try:
                following = open_child(current, part)
            finally:
                os.close(current)
            current = following
    return current


def _openat2(path: str) -> int:
    name = os.fsencode(path)
    while True:
        descriptor = _syscall()(SYS_OPENAT2, AT_FDCWD, name, _HOW, len(_HOW))
        if descriptor >= 0:
            return descriptor
        code = _errno()
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code), path)


def _errno() -> int:
    import ctypes

    return ctypes.get_errno()


@functools.cache
def _syscall() -> Callable[[int, int, bytes, bytes, int], int]:
    import ctypes  # it costs more at import than all of this module

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    )
    return call


if sys.platform == "linux":

    def _entrance(descriptor: int) -> str:
        # Not /proc/self: another process forks the program, and reads this.
        return f"/proc/{os.getpid()}/fd/{descriptor}"

    def _real_name(descriptor: int) -> str:
        return os.readlink(f"/proc/self/fd/{descriptor}")

elif sys.platform == "darwin":

    def _entrance(descriptor: int) -> str:
        return _real_name(descriptor)

    def _real_name(descriptor: int) -> str:
        import fcntl

        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))

else:

    def _entrance(descriptor: int) -> str:
        raise NotImplementedError

    def _real_name(descriptor: int) -> str:
        raise NotImplementedError


class OpenDirectory:
    """Owns the descriptor of a directory: `entrance` is the path to start a program in, valid
    until `close`; `name` is what a person calls it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.entrance = _entrance(descriptor)
        self.name = _real_name(descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()
