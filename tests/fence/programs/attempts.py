"""What attempts to get out of a fence share: where things are, and how one is made and told.

A program of them is called with a playground, the numbers of the host and of another process, and
the name of a terminal; names of attempts may follow. Each runs in a fork and prints `NAME escaped`
or `NAME held REASON`. Without a fence around it, each must succeed, or it proves nothing; one that
cannot be tried here at all prints `NAME impossible`. Nothing that succeeds does harm outside the
playground.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable

P, HOST, VICTIM, TERMINAL = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
WS, HOME, DATA, OUT = f"{P}/ws", f"{P}/home", f"{P}/data", f"{P}/outside"
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NEWNS, NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC = 1, 32, 4096, 16384

ESCAPES: dict[str, Callable[[], None]] = {}
FOR_ROOT: set[str] = set()
"""Attempts that only root can make."""
FOR_USERS: set[str] = set()


def inherited() -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue  # the one that listed the folder
        found.append(int(name))
    return [descriptor for descriptor in found if descriptor > 2]


INHERITED = inherited()


class Impossible(Exception):
    """It cannot be tried on this machine."""


class Held(Exception):
    """It did not work, without an error."""


def escape(work: Callable[[], None]) -> Callable[[], None]:
    ESCAPES[work.__name__] = work
    return work


def root_only(work: Callable[[], None]) -> Callable[[], None]:
    FOR_ROOT.add(work.__name__)
    return escape(work)


def user_only(work: Callable[[], None]) -> Callable[[], None]:
    FOR_USERS.add(work.__name__)
    return escape(work)


def checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def call(number: int, *words: object) -> int:
    return checked(
        libc.syscall(*[ctypes.c_long(w) if isinstance(w, int) else w for w in (number, *words)])
    )


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    checked(
        libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode() or None)
    )


def nested() -> None:
    """Every right again, in namespaces inside the namespaces."""
    user, group = os.geteuid(), os.getegid()
    checked(libc.unshare(NEWUSER | NEWNS))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"0 {user} 1"),
        ("gid_map", f"0 {group} 1"),
    ):
        put(f"/proc/self/{name}", text)


def put(path: str, text: str = "escaped\n", flags: int = os.O_WRONLY) -> None:
    file = os.open(path, flags)
    os.write(file, text.encode())
    os.close(file)


def new(path: str) -> None:
    put(path, flags=os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.unlink(path)


def secret(path: str) -> None:
    with open(path) as file:
        if "secret" not in file.read():
            raise Held("it is empty")


def shell(line: str) -> None:
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    if done.returncode:
        raise Held(done.stderr.decode(errors="replace").strip()[-200:])


def reach(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(path)


def attempt(name: str, work: Callable[[], None]) -> str:
    if name in (FOR_ROOT if os.geteuid() else FOR_USERS):
        return "impossible: for another user"
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.write(writer, outcome(work).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(pid, 0)
    return said or "held: it was killed"


def outcome(work: Callable[[], None]) -> str:
    try:
        work()
    except Impossible as error:
        return f"impossible: {error}"
    except OSError as error:
        return f"held: {errno.errorcode.get(error.errno or 0, '?')} {error}"
    except Held as error:
        return f"held: {error}"
    return "escaped"


def make_all(names: Iterable[str] = ()) -> None:
    for name in names or ESCAPES:
        said = attempt(name, ESCAPES[name]).replace("\n", " ")
        os.write(1, f"{name} {said}\n".encode())
