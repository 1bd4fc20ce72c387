"""Landlock: the fence where there are no namespaces, and the part of it that those do not have."""

from __future__ import annotations

import os

from . import kernel_calls as calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .plan import FencePlan

_WRITE_FILE, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 1, 1 << 13, 1 << 14, 1 << 15
_CHANGE_FOLDERS = sum(1 << bit for bit in range(4, 13))
"""Remove and make: folders, files, sockets, pipes, devices, links."""
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
GOVERNS_TRUNCATION, GOVERNS_SIGNALS = 3, 6
"""The versions from which it does so; of signals together with abstract sockets."""
_DEVICES = (b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/tty", b"/dev/ptmx", b"/dev/pts")


def enter_scope() -> bool:
    """From now on no signal and no abstract socket reaches a process outside; whether the kernel
    can do that."""
    if calls.landlock_version() < GOVERNS_SIGNALS:
        return False
    _enter(calls.landlock_ruleset(0, _ABSTRACT_SOCKETS | _SIGNALS))
    return True


def enter(plan: FencePlan) -> None:
    """Write only where the plan says so. What it covers can still be read, and what it protects
    inside a writable folder can still be written: Landlock only ever adds rights."""
    version = calls.landlock_version()
    scoped = _ABSTRACT_SOCKETS | _SIGNALS if version >= GOVERNS_SIGNALS else 0
    calls.leave_keyring()
    calls.drop_privileges()
    rights = _rights(version)
    ruleset = calls.landlock_ruleset(rights, scoped)
    for path in (*plan.writable, plan.temporary, *filter(os.path.exists, _DEVICES)):
        _allow(ruleset, path, rights)
    _enter(ruleset)


def _rights(version: int) -> int:
    return (
        _WRITE_FILE
        | _CHANGE_FOLDERS
        | (_REFER if version >= 2 else 0)
        | (_TRUNCATE if version >= GOVERNS_TRUNCATION else 0)
    )


def _allow(ruleset: int, path: bytes, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        folder = os.path.isdir(path)
        calls.landlock_allow(
            ruleset, place, rights if folder else rights & (_WRITE_FILE | _TRUNCATE)
        )
    finally:
        os.close(place)


def _enter(ruleset: int) -> None:
    try:
        calls.landlock_enter(ruleset)
    finally:
        os.close(ruleset)
