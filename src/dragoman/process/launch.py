"""The host's side of the zygote: started once, when first needed, and replaced when it died.

It inherits the host's user, groups and umask; when those have changed since, or the host has
forked, it is replaced as well. Several threads, each with its loop, may use it at once.
"""

from __future__ import annotations

import array
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence

from dragoman.process import descriptors, forks

# The zygote imports its modules from this folder under a name of their own, so that it neither
# looks for installed packages nor imports ours.
_BOOT = (
    "import sys; process = sys.modules['process'] = type(sys)('process'); "
    "process.__path__ = sys.argv[1:2]; from process.zygote import main; main(*sys.argv[2:])"
)

Origin = tuple[object, ...]


class Zygote:
    """A running zygote: a pid and the socket that takes requests."""

    def __init__(self) -> None:
        self.origin = _origin()
        control, theirs = forks.socketpair()
        self._control = control.detach()
        try:
            self.pid = _start(theirs.fileno())
        except BaseException:
            forks.close(self._control)
            raise
        finally:
            forks.close(theirs.detach())

    def request(self, descriptors: Sequence[int]) -> None:
        """Hand over one life socket, order, and standard streams."""
        rights = array.array("i", descriptors)
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, self._control)
        try:
            control.sendmsg([b"run"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        finally:
            control.detach()

    def close(self) -> None:
        forks.close(self._control)


_lock = threading.Lock()
_current: Zygote | None = None
_retired: list[int] = []


def available() -> bool:
    """Whether this system and this Python can have a zygote at all."""
    if sys.platform != "linux" or getattr(sys, "frozen", False):
        return False
    # An application that embeds Python may be named here; it would start itself again.
    name = os.path.basename(sys.executable or "")
    return name.startswith(("python", "pypy"))


def zygote() -> Zygote:
    """The zygote in service, started now if there is none."""
    global _current
    with _lock:
        if _current is not None and _current.origin != _origin():
            _dismiss(_current)
        if _current is None:
            reap()
            _current = Zygote()
        return _current


def dismiss(zygote: Zygote) -> None:
    """Stop using a zygote; the next request starts another."""
    with _lock:
        _dismiss(zygote)


def warm_up() -> None:
    """Start the zygote now, so that the first program need not wait for it."""
    if available():
        try:
            zygote()
        except OSError:
            return  # the first program will meet the same problem and say so


def _dismiss(zygote: Zygote) -> None:
    global _current
    if zygote is _current:
        _current = None
        zygote.close()
        _retired.append(zygote.pid)
    reap()


def reap() -> None:
    """Collect zygotes that have ended."""
    _retired[:] = [pid for pid in _retired if _still_runs(pid)]


def _still_runs(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False  # somebody reaps every child of this host


def _start(control: int) -> int:
    # Its own session: Ctrl-C at the terminal is for the host. No environment: it may hold keys.
    command = [sys.executable, "-I", "-S", "-c", _BOOT, os.path.dirname(__file__)]
    if (limit := descriptors.limit_for_children()) is not None:
        command.append(str(limit))
    library_path = os.environ.get("LD_LIBRARY_PATH")
    return os.posix_spawn(
        sys.executable,
        command,
        {} if library_path is None else {"LD_LIBRARY_PATH": library_path},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, control, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )


def _origin() -> Origin:
    if sys.platform != "linux":
        return ()
    return (os.getpid(), os.getresuid(), os.getresgid(), os.getgroups(), _umask())


def _umask() -> bytes:
    # os.umask() can only be read by changing it, for all threads.
    with open("/proc/self/status", "rb") as status:
        return next((line for line in status if line.startswith(b"Umask:")), b"")


def _forget() -> None:
    """In a fork of the host, the zygote is not its child and the lock may be held by nobody."""
    global _lock, _current
    _lock = threading.Lock()
    _current = None
    _retired.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)
