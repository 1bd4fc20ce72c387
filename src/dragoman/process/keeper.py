"""The keeper: one small process per child, which ends the child's whole tree.

It is forked by the zygote, adopts every orphan of the tree (subreaper), reports on the life
socket and takes orders from it. When that socket closes, for whatever reason, when no other
helper is left above it, or anything goes wrong here, all descendants are stopped and killed. It
knows nothing of the host but the socket.

Reports: `kept KEEPER`, then `started PID` or `failed STEP ERRNO`, then `exited CODE` or
`signalled NUMBER`, then `gone`: nothing is left. A stream that ends without it is the word of a
keeper that was killed. Orders: `signal NUMBER`, `end`.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import select
from _socket import socket  # the public modules cost more at import than all the rest

from .helper_watch import KEEPER, is_helper
from .process_tree import OwnChildren, end_tree, signal_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Sequence
else:
    import _signal as signal

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_CLOCK_MONOTONIC = 1
_CONTINUE_SECONDS = 3
_EXEC_LOOK_SECONDS = 0.25

# To end the tree, end the host.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_libc = ctypes.CDLL(None, use_errno=True)
_prctl: Callable[..., int] = _libc.prctl

# What the host asks for: paths to try, argv, environment, working directory, controlling tty.
Order = tuple[list[bytes], list[bytes], dict[bytes, bytes], bytes, bool]


def become_helper(name: bytes) -> None:
    """Make this process the parent of every orphan below it, and hard to get out of the way."""
    adopt_orphans()
    # Should a program have stopped it, the kernel itself continues it when its parent ends, and
    # every few seconds: nobody else may be left to do so.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    _continue_every(_CONTINUE_SECONDS)
    # A program of the same user cannot trace it.
    _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _prctl(_PR_SET_NAME, name, 0, 0, 0)
    _show_as(name)


def adopt_orphans() -> None:
    """Become a subreaper. Raises OSError where the system has none."""
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no subreaper")


class _SignalEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("number", ctypes.c_int),
        ("how", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    )


def _continue_every(seconds: int) -> None:
    """Have a timer send SIGCONT, which is the one signal that a stopped process takes."""
    timer = ctypes.c_void_p()
    event = _SignalEvent(number=signal.SIGCONT)
    times = (ctypes.c_long * 4)(seconds, 0, seconds, 0)  # the interval, and the first time
    try:
        if not _libc.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)):
            _libc.timer_settime(timer, 0, ctypes.byref(times), None)
    except AttributeError:
        return  # an older C library has them elsewhere


_command_line: list[int] = []
"""Where in memory the command line begins and ends, once known; forks have it too."""


def _show_as(name: bytes) -> None:
    """Replace the command line, so that `pkill -f python` does not mean us."""
    if not _command_line:
        with open("/proc/self/stat", "rb") as stat:
            _command_line[:] = map(int, stat.read().rpartition(b")")[2].split()[45:47])
    start, end = _command_line
    if 0 < start < end - len(name):
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, name, len(name))


def wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends or stops, or the parent has ended."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    for number in (signal.SIGCHLD, signal.SIGCONT):
        signal.signal(number, _no_action)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _no_action(_number: int, _frame: object) -> None:
    """A handler of Python's, so that the signal reaches the wake-up descriptor."""


def clear(wake: int) -> None:
    """Forget the wake-ups so far."""
    try:
        while os.read(wake, 4096):
            pass
    except BlockingIOError:
        return


def readable(descriptors: list[int], seconds: float | None = None) -> list[int]:
    """Wait until one of them can be read, or the time is over; which can."""
    # Unlike poll(), which fails when a program has taken our right to descriptors.
    return select.select(descriptors, (), (), seconds)[0]


def close_all_but(kept: Iterable[int]) -> None:
    """Close every descriptor but the standard ones and `kept`."""
    spared = {0, 1, 2, *kept}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in spared:
            try:
                os.close(int(name))
            except OSError:  # the one that listed the folder
                continue


def keep(life: socket, order: int, stdio: Sequence[int]) -> None:
    """Run the ordered program until it and all its descendants are gone."""
    close_all_but([life.fileno(), order, *stdio])
    become_helper(KEEPER)
    own = OwnChildren()
    keeper = Keeper(life)
    try:
        keeper.start(_read_order(order), stdio)
        keeper.watch()
    finally:
        end_tree(own, lambda: not keeper.reap())
    keeper.report("gone")


class Keeper:
    """The state of one keeper: its life socket and the program it started."""

    def __init__(self, life: socket) -> None:
        self._life = life
        self._main = 0
        self._wake = wake_on_child()

    def start(self, order: Order, stdio: Sequence[int]) -> None:
        """Fork and exec the program; report its pid, or the step that failed."""
        keeper = os.getpid()
        self.report(f"kept {keeper}")
        failure, report = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            self.report(f"failed fork {error.errno}")
            return
        if pid == 0:
            _become(order, stdio, keeper, report)
        for handed_over in (report, *stdio):
            os.close(handed_over)
        self._await_exec(pid, failure)
        failed = os.read(failure, 64)
        os.close(failure)
        if failed:
            self.report(f"failed {failed.decode()}")
        else:
            self._main = pid
            self.report(f"started {pid}")

    def _await_exec(self, pid: int, failure: int) -> None:
        """Wait until the fork has become the program, or says why not.

        Another program may have stopped it: it continues. When nobody needs it, it ends.
        """
        watched = [failure, self._life.fileno(), self._wake]
        while failure not in (ready := readable(watched, _EXEC_LOOK_SECONDS)):
            if self._life.fileno() in ready:
                os.kill(pid, signal.SIGKILL)
                return
            if self._wake in ready:
                clear(self._wake)
            # Not waitpid(), which would take the news of its end as well.
            if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG):
                os.kill(pid, signal.SIGCONT)

    def watch(self) -> None:
        """Serve until the host wants the end, is gone, or nothing is left; or nobody is above us,
        who would end the tree if we were killed."""
        while self.reap() and _is_covered():
            ready = readable([self._wake, self._life.fileno()])
            if self._wake in ready:
                clear(self._wake)
            if self._life.fileno() in ready and not self._obey():
                return

    def reap(self) -> bool:
        """Collect the dead; whether a child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._main:
                    self._main = 0  # the number may come back, in a descendant
                    self._report_end(os.waitstatus_to_exitcode(status))
        except ChildProcessError:
            return False

    def _obey(self) -> bool:
        try:
            order = self._life.recv(64).split()
        except OSError:
            # A host killed with reports unread resets the socket instead of ending it.
            return False
        if len(order) != 2 or order[0] != b"signal":
            return False
        number = int(order[1])
        if number == signal.SIGKILL:
            return False
        signal_tree(os.getpid(), number)
        return True

    def _report_end(self, code: int) -> None:
        self.report(f"exited {code}" if code >= 0 else f"signalled {-code}")

    def report(self, line: str) -> None:
        try:
            self._life.send(line.encode())
        except OSError:
            return  # nobody listens; the next look at the socket says so


def _is_covered() -> bool:
    return is_helper(os.getppid(), os.getsid(0))


def _read_order(order: int) -> Order:
    os.lseek(order, 0, os.SEEK_SET)
    data = b"".join(iter(lambda: os.read(order, 1 << 20), b""))
    os.close(order)
    return marshal.loads(data)


def _become(order: Order, stdio: Sequence[int], keeper: int, report: int) -> None:
    """Turn this fresh fork into the program; never returns."""
    step = "start"
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)  # the keeper died before its death could be noticed
        os.setsid()
        paths, argv, environment, directory, tty = order
        for number, descriptor in enumerate(stdio):
            os.dup2(descriptor, number)
        step = "tty"
        if tty:
            _take_terminal()
        step = "cwd"
        os.chdir(directory)
        step = "exec"
        _default_signals()
        _exec_first(paths, argv, environment)
    except OSError as error:
        os.write(report, f"{step} {error.errno}".encode())
    except (ValueError, StopIteration):
        os.write(report, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _take_terminal() -> None:
    import fcntl
    import termios

    terminal = next(number for number in (0, 1, 2) if os.isatty(number))
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _default_signals() -> None:
    # What is ignored stays so in a new program; handlers do not.
    for number in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _exec_first(paths: list[bytes], argv: list[bytes], environment: dict[bytes, bytes]) -> None:
    refused: OSError = FileNotFoundError(2, "not found")
    for path in paths:
        try:
            os.execve(path, argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            refused = error  # as a shell does: a later folder of PATH may have a better one
    raise refused
