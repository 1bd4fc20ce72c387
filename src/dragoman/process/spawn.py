"""Starts a program: contained where the system can do it, else as a process group.

The program gets a session of its own, and its process group is killed when it ends or is
stopped, together with what can be found below it at that moment. It cannot promise more: a
descendant that left the group *and* lost its parent lives on, and when this process is killed
with `kill -9` nothing but the end of its standard input tells the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from dragoman.errors import FenceError, StartError
from dragoman.fence.plan import FencePlan
from dragoman.process import contained, descriptors, process_tree, zygote_client
from dragoman.process.child import ExitStatus, Process
from dragoman.process.start_order import Order, checked, refusal

_log = logging.getLogger(__name__)


async def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdin: int,
    stdout: int,
    stderr: int,
    tty: bool = False,
    fence: FencePlan | None = None,
) -> Process:
    """Start a program with exactly this environment, connected to these descriptors.

    The descriptors stay the caller's, to close as soon as this returns. With `tty`, the first
    of them that is a terminal becomes the program's controlling terminal. Raises
    `CommandNotFound`, or `StartError` with the reason; `FenceError` if the fence cannot be built,
    since nothing runs outside the one that was asked for.
    """
    order = checked(argv, env, cwd, tty=tty, fence=fence)
    if sys.platform == "win32":
        raise StartError(order.command, "agents run on Linux and macOS; on Windows, use WSL")
    try:
        return await _spawn(order, (stdin, stdout, stderr))
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartError(order.command, f"the system refused ({reason})") from error


async def _spawn(order: Order, stdio: Sequence[int]) -> Process:
    if zygote_client.available():
        try:
            return await contained.spawn(order, stdio)
        except contained.ZygoteFailed as error:
            _log.warning(
                "descendants of agents cannot be contained: no zygote can run here: %s", error
            )
    return await spawn_portable(order, stdio)


async def spawn_portable(order: Order, stdio: Sequence[int]) -> Process:
    """Start a program in a session of its own."""
    if order.fence is not None:
        raise FenceError(order.command, "there are no helper processes to build it")
    try:
        return PortableProcess(_start(order, stdio))
    except OSError as error:
        step = "cwd" if error.filename == order.cwd else "exec"
        raise refusal(order, step, error.errno or 0) from None


def _start(order: Order, stdio: Sequence[int]) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = stdio
    with descriptors.lent(stdio):
        return subprocess.Popen(
            order.argv,
            env=order.env,
            cwd=order.cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            # Python code after a fork is unsafe with threads; this is a few system calls.
            preexec_fn=_set_up(order.tty, descriptors.limit_for_children()),  # noqa: PLW1509
        )


class PortableProcess(Process):
    """A program that leads a session and a process group."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        super().__init__(child.pid)
        self._child = child
        # Held while signalling and while reaping: until it is reaped, the pid is its own.
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        try:
            threading.Thread(target=self._watch, name=f"watch-{child.pid}", daemon=True).start()
        except RuntimeError as error:
            self.kill()
            child.wait()
            raise BlockingIOError(errno.EAGAIN, "no thread can be started") from error

    def signal(self, number: int) -> None:
        self._send_all(number)

    def kill(self) -> None:
        self._send_all(signal.SIGKILL)

    async def overrule(self) -> None:
        self.kill()

    def release(self) -> None:
        self.kill()

    def _send_all(self, number: int) -> None:
        with self._lock:
            if self._child.returncode is not None:
                return
            for pid in _descendants(self.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            _signal_group(self.pid, number)

    def _watch(self) -> None:
        _await_exit(self.pid)
        with self._lock:
            _signal_group(self.pid, signal.SIGKILL)
            returncode = self._child.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._end, returncode)

    def _end(self, returncode: int) -> None:
        self._exited.set_result(ExitStatus.of(returncode))
        self._gone.set_result(None)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


if sys.platform == "darwin":

    def _await_exit(pid: int) -> None:
        """Wait for the end of a child without reaping it."""
        import select

        queue = select.kqueue()
        event = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
        try:
            queue.control([event], 1)
        except ProcessLookupError:
            return  # it has ended already
        finally:
            queue.close()

else:

    def _await_exit(pid: int) -> None:
        """Wait for the end of a child without reaping it."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def _descendants(pid: int) -> list[int]:
    if sys.platform == "linux":
        return process_tree.descendants(pid)
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, check=False)
    pairs = [line.split() for line in listed.stdout.splitlines()]
    parents = {int(child): int(parent) for child, parent in pairs}
    return process_tree.walk(pid, process_tree.by_parents(parents))


def _set_up(tty: bool, limit: int | None) -> Callable[[], None] | None:
    """What the child does before it becomes the program, if anything."""
    if limit is None:
        return _take_terminal if tty else None
    import resource

    limits = (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1])

    def set_up() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        if tty:
            _take_terminal()

    return set_up


def _take_terminal() -> None:
    import fcntl
    import termios

    terminal = next(number for number in (0, 1, 2) if os.isatty(number))
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
