"""The keeper: one small process per child, which ends the child's whole tree.

It is forked by the zygote, adopts every orphan of the tree (subreaper), reports on the life
socket and takes orders from it. When that socket closes, for whatever reason, when no other
helper is left above it, or anything goes wrong here, all descendants are stopped and killed. It
knows nothing of the host but the socket.

Reports: `kept KEEPER`, then, from the program-to-be in a fence, `gate` with the listener of its
filter, then `started PID` or `failed STEP ERRNO`, then `exited CODE` or
`signalled NUMBER`, then `gone`: nothing is left. A stream that ends without it is the word of a
keeper that was killed. Orders: `signal NUMBER`, `end`.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import select
from _socket import (  # the public modules cost more at import than all the rest
    AF_UNIX,
    CMSG_SPACE,
    SCM_CREDENTIALS,
    SCM_RIGHTS,
    SO_PASSCRED,
    SOCK_SEQPACKET,
    SOL_SOCKET,
    socket,
    socketpair,
)

from dragoman.fence import first_process, landlock, network, seccomp
from dragoman.fence.plan import FencePlan

from .helper_watch import FENCE, KEEPER, is_helper
from .process_tree import OwnChildren, end_tree, signal_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Sequence

    from dragoman.fence.plan import Packed

    # What the host asks for: paths to try, argv, environment, working directory, whether to take
    # the controlling terminal, and the fence.
    Order = tuple[list[bytes], list[bytes], dict[bytes, bytes], bytes, bool, Packed | None]
else:
    import _signal as signal

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_CLOCK_MONOTONIC = 1
_CLOSE_RANGE = 436
"""The number of the system call, on every architecture."""
_NO_DESCRIPTOR = 1 << 31
_CONTINUE_SECONDS = 3
_EXEC_LOOK_SECONDS = 0.25

# To end the tree, end the host.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_libc = ctypes.CDLL(None, use_errno=True)
_prctl: Callable[..., int] = _libc.prctl


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
    numbers = sorted(spared)
    for below, above in zip(numbers, (*numbers[1:], _NO_DESCRIPTOR), strict=True):
        if above - below > 1 and _libc.syscall(_CLOSE_RANGE, below + 1, above - 1, 0):
            _close_listed(spared)  # a kernel before 5.9, or a filter around us
            return


def _close_listed(spared: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in spared:
            try:
                os.close(int(name))
            except OSError:  # the one that listed the folder
                continue


def make_network(out: int, ports: Sequence[int]) -> None:
    """Make the network of a fence, for the host."""
    close_all_but([out])
    _prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # as for process 1 of a fence
    network.make(out, ports)


def keep(life: socket, order: int, stdio: Sequence[int], spaces: Sequence[int] = ()) -> None:
    """Run the ordered program until it and all its descendants are gone; in the network whose
    namespaces are given."""
    close_all_but([life.fileno(), order, *stdio, *spaces])
    become_helper(KEEPER)
    own = OwnChildren()
    keeper = Keeper(life, spaces)
    try:
        keeper.start(_read_order(order), stdio)
        keeper.watch()
    finally:
        end_tree(own, lambda: not keeper.reap())
    keeper.report("gone")


class Keeper:
    """The state of one keeper: its life socket and the program it started."""

    def __init__(self, life: socket, spaces: Sequence[int] = ()) -> None:
        self._life = life
        self._spaces = spaces
        self._main = 0
        self._fence: Inside | None = None
        self._is_told = False
        """Whether the first process in the fence has said how the program ended."""
        self._wake = wake_on_child()

    def start(self, order: Order, stdio: Sequence[int]) -> None:
        """Fork and exec the program; report its pid, or the step that failed."""
        keeper = os.getpid()
        self.report(f"kept {keeper}")
        failure, report = os.pipe()
        fence = Inside() if is_fenced(order) else None
        # Entered out here: one that is named by a descriptor of the host is out of reach inside,
        # and also from the user namespace of a network.
        problem = 0 if fence is None else _entered(order[3])
        try:
            if self._spaces:
                self._join_network()
            if fence is None:
                pid = os.fork()
            else:
                pid = fence.fork(order, stdio, problem, report, self._life)
        except OSError as error:
            self.report(f"failed {'fork' if fence is None else 'fence'} {error.errno}")
            return
        if pid == 0:
            _become(order, stdio, keeper, report, self._life)
        for handed_over in (report, *stdio):
            os.close(handed_over)
        self._await_exec(pid, failure)
        failed = os.read(failure, 64)
        os.close(failure)
        if failed:
            self.report(f"failed {failed.decode()}")
            return
        self._main, self._fence = pid, fence
        if fence is not None:
            fence.hear()
            pid = fence.program or pid
        self.report(f"started {pid}")

    def _join_network(self) -> None:
        user, own = self._spaces
        network.join(user, own)
        for space in self._spaces:
            os.close(space)

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
            elif not ready:
                signal_tree(os.getpid(), signal.SIGCONT)  # in a fence it is further below

    def watch(self) -> None:
        """Serve until the host wants the end, is gone, or nothing is left; or nobody is above us,
        who would end the tree if we were killed."""
        while self.reap() and _is_covered():
            inside = [] if self._fence is None else self._fence.descriptors
            ready = readable([self._wake, self._life.fileno(), *inside])
            if self._wake in ready:
                clear(self._wake)
            self._hear_fence()
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
                    self._hear_fence()
                    if not self._is_told:
                        self._report_end(os.waitstatus_to_exitcode(status))
        except ChildProcessError:
            return False

    def _hear_fence(self) -> None:
        if self._fence is None:
            return
        self._fence.hear()
        if self._fence.ended and not self._is_told:
            self._is_told = True
            self.report(self._fence.ended)

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
        self.report(first_process.report_of(code))

    def report(self, line: str) -> None:
        try:
            self._life.send(line.encode())
        except OSError:
            return  # nobody listens; the next look at the socket says so


def is_fenced(order: Order) -> bool:
    """Whether the program gets namespaces of its own."""
    return order[-1] is not None and FencePlan.unpacked(order[-1]).way == "namespaces"


class Inside:
    """The keeper's side of a program in a fence: process 1 in there reports what it sees."""

    def __init__(self) -> None:
        ours, self._theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        ours.setsockopt(SOL_SOCKET, SO_PASSCRED, 1)
        ours.setblocking(False)
        self._status = ours
        self.program = 0
        """Its number out here."""
        self.ended = ""
        """How it ended, once it has."""

    @property
    def descriptors(self) -> list[int]:
        return [self._status.fileno()] if self._status.fileno() >= 0 else []

    def fork(
        self, order: Order, stdio: Sequence[int], problem: int, report: int, life: socket
    ) -> int:
        """Fork process 1, which never returns; `problem` is why the folder was not entered. Raises
        OSError where it cannot be had."""
        user = os.geteuid(), os.getegid()
        try:
            pid = first_process.fork()
        finally:
            if os.getpid() != 1:
                os.chdir("/")
        if pid == 0:
            self._status.close()
            _lead(order, stdio, user, problem, self._theirs, report, life)
        self._theirs.close()
        return pid

    def hear(self) -> None:
        """Read the reports so far."""
        while self.descriptors:
            try:
                data, control, _, _ = self._status.recvmsg(64, CMSG_SPACE(12))
            except BlockingIOError:
                return
            except OSError:
                data, control = b"", []
            if not data:
                self._status.close()
            elif data == b"program":
                self.program = _sender(control)
            elif data != b"here":
                self.ended = data.decode()


def _sender(control: list[tuple[int, int, bytes]]) -> int:
    """Who sent a message, in this process's numbers."""
    for level, kind, data in control:
        if (level, kind) == (SOL_SOCKET, SCM_CREDENTIALS):
            return memoryview(data).cast("i")[0]
    return 0


def _entered(directory: bytes) -> int:
    """Enter a folder; the number of the error, if there is one."""
    try:
        os.chdir(directory)
    except OSError as error:
        return error.errno or errno.EINVAL
    return 0


def _lead(
    order: Order,
    stdio: Sequence[int],
    user: tuple[int, int],
    problem: int,
    status: socket,
    report: int,
    life: socket,
) -> None:
    """Be process 1 of a fence; never returns."""
    step = "fence"
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # Otherwise the files that say who it is inside would belong to root.
        _prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGCONT):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        close_all_but([report, status.fileno(), life.fileno(), *stdio])
        _prctl(_PR_SET_NAME, FENCE, 0, 0, 0)
        _show_as(FENCE)
        status.send(b"here")  # raises if the keeper has gone
        paths, argv, environment, _, tty, packed = order
        assert packed is not None
        if problem:
            step = "cwd"
            raise OSError(problem, "the folder cannot be entered")
        plan = FencePlan.unpacked(packed)
        first_process.build(plan, user, _terminal(stdio) if tty else None)
        _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        step = "gate"
        if plan.gate:  # the host gets ready to answer while we fork
            _hand_over(seccomp.install(writes=plan.gate == "write"), life)
        step = "fence"
        pid = os.fork()
        if pid == 0:
            status.send(b"program")
            _become((paths, argv, environment, b".", tty, packed), stdio, 1, report, life)
        close_all_but([status.fileno()])
        first_process.bury(pid, status)
    except OSError as error:
        os.write(report, f"{step} {error.errno}".encode())
    finally:
        os._exit(0)


def _is_covered() -> bool:
    return is_helper(os.getppid(), os.getsid(0))


def _read_order(order: int) -> Order:
    os.lseek(order, 0, os.SEEK_SET)
    data = b"".join(iter(lambda: os.read(order, 1 << 20), b""))
    os.close(order)
    return marshal.loads(data)


def _become(order: Order, stdio: Sequence[int], keeper: int, report: int, life: socket) -> None:
    """Turn this fresh fork into the program; never returns."""
    step = "start"
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)  # the keeper died before its death could be noticed
        os.setsid()
        paths, argv, environment, directory, tty, packed = order
        for number, descriptor in enumerate(stdio):
            os.dup2(descriptor, number)
        step = "tty"
        if tty:
            _take_terminal()
        step = "cwd"
        os.chdir(directory)
        if packed is not None:
            step = "fence"
            plan = FencePlan.unpacked(packed)
            if plan.way == "landlock":
                landlock.enter(plan)
            if plan.sockets:
                seccomp.close_sockets(plan.sockets)
            step = "gate"
            if plan.gate and plan.way == "landlock":
                _hand_over(seccomp.install(writes=plan.gate == "write"), life)
        step = "exec"
        _default_signals()
        _exec_first(paths, argv, environment)
    except OSError as error:
        os.write(report, f"{step} {error.errno}".encode())
    except (ValueError, StopIteration):
        os.write(report, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _hand_over(listener: int, life: socket) -> None:
    """To the host, which answers from now on; nobody in here may."""
    life.sendmsg([b"gate"], [(SOL_SOCKET, SCM_RIGHTS, listener.to_bytes(4, "little"))])
    os.close(listener)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(_terminal((0, 1, 2)), termios.TIOCSCTTY, 0)


def _terminal(stdio: Iterable[int]) -> int:
    return next(number for number in stdio if os.isatty(number))


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
