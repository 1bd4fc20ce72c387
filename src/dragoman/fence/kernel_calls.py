"""The system calls of a fence, by ctypes: Python has no names for them.

Each raises OSError. Nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import os
from itertools import repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Of the architectures that Linux has numbered alike since 2011, and of the one before them.
_NUMBERS = {
    "x86_64": {"clone": 56, "keyctl": 250, "seccomp": 317},
    "aarch64": {"clone": 220, "keyctl": 219, "seccomp": 277},
    "riscv64": {"clone": 220, "keyctl": 219, "seccomp": 277},
}
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
"""The same as mount flags and as mount attributes."""
_MS_REC, _MS_PRIVATE = 16384, 1 << 18
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_CLONE_TREE = 1
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS = 0x02, 0x04
_FROM_HERE, _TO_HERE = 0x04, 0x40
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 24, 38, 47, 4
_JOIN_SESSION_KEYRING = 1
_CAPABILITY_VERSION = 0x20080522
_SET_FILTER = 1
_SIGCHLD = 17
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1

# Holds the interpreter's lock during a call: after `clone`, nobody else could hand it over.
_libc = ctypes.PyDLL(None, use_errno=True)


def _declared(*kinds: type) -> Callable[..., int]:
    """The system call with arguments of these kinds: converting them is quicker that way."""
    function = _libc["syscall"]
    function.restype = ctypes.c_long
    function.argtypes = (ctypes.c_long, *kinds)
    return function


_numbers = _declared(*[ctypes.c_long] * 5)
_open_at = _declared(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_open_tree = _declared(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
_move = _declared(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
_set_attributes = _declared(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t
)
_create_ruleset = _declared(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
_add_rule = _declared(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint)
_set_filter = _declared(ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p)
_prctl: Callable[..., int] = _libc["prctl"]
_prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)  # pyright: ignore[reportFunctionMemberAccess]

_NO_LINKS = _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
_how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, _NO_LINKS)
_HOW = ctypes.addressof(_how)
_Attributes = ctypes.c_uint64 * 4


def supported() -> bool:
    """Whether we know the numbers of this machine's system calls."""
    return os.uname().machine in _NUMBERS


def clone(flags: int) -> int:
    """Fork into new namespaces; as `os.fork`, for a process with one thread."""
    return _checked(_numbers(_number("clone"), flags | _SIGCHLD, 0, 0, 0, 0))


def unshare(kinds: int) -> None:
    """Leave the namespaces of these kinds for new ones; for a process with one thread."""
    _checked(_libc.unshare(kinds))


def join(descriptor: int, kind: int) -> None:
    """Enter the namespace that is open there."""
    _checked(_libc.setns(descriptor, kind))


def bring_up(any_socket: int, interface: bytes) -> None:
    """Have a network interface carry packets, in the namespace of the socket."""
    flags = bytes(ctypes.c_short(_IFF_UP))
    request = ctypes.create_string_buffer(interface.ljust(16, b"\0") + flags, 40)
    _checked(_libc.ioctl(any_socket, _SIOCSIFFLAGS, request))


def make_private() -> None:
    """Let no mount of this namespace be seen elsewhere, nor one made elsewhere be seen here."""
    _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))


def mount(kind: bytes, path: bytes, flags: int = 0, options: bytes = b"") -> None:
    """Mount a new file system without a device."""
    _checked(_libc.mount(kind, path, kind, flags, options))


def open_place(path: bytes) -> int:
    """A descriptor that names a file or folder; raises if any component is a link."""
    return _checked(_open_at(_OPENAT2, _AT_FDCWD, path, _HOW, 24))


def open_exactly(path: bytes, flags: int, mode: int) -> int:
    """Open a file; raises if any component is a link."""
    how = (ctypes.c_uint64 * 3)(flags, mode if flags & os.O_CREAT else 0, _NO_LINKS)
    return _checked(_open_at(_OPENAT2, _AT_FDCWD, path, ctypes.addressof(how), 24))


def copy_tree(place: int) -> int:
    """A copy of what is mounted at and below a place, attached nowhere."""
    flags = _CLONE_TREE | os.O_CLOEXEC | _AT_EMPTY_PATH | _AT_RECURSIVE
    return _checked(_open_tree(_OPEN_TREE, place, b"", flags))


def copy_named(path: bytes) -> int:
    """The same by its name, in folders that nobody else can change: there is no need to look."""
    flags = _CLONE_TREE | os.O_CLOEXEC | _AT_RECURSIVE
    return _checked(_open_tree(_OPEN_TREE, _AT_FDCWD, path, flags))


def attach(tree: int, place: int) -> None:
    """Mount a copied tree over a place."""
    _checked(_move(_MOVE_MOUNT, tree, b"", place, b"", _FROM_HERE | _TO_HERE))


def attach_named(tree: int, path: bytes) -> None:
    """The same by its name, in folders that nobody else can change."""
    _checked(_move(_MOVE_MOUNT, tree, b"", _AT_FDCWD, path, _FROM_HERE))


def restrict_mounts(place: int | bytes, attributes: int, *, beneath: bool = True) -> None:
    """Set attributes such as RDONLY of what is mounted there, and of everything beneath it."""
    attr = ctypes.byref(_Attributes(attributes, 0, 0, 0))
    flags = _AT_RECURSIVE if beneath else 0
    if isinstance(place, int):
        flags |= _AT_EMPTY_PATH
        _checked(_set_attributes(_MOUNT_SETATTR, place, b"", flags, attr, 32))
    else:
        _checked(_set_attributes(_MOUNT_SETATTR, _AT_FDCWD, place, flags, attr, 32))


def drop_privileges() -> None:
    """Give up every capability, here and in every program to come, also for the user root."""
    # Until the kernel knows no more. Without a loop of Python's, which takes twice as long.
    any(map(_prctl, repeat(_PR_CAPBSET_DROP), range(64), *[repeat(0)] * 3))
    _checked(_prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0))
    _checked(_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())))


def leave_keyring() -> None:
    """Let go of the keys that the kernel holds for the session of the user."""
    try:
        _checked(_numbers(_number("keyctl"), _JOIN_SESSION_KEYRING, 0, 0, 0, 0))
    except OSError:
        return  # a kernel without keys, or a filter around us that refuses all of them


def landlock_version() -> int:
    """0 where the kernel has none."""
    try:
        return _checked(_create_ruleset(_LANDLOCK_CREATE, None, 0, 1))
    except OSError:
        return 0


def landlock_ruleset(files: int, scoped: int) -> int:
    """A ruleset that governs these rights to files; `scoped` needs version 6."""
    attr = (ctypes.c_uint64 * 3)(files, 0, scoped)
    size = 24 if scoped else 8
    return _checked(_create_ruleset(_LANDLOCK_CREATE, ctypes.byref(attr), size, 0))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("place", ctypes.c_int32))


def landlock_allow(ruleset: int, place: int, rights: int) -> None:
    """Allow these rights to a file, or to everything beneath a folder."""
    beneath = _PathBeneath(rights, place)
    _checked(_add_rule(_LANDLOCK_ADD, ruleset, 1, ctypes.byref(beneath), 0))


def landlock_enter(ruleset: int) -> None:
    """From now on only what the ruleset allows; privileges must have been dropped."""
    _checked(_numbers(_LANDLOCK_RESTRICT, ruleset, 0, 0, 0, 0))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def install_filter(program: bytes, flags: int) -> int:
    """Have the kernel judge every later system call by a program of 8-byte steps; the listener, if
    the flags ask for one. Privileges must have been dropped."""
    steps = ctypes.create_string_buffer(program, len(program))
    described = _Filter(len(program) // 8, ctypes.addressof(steps))
    return _checked(_set_filter(_number("seccomp"), _SET_FILTER, flags, ctypes.byref(described)))


def _number(name: str) -> int:
    return _NUMBERS[os.uname().machine][name]


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
