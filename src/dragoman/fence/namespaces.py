"""Builds a fence of namespaces around this process, which is process 1 of its own.

The whole tree of files becomes read-only, and folders that may be written are put back from copies
made before. What is covered gets something empty mounted over it. `/tmp` is private, `/dev` has
only what every program needs, `/run` is empty, and `/proc` shows nobody outside. In the end no
right is left to undo any of it.
"""

from __future__ import annotations

import os
import stat

from . import kernel_calls as calls
from . import landlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .plan import FencePlan

NAMESPACES = calls.NEWUSER | calls.NEWNS | calls.NEWIPC | calls.NEWPID

_DEVICES = (b"null", b"zero", b"full", b"random", b"urandom", b"tty")
_LINKS = {
    b"fd": b"/proc/self/fd",
    b"stdin": b"/proc/self/fd/0",
    b"stdout": b"/proc/self/fd/1",
    b"stderr": b"/proc/self/fd/2",
    b"ptmx": b"pts/ptmx",
}
_EMPTY_FOLDER, _EMPTY_FILE = b"/dev/.covered/folder", b"/dev/.covered/file"
_SHARED_TEMPORARY = (b"/tmp", b"/var/tmp")
# The user root may write these by being their owner, and a program named there runs unfenced.
_PROC_OF_ROOT = (b"sys", b"sysrq-trigger", b"irq", b"bus", b"fs", b"acpi", b"scsi", b"driver")
_HARMLESS = calls.NOSUID | calls.NODEV


def map_user(uid: int, gid: int) -> None:
    """Be the same user inside, and no other; with every right over the new namespaces."""
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def build(plan: FencePlan, terminal: bytes | None) -> None:
    """Raises OSError. `terminal` is the program's own, if it has one."""
    calls.make_private()
    copies = {path: _copy(path) for path in (*plan.writable, *plan.kept, plan.temporary)}
    shared = {path: _copy(plan.temporary) for path in filter(_is_folder, _SHARED_TEMPORARY)}
    devices = _copied_devices(terminal)
    calls.restrict_mounts(b"/", calls.RDONLY | _HARMLESS)
    _make_devices(devices)
    calls.mount(b"proc", b"/proc", _HARMLESS | calls.NOEXEC)
    if os.geteuid() == 0:
        _freeze([b"/proc/" + name for name in _PROC_OF_ROOT])
    for path, copy in shared.items():
        calls.restrict_mounts(copy, _HARMLESS)
        _attach(copy, path)
    _Builder(plan, copies, list(shared)).build()


def close_off() -> None:
    """Give up what was needed to build it, and what mounts do not govern."""
    calls.leave_keyring()
    calls.drop_privileges()
    landlock.enter_scope()


class _Builder:
    """Puts everything in its place, a folder before what is in it."""

    def __init__(self, plan: FencePlan, copies: dict[bytes, int], emptied: list[bytes]) -> None:
        self._plan = plan
        self._copies = copies
        self._writable = {*plan.writable, plan.temporary}
        self._kept = set(plan.kept)
        self._covered = set(plan.covered)
        self._read_only = set(plan.read_only)
        self._hollow: list[bytes] = []
        self._emptied = emptied

    def build(self) -> None:
        inner = {*self._copies, *self._covered, *self._read_only, *self._plan.pinned}
        order = sorted(inner, key=lambda path: path.split(b"/"))
        for at, path in enumerate(order):
            following = order[at + 1] if at + 1 < len(order) else b""
            self._place(path, has_inner=following.startswith(path + b"/"))
        for path in self._hollow:
            calls.restrict_mounts(path, calls.RDONLY, beneath=False)

    def _place(self, path: bytes, *, has_inner: bool) -> None:
        if path in self._copies:
            copy = self._copies[path]
            attributes = _HARMLESS if path in self._writable else _HARMLESS | calls.RDONLY
            calls.restrict_mounts(copy, attributes)
            self._make_room(path, copy)
            _attach(copy, path)
        elif path in self._covered:
            self._cover(path, hollow=has_inner)
        else:
            copy = _copy(path)
            if path in self._read_only:
                calls.restrict_mounts(copy, calls.RDONLY)
            _attach(copy, path)

    def _make_room(self, path: bytes, copy: int) -> None:
        """In a folder that was emptied, make something to mount on."""
        if not any(path.startswith(emptied + b"/") for emptied in (*self._emptied, *self._hollow)):
            return
        if os.path.isdir(f"/proc/self/fd/{copy}"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _touch(path)

    def _cover(self, path: bytes, *, hollow: bool) -> None:
        try:
            place = calls.open_place(path)
        except (FileNotFoundError, NotADirectoryError):
            return  # it has gone since, or is in a folder that is covered as well
        try:
            if hollow:
                calls.mount(b"tmpfs", path, _HARMLESS, b"mode=0755,size=1m")
                self._hollow.append(path)
            else:
                is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
                copy = calls.copy_named(_EMPTY_FOLDER if is_folder else _EMPTY_FILE)
                calls.attach(copy, place)
                os.close(copy)
        finally:
            os.close(place)


def _copied_devices(terminal: bytes | None) -> dict[bytes, int]:
    found = {name: b"/dev/" + name for name in _DEVICES}
    if terminal is not None:
        found[b"console"] = terminal  # programs look here for the name of theirs
    return {name: copy for name, path in found.items() if (copy := _copy_if_there(path)) >= 0}


def _make_devices(copies: dict[bytes, int]) -> None:
    calls.mount(b"tmpfs", b"/dev", calls.NOSUID, b"mode=0755,size=1m")
    for folder in (b"/dev/pts", b"/dev/shm", b"/dev/.covered", _EMPTY_FOLDER):
        os.mkdir(folder)
    _touch(_EMPTY_FILE)
    for name, target in _LINKS.items():
        os.symlink(target, b"/dev/" + name)
    for name, copy in copies.items():
        _touch(b"/dev/" + name)
        _attach_named(copy, b"/dev/" + name)
    calls.restrict_mounts(b"/dev", calls.RDONLY, beneath=False)
    calls.mount(b"devpts", b"/dev/pts", calls.NOSUID | calls.NOEXEC, b"newinstance,ptmxmode=0666")
    calls.mount(b"tmpfs", b"/dev/shm", _HARMLESS, b"mode=01777")


def _freeze(paths: Iterable[bytes]) -> None:
    for path in paths:
        if (copy := _copy_if_there(path)) >= 0:
            calls.restrict_mounts(copy, calls.RDONLY)
            _attach_named(copy, path)


def _copy(path: bytes) -> int:
    place = calls.open_place(path)
    try:
        return calls.copy_tree(place)
    finally:
        os.close(place)


def _copy_if_there(path: bytes) -> int:
    """Of what belongs to the system; -1 if it has no such thing."""
    try:
        return calls.copy_named(path)
    except FileNotFoundError:
        return -1


def _attach(copy: int, path: bytes) -> None:
    place = calls.open_place(path)
    try:
        calls.attach(copy, place)
    finally:
        os.close(place)
        os.close(copy)


def _attach_named(copy: int, path: bytes) -> None:
    try:
        calls.attach_named(copy, path)
    finally:
        os.close(copy)


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _touch(path: bytes) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o444))


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
