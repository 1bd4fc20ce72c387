"""A run whose agent may stay is two processes: a front for the shell to wait for, and a worker.

The worker is the run. It can let the front go, and continue in the background. They part before
anything else is imported: so nothing has to be handed over later, and a front costs next to
nothing. As long as it is there, the worker ends with it, however it ends, and every Ctrl-C goes
through it: a terminal sends one to both, and it must count once.

Only the process of a command parts, never a program that calls `main`. Linux only: elsewhere nobody
has tried it.
"""

from __future__ import annotations

import os
import signal
import sys

from dragoman.cli import standard_streams

TYPE_CHECKING = False  # that of `typing` would cost every command the import
if TYPE_CHECKING:
    import argparse
    from _socket import socket
    from typing import NoReturn

_LOST = 1
"""The exit code of a worker whose front has gone: nobody sees it."""

CAN_STAY = sys.platform == "linux" and hasattr(os, "pidfd_open")

_front: list[Front] = []


def current() -> Front | None:
    """The front of this process; None where the run is all one process."""
    return _front[0] if _front else None


def may_stay(options: argparse.Namespace) -> bool:
    """Whether the agent of this run may stay after it, by what was typed. The settings may still
    say that it does not."""
    if not CAN_STAY or options.keep_warm == 0:
        return False
    lists = any(value for name, value in vars(options).items() if name.startswith("list_"))
    lists = lists or options.output_schema is not None
    frames = options.output in ("json", "jsonl") or options.record is not None or options.debug
    if lists or frames or options.no_store or options.steer is not None or options.no_wait:
        return False
    if options.worktree is not None:
        return False  # it may be removed after the run
    if options.keep_warm is not None:
        return True
    continued = options.session is not None or options.resume is not None or options.continues
    return continued and not _in_ci() and _has_home()


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def _has_home() -> bool:
    return bool(os.environ.get("DRAGOMAN_HOME") or os.environ.get("HOME"))


def part() -> None:
    """From here on this is the worker. The front does not return. Without a login session to end
    with, nothing stays: this is one process, and ends as one."""
    from _socket import socket, socketpair  # `socket` would bring `selectors` and `enum` along

    if (leader := _session_leader()) is None:
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, standard_streams.RELAYED))
    ours, theirs = (socket(fileno=each.detach()) for each in socketpair())
    try:
        worker = os.fork()
    except OSError:
        for each in (ours, theirs):
            each.close()
        os.close(leader)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return
    if worker:
        theirs.close()
        _wait_for(worker, ours, blocked)
    ours.close()
    standard_streams.interrupted_by_relay()
    _front.append(Front(theirs, leader))
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _session_leader() -> int | None:
    """A descriptor of the process with whose end the login session of this one ends: the shell of a
    terminal. Of a command that was given a session of its own, that of its parent. None if it has
    ended already. Held from here on, since another process may get its number."""
    try:
        leader = os.getsid(0)
        if leader == os.getpid():
            leader = os.getsid(os.getppid())
        return os.pidfd_open(leader)
    except OSError:
        return None


# ── the front ───────────────────────────────────────────────────────────────────────────────────


def _wait_for(worker: int, link: socket, blocked: set[int]) -> NoReturn:
    def relay(number: int, frame: object) -> None:
        os.kill(worker, standard_streams.RELAYED)

    signal.signal(signal.SIGINT, relay)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    told = link.recv(8)
    if told:
        os._exit(int(told))
    standard_streams.end_as(os.waitpid(worker, 0)[1])


# ── the worker ──────────────────────────────────────────────────────────────────────────────────


class Front:
    """The front, as its worker sees it."""

    def __init__(self, link: socket, leader: int) -> None:
        self.leader = leader
        """Of the login session; see `_session_leader`."""
        self._link = link
        self._inherited = standard_streams.given_descriptors() - {link.fileno(), leader}
        self._end_with_it(True)

    def _end_with_it(self, wanted: bool) -> None:
        """Whether the end of the front is ours, in the same moment and whatever we do: the kernel
        sends a signal that ends us when the other end of the link is closed."""
        import fcntl

        number = self._link.fileno()
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
        if not wanted:
            fcntl.fcntl(number, fcntl.F_SETFL, flags & ~os.O_ASYNC)
            return
        fcntl.fcntl(number, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(number, fcntl.F_SETFL, flags | os.O_ASYNC)
        if self._is_gone():
            os._exit(_LOST)

    def _is_gone(self) -> bool:
        from _socket import MSG_DONTWAIT, MSG_PEEK

        try:
            return not self._link.recv(1, MSG_PEEK | MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def let_go(self, code: int, errors: int) -> bool:
        """The front ends with this code, and this process is one in the background, with nothing of
        what it was given: `errors` is where it writes what goes wrong. False when the front was
        killed just then."""
        self._end_with_it(False)
        os.setsid()
        standard_streams.leave(self._inherited, errors)
        os.chdir("/")
        try:
            self._link.send(b"%d" % code)
        except OSError:
            return False
        finally:
            self._link.close()
            _front.clear()
        return True
