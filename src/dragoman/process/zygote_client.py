"""The host's side of the zygote: started on first use, and replaced if it dies.

It inherits the host's user, groups and umask; when those have changed since, or the host has
forked, it is replaced as well. Several threads, each with its loop, may use it at once. A thread
watches over it: a stopped zygote continues, a dead one is reaped.
"""

from __future__ import annotations

import array
import contextlib
import errno
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence

from dragoman.process import descriptors, helper_watch, inherited_limits, process_tree

# The zygote imports its modules from our folder into a package that is empty otherwise, so that it
# neither looks for installed packages nor imports more of ours.
BOOT = (
    "import sys; ours = sys.modules['dragoman'] = type(sys)('dragoman'); "
    "ours.__path__ = sys.argv[1:2]; from dragoman.process.zygote import main; main(*sys.argv[2:])"
)

Origin = tuple[object, ...]

Progress = tuple[bool, bool, list[bytes]]
"""Whether a zygote is held, whether it is busy, and what it has done so far, to compare."""


# Between two looks at a zygote that is stopped repeatedly.
_HELD_SECONDS = 0.05


class ZygoteClient:
    """A running zygote with the warden above it: a socket that takes requests."""

    def __init__(self) -> None:
        self.origin = _origin()
        self.exit_code: int | None = None
        """How the warden ended, by Python's convention; None as long as it is not known."""
        control, theirs = descriptors.socketpair()
        self._control = control.detach()
        self._lock = threading.Lock()
        try:
            self.session = _start(theirs.fileno())
            """The warden's pid, which is the session of all helpers."""
        except BaseException:
            descriptors.close(self._control)
            raise
        finally:
            descriptors.close(theirs.detach())
        try:
            threading.Thread(target=self._watch, name="dragoman-watch", daemon=True).start()
        except RuntimeError as error:
            self._end()
            raise BlockingIOError(errno.EAGAIN, "no thread can be started") from error

    def request(self, descriptors: Sequence[int], what: bytes = b"run") -> None:
        """Hand over one life socket, order, and standard streams, or what another request needs.

        Raises BlockingIOError, and ConnectionError when the zygote has ended.
        """
        rights = array.array("i", descriptors)
        with self._lock:
            if self._control < 0:
                raise ConnectionError("the zygote was dismissed")
            control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, self._control)
            try:
                control.sendmsg([what], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            finally:
                control.detach()

    def progress(self) -> Progress:
        """How it and its keepers get on."""
        helpers = helper_watch.helpers(self.session)
        seen = [process_tree.state(pid) for pid in helpers]
        is_held = any(map(helper_watch.is_held, helper_watch.superiors(helpers)))
        is_busy = any(each.state == b"R" for each in seen)
        return is_held, is_busy, [field for each in seen for field in each.work]

    def resume(self) -> None:
        """Continue whatever is stopped of it and of its keepers."""
        for helper in helper_watch.helpers(self.session):
            helper_watch.resume(helper, self.session)

    def kill(self) -> None:
        """Kill it, as one that does not come to work; its keepers continue under the warden.

        What it was handed and has not read is closed with it, or a reader would wait forever.
        """
        for pid in helper_watch.superiors(helper_watch.helpers(self.session)):
            if pid != self.session:
                helper_watch.kill(pid, self.session)

    def close(self) -> None:
        with self._lock:
            control, self._control = self._control, -1
        if control >= 0:
            descriptors.close(control)

    def _end(self) -> None:
        self.close()
        helper_watch.kill(self.session, self.session)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.session, 0)

    def _watch(self) -> None:
        """Let the warden continue when a program has stopped it; it does so for the others."""
        stops = 0
        while (change := _await_change(self.session)) and change.si_code == os.CLD_STOPPED:
            stops += 1
            if stops > helper_watch.STOPS:
                self._relieve()
            helper_watch.resume(self.session, self.session)
        if change:
            exited = change.si_code == os.CLD_EXITED
            self.exit_code = change.si_status if exited else -change.si_status
        dismiss(self)

    def _relieve(self) -> None:
        time.sleep(_HELD_SECONDS)
        try:
            helper_watch.relieve(self.session)
        except OSError:
            return  # no descriptor is free to look around with; the next stop is another chance


def _await_change(child: int) -> os.waitid_result | None:
    """Wait until a child stops or ends, and is reaped then; how, or None if it is not known."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WSTOPPED)
    except ChildProcessError:
        return None  # someone reaps every child of this host


_lock = threading.Lock()
_current: ZygoteClient | None = None
_worked = False


def note_work() -> None:
    """A zygote has forked a keeper: this system can run one, whatever happens to the next."""
    global _worked
    _worked = True


def has_worked() -> bool:
    return _worked


def available() -> bool:
    """Whether this system and this Python can have a zygote at all."""
    if sys.platform != "linux" or getattr(sys, "frozen", False):
        return False
    # An application that embeds Python may be named here; it would start itself again.
    name = os.path.basename(sys.executable or "")
    return name.startswith(("python", "pypy"))


def zygote() -> ZygoteClient:
    """The zygote in service, started now if there is none.

    Raises NotImplementedError where this system cannot have one, and OSError.
    """
    global _current
    with _lock:
        if _current is not None and _current.origin != _origin():
            _dismiss(_current)
        if _current is None:
            _current = ZygoteClient()
        return _current


def dismiss(zygote: ZygoteClient) -> None:
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


def _dismiss(zygote: ZygoteClient) -> None:
    global _current
    if zygote is _current:
        _current = None
    zygote.close()


def _start(control: int) -> int:
    # Its own session: Ctrl-C at the terminal is for the host. No environment: it may hold keys.
    limit = descriptors.limit_for_children()
    command = [sys.executable, "-I", "-S", "-c", BOOT, os.path.dirname(os.path.dirname(__file__))]
    command += [
        "" if limit is None else str(limit),
        *inherited_limits.written(inherited_limits.traits(limit)),
    ]
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
    try:
        with open("/proc/self/status", "rb") as status:
            return next((line for line in status if line.startswith(b"Umask:")), b"")
    except FileNotFoundError:
        raise NotImplementedError("/proc is not mounted") from None


def _forget() -> None:
    """In a fork of the host, the zygote is not its child and the lock may be held by nobody."""
    global _lock, _current
    _lock = threading.Lock()
    _current = None


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)
