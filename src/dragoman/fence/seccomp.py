"""Filters of system calls, around a program and its descendants.

Installed between fork and exec, in the program-to-be. One makes the kernel ask us: the *listener*
that comes of it goes to the host, which answers for each call. Starting a program is always asked
about, opening a file for writing if the plan says so. The other refuses sockets of a kind that no
network namespace governs. Programs of the machine's older, narrower kind meet both.
"""

from __future__ import annotations

import errno
import os
import struct

from . import kernel_calls as calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXECVE, EXECVEAT, OPEN, OPENAT, OPENAT2, CREAT = (
    "execve",
    "execveat",
    "open",
    "openat",
    "openat2",
    "creat",
)
_SOCKET, _RING = "socket", "io_uring_setup"
_SOCKETCALL = "socketcall"
"""The narrow kind's one call for everything about sockets; its first argument is what to do."""
_GENERIC = {EXECVE: 221, EXECVEAT: 281, OPENAT: 56, OPENAT2: 437}
# The numbers of the calls by the kernel's word for an architecture.
NUMBERS: dict[int, dict[str, int]] = {
    0xC000003E: {EXECVE: 59, EXECVEAT: 322, OPEN: 2, OPENAT: 257, OPENAT2: 437, CREAT: 85},
    0x40000003: {EXECVE: 11, EXECVEAT: 358, OPEN: 5, OPENAT: 295, OPENAT2: 437, CREAT: 8},
    0xC00000B7: _GENERIC,
    0x40000028: {EXECVE: 11, EXECVEAT: 387, OPEN: 5, OPENAT: 322, OPENAT2: 437, CREAT: 8},
    0xC00000F3: _GENERIC,
}
_X86_64 = 0xC000003E
_SOCKETS: dict[int, dict[str, int]] = {
    0xC000003E: {_SOCKET: 41, _RING: 425},
    0x40000003: {_SOCKET: 359, _SOCKETCALL: 102, _RING: 425},
    0xC00000B7: {_SOCKET: 198, _RING: 425},
    0x40000028: {_SOCKET: 281, _RING: 425},
    0xC00000F3: {_SOCKET: 198, _RING: 425},
}
_UNIX, _INET, _INET6, _NETLINK, _PACKET = 1, 2, 10, 16, 17
OF_A_NETWORK: tuple[int, ...] = (_UNIX, _INET, _INET6, _NETLINK, _PACKET)
"""The kinds of sockets that a network namespace, or the fence, keeps inside."""
OF_NO_NETWORK: tuple[int, ...] = (_UNIX, _NETLINK)
_MAKE_SOCKET = 1
_BY_MACHINE = {
    "x86_64": (_X86_64, 0x40000003),
    "aarch64": (0xC00000B7, 0x40000028),
    "riscv64": (0xC00000F3,),
}
_WIDE = 0x40000000
"""Numbers from here on are those of x32 programs, which take wide pointers for narrow ones."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ASK, _FAIL = 0x7FFF0000, 0x7FC00000, 0x00050000
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5


def install(*, writes: bool) -> int:
    """Have the kernel ask about this process; the listener. Raises OSError: EBUSY where there is
    one already."""
    program = _ASKING[writes]
    try:
        # Who waits for an answer is not disturbed by signals other than the one that kills it.
        return calls.install_filter(program, _NEW_LISTENER | _WAIT_KILLABLE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return calls.install_filter(program, _NEW_LISTENER)


def close_sockets(kinds: tuple[int, ...]) -> None:
    """Let nobody here make a socket of another kind. Raises OSError.

    Rings make sockets without the call that is looked at, so there are none."""
    calls.install_filter(_CLOSING[kinds], 0)


def _program(section: Callable[[int], Iterator[bytes]]) -> bytes:
    """Each architecture of this machine has its section, for which a number is loaded."""
    steps = [_step(_LOAD, _ARCHITECTURE)]
    for architecture in _BY_MACHINE.get(os.uname().machine, ()):
        inner = [_step(_LOAD, _NUMBER), *section(architecture), _step(_RETURN, _ALLOW)]
        if architecture == _X86_64:
            refused = _step(_RETURN, _FAIL | errno.ENOSYS)
            inner[1:1] = [_step(_AT_LEAST, _WIDE, missed=1), refused]
        steps += [_step(_EQUAL, architecture, missed=len(inner)), *inner]
    return b"".join((*steps, _step(_RETURN, _ALLOW)))


def _asked(numbers: dict[str, int], *, writes: bool) -> Iterator[bytes]:
    asked = [EXECVE, EXECVEAT, *([CREAT, OPENAT2] if writes else [])]
    for name in filter(numbers.__contains__, asked):
        yield _step(_EQUAL, numbers[name], missed=1)
        yield _step(_RETURN, _ASK)
    for name, place in ((OPENAT, 2), (OPEN, 1)) if writes else ():
        if name in numbers:
            yield _step(_EQUAL, numbers[name], missed=4)
            yield _step(_LOAD, _ARGUMENTS + 8 * place)
            yield _step(_ANY_BIT, WRITES, missed=1)
            yield _step(_RETURN, _ASK)
            yield _step(_RETURN, _ALLOW)


def _sockets(numbers: dict[str, int], kinds: tuple[int, ...]) -> Iterator[bytes]:
    yield _step(_EQUAL, numbers[_RING], missed=1)
    yield _step(_RETURN, _FAIL | errno.ENOSYS)
    if _SOCKETCALL in numbers:  # its arguments are in memory, where no filter sees them
        yield _step(_EQUAL, numbers[_SOCKETCALL], missed=4)
        yield _step(_LOAD, _ARGUMENTS)
        yield _step(_EQUAL, _MAKE_SOCKET, missed=1)
        yield _step(_RETURN, _FAIL | errno.ENOSYS)
        yield _step(_RETURN, _ALLOW)
    yield _step(_EQUAL, numbers[_SOCKET], missed=2 + 2 * len(kinds))
    yield _step(_LOAD, _ARGUMENTS)
    for kind in kinds:
        yield _step(_EQUAL, kind, missed=1)
        yield _step(_RETURN, _ALLOW)
    yield _step(_RETURN, _FAIL | errno.EAFNOSUPPORT)


def _step(code: int, value: int, *, missed: int = 0) -> bytes:
    """One instruction; `missed` is how many to skip if the comparison fails."""
    return struct.pack("HBBI", code, 0, missed, value)


# Made once, in the helper that all programs are forked from: there is little time between fork and
# exec.
_ASKING = {
    writes: _program(lambda each, writes=writes: _asked(NUMBERS[each], writes=writes))
    for writes in (False, True)
}
_CLOSING: dict[tuple[int, ...], bytes] = {
    kinds: _program(lambda each, kinds=kinds: _sockets(_SOCKETS[each], kinds))
    for kinds in (OF_A_NETWORK, OF_NO_NETWORK)
}
