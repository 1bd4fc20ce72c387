"""Linux: a child whose whole tree ends with its owner, even when that is killed with `kill -9`.

The zygote forks a keeper, which starts the program and talks to us over the life socket. When
this process lets go of that socket, in whatever way, the keeper kills every descendant. What
asked another service to run something (systemd, cron, docker) is nobody's descendant.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import marshal
import os
import socket
import warnings
from collections.abc import Sequence

from dragoman.errors import StartError
from dragoman.process import forks, launch
from dragoman.process.base import ExitStatus, Process
from dragoman.process.order import Order, refusal

# Generous: a loaded machine, a cold disk. It only bounds a zygote that never answers.
_START_SECONDS = 30.0
_REPORT_SIZE = 256
# The system is out of something now; that says nothing about the zygote.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


class ZygoteFailed(Exception):
    """The zygote did not take the request."""


async def spawn(order: Order, stdio: Sequence[int]) -> Process:
    """Start a program; a zygote that died unnoticed is replaced."""
    try:
        return await _spawn(order, stdio)
    except ZygoteFailed:
        return await _spawn(order, stdio)


async def _spawn(order: Order, stdio: Sequence[int]) -> Process:
    life, theirs = forks.socketpair()
    try:
        try:
            zygote = await _request(order, theirs.fileno(), stdio)
        finally:
            forks.close(theirs.detach())
        report = await _first_report(order, life)
        if not report:
            launch.dismiss(zygote)
            raise ZygoteFailed("it ended without an answer")
        return _started(order, life, report)
    finally:
        if life.fileno() >= 0:
            forks.close(life.detach())


async def _request(order: Order, life: int, stdio: Sequence[int]) -> launch.Zygote:
    zygote = _zygote()
    written = _write(order)
    try:
        while True:
            try:
                zygote.request([life, written, *stdio])
            except BlockingIOError:
                await asyncio.sleep(0.005)  # hundreds of requests are on their way to it
            else:
                return zygote
    except ConnectionError as error:
        launch.dismiss(zygote)
        raise ZygoteFailed("it has ended") from error
    finally:
        os.close(written)


def _zygote() -> launch.Zygote:
    try:
        return launch.zygote()
    except OSError as error:
        if error.errno in _SHORTAGES:
            raise
        raise ZygoteFailed(f"it could not be started ({error.strerror})") from error
    except NotImplementedError as error:  # a C library that cannot start a session
        raise ZygoteFailed(str(error)) from error


def _write(order: Order) -> int:
    """The order as a file in memory: of any size, and gone with its last descriptor."""
    paths, argv = ([os.fsencode(word) for word in words] for words in (order.paths, order.argv))
    env = {os.fsencode(name): os.fsencode(value) for name, value in order.env.items()}
    data = memoryview(marshal.dumps((paths, argv, env, os.fsencode(order.cwd), order.tty)))
    file = os.memfd_create("order")
    while data:
        data = data[os.write(file, data) :]
    return file


async def _first_report(order: Order, life: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_START_SECONDS):
            return await loop.sock_recv(life, _REPORT_SIZE)
    except TimeoutError:
        reason = f"the system did not start it within {_START_SECONDS:g} s"
        raise StartError(order.command, reason) from None
    except OSError:
        return b""


def _started(order: Order, life: socket.socket, report: bytes) -> Process:
    match report.split():
        case [b"started", pid]:
            return ContainedProcess(int(pid), life.detach())
        case [b"failed", step, number]:
            raise refusal(order, step.decode(), int(number))
        case _:
            raise ZygoteFailed(f"it reported {report!r}")


class ContainedProcess(Process):
    """A program under a keeper, seen through its life socket."""

    def __init__(self, pid: int, life: int) -> None:
        super().__init__(pid)
        self._life = life
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(life, self._take_report)

    def signal(self, number: int) -> None:
        self._order(f"signal {int(number)}")

    def kill(self) -> None:
        self._order("end")

    def release(self) -> None:
        if self._life < 0:
            return
        life, self._life = self._life, -1
        self._loop.remove_reader(life)
        forks.close(life)
        if not self._exited.done():
            # The keeper was killed, or cannot end the tree: no better news will come.
            self._exited.set_result(ExitStatus(None, "SIGKILL"))
        self._gone.set_result(None)

    def _order(self, words: str) -> None:
        if self._life >= 0:
            with contextlib.suppress(OSError):  # the keeper has just ended
                os.write(self._life, words.encode())

    def _take_report(self) -> None:
        try:
            report = os.read(self._life, _REPORT_SIZE).split()
        except BlockingIOError:
            return
        except ConnectionResetError:
            return  # it ended before it took our last order; what it reported before is read next
        except OSError:
            report = []
        match report:
            case [b"exited", code]:
                self._exited.set_result(ExitStatus(int(code), None))
            case [b"signalled", number]:
                self._exited.set_result(ExitStatus.of(-int(number)))
            case _:
                self.release()  # the end of the stream: nothing is left

    def __del__(self) -> None:
        if getattr(self, "_life", -1) >= 0:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
            forks.close(self._life)
