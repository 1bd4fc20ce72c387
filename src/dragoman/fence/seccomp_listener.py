"""The host's end of the filter: system calls that wait for an answer, and what they are about.

What a call names is read from the memory of its caller, which may change it afterwards: an answer
that lets the kernel continue is about what was read, and not about what is done. Only a descriptor
that we opened ourselves is certain. Reading may wait for as long as the caller likes, whose memory
may be a file of its own making: nothing here is for an event loop.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import select
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from dragoman.fence import seccomp
from dragoman.fence.caller_memory import CallerMemory

_NOTICE = struct.Struct("QIIiIQ6Q")
_REPLY = struct.Struct("QqiI")
_HAND_OVER = struct.Struct("QIIII")
_CONTINUE, _AND_REPLY = 1, 2
_LONGEST_PATH = 4096
_AT_FDCWD = -100
_EMPTY_PATH = 0x1000


def _request(number: int, size: int, *, both: bool = False) -> int:
    """The number of an ioctl that takes, and with `both` also fills, so many bytes."""
    return ((3 if both else 1) << 30) | (size << 16) | (ord("!") << 8) | number


_RECEIVE = _request(0, _NOTICE.size, both=True)
_SEND = _request(1, _REPLY.size, both=True)
_STILL_WAITS = _request(2, 8)
_ADD_DESCRIPTOR = _request(3, _HAND_OVER.size)
_SET_FLAGS = _request(4, 8)
_SYNCHRONOUS = 1
_RECEIVING_ENDS = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 11)
"""Whether the kernel says so, to who waits for the next call, that nobody is left to make one."""
_NAMES = {
    (architecture, number): name
    for architecture, numbers in seccomp.NUMBERS.items()
    for name, number in numbers.items()
}


class Call(NamedTuple):
    """A system call that waits; its process is known by our numbers."""

    id: int
    pid: int
    name: str
    arguments: Sequence[int]
    pointer: int
    """How many bytes an address has for the caller."""


class Gone(Exception):
    """Who called does not wait any longer."""


class Listener:
    """Owns a listener, as the kernel gave it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory = CallerMemory()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        with suppress(OSError):  # since Linux 6.6: the one who waits runs next, on the same core
            fcntl.ioctl(descriptor, _SET_FLAGS, _SYNCHRONOUS)

    def calls(self) -> Iterator[Call]:
        """Each call as it comes, until nobody is left who could make one."""
        looked = False
        while looked or self._poll.poll()[0][1] & select.POLLIN:
            try:
                call = self._receive()
            except (FileNotFoundError, InterruptedError):
                looked = False  # it was killed meanwhile, or was the last one
            else:
                looked = _RECEIVING_ENDS
                yield call

    def _receive(self) -> Call:
        data = bytearray(_NOTICE.size)
        fcntl.ioctl(self._descriptor, _RECEIVE, data)
        identity, pid, _, number, architecture, _, *arguments = _NOTICE.unpack(data)
        name = _NAMES.get((architecture, number), "")
        return Call(identity, pid, name, arguments, 8 if architecture >> 31 else 4)

    def let_through(self, call: Call) -> None:
        self._reply(call, 0, _CONTINUE)

    def refuse(self, call: Call, error: int = errno.EACCES) -> None:
        self._reply(call, -error, 0)

    def _reply(self, call: Call, error: int, flags: int) -> None:
        try:
            fcntl.ioctl(self._descriptor, _SEND, _REPLY.pack(call.id, 0, error, flags))
        except OSError:
            return  # it was killed meanwhile

    def hand_over(self, call: Call, descriptor: int, *, close_on_exec: bool) -> None:
        """Answer with a descriptor of ours, of which the caller gets a copy."""
        flags = os.O_CLOEXEC if close_on_exec else 0
        with suppress(OSError):  # it was killed meanwhile, or has no number free
            fcntl.ioctl(
                self._descriptor,
                _ADD_DESCRIPTOR,
                _HAND_OVER.pack(call.id, _AND_REPLY, descriptor, 0, flags),
            )
            return
        self.refuse(call, errno.EMFILE)

    def check(self, call: Call) -> None:
        """To be called after a look at the caller, which might be another process by the same
        number otherwise. Raises Gone."""
        try:
            fcntl.ioctl(self._descriptor, _STILL_WAITS, call.id.to_bytes(8, "little"))
        except OSError:
            raise Gone from None

    # ── what a call is about ──────────────────────────────────────────────────────────────────

    # None of it is certain before `check`: the caller may be gone, and its number another's.

    def program(self, call: Call, most: int) -> tuple[str, list[str], bool]:
        """The file that is about to be run, its arguments, and whether these are all: no more than
        `most` characters. Raises Unreadable."""
        self._memory.turn_to(call.pid, call.pointer)
        at = call.name == seccomp.EXECVEAT
        path = self._path(call, call.arguments[1 if at else 0], at=at)
        words, whole = self._memory.words(call.arguments[2 if at else 1], most)
        return path, list(map(_shown, words)), whole

    def opened(self, call: Call) -> tuple[str, int, int]:
        """The file to open, by its absolute name, the flags and the mode. Raises Unreadable."""
        name, given = call.name, call.arguments
        self._memory.turn_to(call.pid, call.pointer)
        at = name in (seccomp.OPENAT, seccomp.OPENAT2)
        path = self._path(call, given[1 if at else 0], at=at)
        match name:
            case seccomp.CREAT:
                flags, mode = os.O_CREAT | os.O_WRONLY | os.O_TRUNC, given[1]
            case seccomp.OPENAT2:
                how = self._memory.read(given[2], 16)
                flags, mode = struct.unpack("QQ", how.ljust(16, b"\0"))
            case _:
                flags, mode = given[2 if at else 1], given[3 if at else 2]
        return path, flags & 0xFFFFFFFF, mode & 0o7777

    def folder(self, call: Call) -> str:
        """Where the caller is, to be shown. Raises Gone."""
        folder = _link(call.pid, "cwd")
        self.check(call)
        return _shown(os.fsencode(folder))

    def _path(self, call: Call, address: int, *, at: bool) -> str:
        """Absolute, by its letters."""
        path = os.fsdecode(self._memory.text(address, _LONGEST_PATH))
        if path.startswith("/"):
            return path
        descriptor = call.arguments[0] & 0xFFFFFFFF
        descriptor -= (descriptor >> 31) << 32
        here = not at or descriptor == _AT_FDCWD
        place = _link(call.pid, "cwd" if here else f"fd/{descriptor}")
        return os.path.join(place, path) if path else place

    def close(self) -> None:
        os.close(self._descriptor)


def let_all_through(descriptor: int, _argv: Sequence[str] = (), _cwd: str = "") -> None:
    """Own a listener, and let everything through that it asks about."""
    listener = Listener(descriptor)

    def serve() -> None:
        for call in listener.calls():
            listener.let_through(call)
        listener.close()

    threading.Thread(target=serve, name=f"gate-{descriptor}", daemon=True).start()


def _shown(name: bytes) -> str:
    """Names of files and words of programs may be any bytes; what is stored is text."""
    return name.decode(errors="replace")


def _link(pid: int, name: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""
