"""What the system tells of a program in a fence: its parent, its root, and how it ended."""

from __future__ import annotations

import fcntl
import os
import struct

from dragoman.process import descriptors
from dragoman.process.child import ExitStatus

_PIDFD_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_EXIT_INFO = 1 << 3
_EXIT_AT = 60


def mounts_of(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino
    except OSError:
        return -1


def root_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/root")
    except OSError:
        return ""


def umask_of(pid: int) -> int:
    with open(f"/proc/{pid}/status", "rb") as status:
        for line in status:
            if line.startswith(b"Umask:"):
                return int(line.split()[1], 8)
    return 0o077


def parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def descriptor_of(pid: int) -> int:
    """None, which is -1, where a program would take what is kept for others."""
    if not descriptors.has_room_to_spare(1):
        return -1
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1
    descriptors.guard(descriptor)
    return descriptor


def status_of(process: int, pid: int) -> ExitStatus | None:
    """How a process ended, as far as that is to be known: its parent may have asked already."""
    code = _reaped_code(process)
    if code is None:
        code = _zombie_code(pid)
    if code is None:
        code = _reaped_code(process)  # its parent asked between these two looks
    return None if code is None else ExitStatus.of(os.waitstatus_to_exitcode(code))


def _reaped_code(process: int) -> int | None:
    """Since Linux 6.15 the descriptor knows."""
    info = bytearray(struct.pack("Q", _EXIT_INFO).ljust(64, b"\0"))
    try:
        fcntl.ioctl(process, _PIDFD_INFO, info)
    except OSError:
        return None
    told = int.from_bytes(info[:8], "little") & _EXIT_INFO
    return int.from_bytes(info[_EXIT_AT : _EXIT_AT + 4], "little") if told else None


def _zombie_code(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[49]) if fields[:1] == [b"Z"] and len(fields) > 49 else None
