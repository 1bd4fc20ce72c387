"""Linux: a child whose whole tree ends with its owner, even when that is killed with `kill -9`.

The zygote forks a keeper, which starts the program and talks to us over the life socket. When
this process lets go of that socket, in whatever way, the keeper kills every descendant. A keeper
that is kept from it, by its program or otherwise, is overruled from here. What asked another
service to run something (systemd, cron, docker) is nobody's descendant.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import marshal
import os
import socket
import threading
import time
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.errors import StartError
from dragoman.process import descriptors, helper_watch, process_tree, zygote_client
from dragoman.process.child import ExitStatus, Process
from dragoman.process.start_order import Order, refusal

_REPORT_SIZE = 256
_RETRY_SECONDS = 0.02
# How long orphans of a killed keeper may take to end; only the kernel can make it longer.
_ORPHAN_SECONDS = 3.0
# A keeper that has no living descendants and still does not end is killed.
_ROUNDS_BEFORE_KILL = 5
# So many zygotes are tried for one program, with a pause that grows by so much each time.
_ATTEMPTS = 4
_PAUSE_SECONDS = 0.05
# How often to look for the exit code of a zygote that has closed its socket.
_ENDING_LOOKS = 100
# The system is out of something now; that says nothing about the zygote.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


class Patience(NamedTuple):
    """How long to wait for a program to start."""

    look: float = 0.25
    """After so many seconds without an answer, look how things are."""
    idle_looks: int = 8
    """A zygote that was found stopped, or had done nothing since the last look, so many times is
    replaced."""
    start: float = 30.0
    """What a keeper may take to start its program: a loaded machine, a cold disk."""


class ZygoteFailed(Exception):
    """The zygote did not take the request."""

    zygote: zygote_client.ZygoteClient | None = None
    """The one that failed; None when not even that could be started."""
    is_impossible = False
    """Whether this system can have none: nothing that another program could bring about."""


class ZygoteHeld(ZygoteFailed):
    """The zygote is there, and does not come to work."""


async def spawn(
    order: Order, stdio: Sequence[int], patience: Patience | None = None
) -> ContainedProcess:
    """Start a program; a zygote that died, or does not answer, is replaced a few times.

    Raises ZygoteFailed where this system cannot run one, and StartError when something keeps
    ending, stopping or changing those that it can run: a program may not get out of its
    containment, nor get another one out, by attacking the zygote.
    """
    patience = patience or PATIENCE
    failed = ZygoteFailed()
    for attempt in range(_ATTEMPTS):
        await asyncio.sleep(attempt * _PAUSE_SECONDS)
        try:
            return await _spawn(order, stdio, patience)
        except ZygoteHeld as error:
            if attempt:
                raise StartError(order.command, str(error)) from None
        except ZygoteFailed as error:
            failed = error
            if await _is_impossible(error):
                raise
    raise StartError(
        order.command,
        f"Dragoman's helper process failed {_ATTEMPTS} times ({failed}); if another program kills "
        "it, or changes its limits or priority, end that program and try again",
    )


class OwnNetwork:
    """A network namespace: nothing is reachable in it but what the host accepts on `listeners`."""

    def __init__(self, user: int, network: int, *listeners: int) -> None:
        self.spaces: tuple[int, ...] = (user, network)
        """What a program needs to live in it."""
        self.listeners = [socket.socket(fileno=each) for each in listeners]
        for listener in self.listeners:
            listener.setblocking(False)

    def close(self) -> None:
        """It goes when the last program in it has ended."""
        for listener in self.listeners:
            listener.close()
        for space in self.spaces:
            os.close(space)
        self.spaces = ()


async def make_network(ports: Sequence[int]) -> OwnNetwork:
    """Have a helper make one that listens on these ports, 0 for any. Raises OSError if the system
    has none to give, and ZygoteFailed."""
    failed = ZygoteFailed()
    for attempt in range(_ATTEMPTS):
        await asyncio.sleep(attempt * _PAUSE_SECONDS)
        zygote = _zygote()
        try:
            return await _make_network(zygote, ports)
        except ZygoteFailed as error:
            failed = error
            zygote_client.dismiss(zygote)
    raise failed


async def _make_network(zygote: zygote_client.ZygoteClient, ports: Sequence[int]) -> OwnNetwork:
    ours, theirs = descriptors.socketpair()
    request = " ".join(("network", *map(str, ports))).encode()
    try:
        try:
            for _ in range(_ENDING_LOOKS):
                if _is_taken(zygote, [theirs.fileno()], request):
                    break
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            descriptors.close(theirs.detach())
        if not await _is_readable(ours.fileno(), PATIENCE.start):
            raise ZygoteHeld("Dragoman's helper processes do not run")
        data, received, _, _ = socket.recv_fds(ours, 16, 2 + 2 * len(ports))
    finally:
        descriptors.close(ours.detach())
    if data == b"made":
        return OwnNetwork(*received)
    if not data:
        raise ZygoteFailed("it ended without an answer")
    raise OSError(int(data), os.strerror(int(data)))


async def _is_impossible(failed: ZygoteFailed) -> bool:
    """Whether the warden itself said so, before any zygote has ever done its work.

    Any other end may be another program's doing: a limit set while Python starts is enough.
    """
    if zygote_client.has_worked():
        return False
    if failed.zygote is None:
        return failed.is_impossible
    for _ in range(_ENDING_LOOKS):
        if (code := failed.zygote.exit_code) is not None:
            return code == helper_watch.IMPOSSIBLE
        await asyncio.sleep(_RETRY_SECONDS)
    return False


PATIENCE = Patience()


async def _spawn(order: Order, stdio: Sequence[int], patience: Patience) -> ContainedProcess:
    life, theirs = descriptors.socketpair()
    zygote = None
    try:
        try:
            zygote = _zygote()
            watch = _Watch(zygote, patience)
            spaces = () if order.fence is None else order.fence.network
            await _request(order, [theirs.fileno(), *stdio, *spaces], zygote, watch)
        finally:
            descriptors.close(theirs.detach())
        return await _await_start(order, life, watch)
    except ZygoteFailed as error:
        error.zygote = zygote
        if zygote is not None:
            zygote_client.dismiss(zygote)
        raise
    finally:
        if life.fileno() >= 0:
            descriptors.close(life.detach())


async def _request(
    order: Order, handed: list[int], zygote: zygote_client.ZygoteClient, watch: _Watch
) -> None:
    written = _write(order)
    handed.insert(1, written)
    looked = time.monotonic()
    try:
        while not _is_taken(zygote, handed):
            await asyncio.sleep(0.005)  # hundreds of requests are on their way to it
            if time.monotonic() - looked > watch.patience.look:
                watch.look()
                looked = time.monotonic()
    finally:
        os.close(written)


def _is_taken(
    zygote: zygote_client.ZygoteClient, descriptors: list[int], what: bytes = b"run"
) -> bool:
    try:
        zygote.request(descriptors, what)
    except BlockingIOError:
        return False
    except ConnectionError as error:
        raise ZygoteFailed("it has ended") from error
    return True


def _zygote() -> zygote_client.ZygoteClient:
    try:
        return zygote_client.zygote()
    except OSError as error:
        if error.errno in _SHORTAGES:
            raise
        raise ZygoteFailed(f"it could not be started ({error.strerror})") from error
    except NotImplementedError as error:  # no /proc, or a C library that cannot start a session
        failed = ZygoteFailed(str(error))
        failed.is_impossible = True
        raise failed from error


def _write(order: Order) -> int:
    """The order as a file in memory: of any size, and gone with its last descriptor."""
    paths, argv = ([os.fsencode(word) for word in words] for words in (order.paths, order.argv))
    env = {os.fsencode(name): os.fsencode(value) for name, value in order.env.items()}
    fence = None if order.fence is None else order.fence.packed()
    data = memoryview(marshal.dumps((paths, argv, env, os.fsencode(order.cwd), order.tty, fence)))
    file = os.memfd_create("order")
    while data:
        data = data[os.write(file, data) :]
    return file


async def _await_start(order: Order, life: socket.socket, watch: _Watch) -> ContainedProcess:
    while True:
        report = await _report(order, life, watch)
        match report.split():
            case [b"kept", keeper]:
                watch.keeper = int(keeper)
                zygote_client.note_work()
            case [b"started", pid]:
                return ContainedProcess(int(pid), life.detach(), watch.keeper, watch.session)
            case [b"gate"]:
                continue
            case [b"failed", step, number]:
                raise refusal(order, step.decode(), int(number))
            case [b"changed", name]:
                raise ZygoteFailed(f"another program changed its {name.decode()}")
            case []:
                raise ZygoteFailed("it ended without an answer")
            case _:
                raise ZygoteFailed(f"it reported {report!r}")


async def _report(order: Order, life: socket.socket, watch: _Watch) -> bytes:
    """The next report. Raises ZygoteHeld when its sender does nothing."""
    began = time.monotonic()
    while not await _is_readable(life.fileno(), watch.patience.look):
        watch.look()
        if time.monotonic() - began > watch.patience.start:
            reason = f"the system did not start it within {watch.patience.start:g} s"
            raise StartError(order.command, reason)
    try:
        report, handed, _, _ = socket.recv_fds(life, _REPORT_SIZE, 1, socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return b""
    for listener in handed:
        assert order.fence is not None  # nobody hands us anything without
        order.fence.take(listener, order.argv, order.cwd)
    return report


async def _is_readable(descriptor: int, seconds: float) -> bool:
    """Wait so long for something to read; nothing is read, so nothing is lost when cancelled."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[bool] = loop.create_future()
    timer = loop.call_later(seconds, _settle, readable, False)
    loop.add_reader(descriptor, _settle, readable, True)
    try:
        return await readable
    finally:
        loop.remove_reader(descriptor)
        timer.cancel()


def _settle(future: asyncio.Future[bool], result: bool) -> None:
    if not future.done():
        future.set_result(result)


class _Watch:
    """Looks whether the one whose turn it is gets on: the zygote, then the keeper it forked."""

    def __init__(self, zygote: zygote_client.ZygoteClient, patience: Patience) -> None:
        self.patience = patience
        self.session = zygote.session
        self.keeper = 0
        self._zygote = zygote
        self._idle_looks = 0
        self._work: list[bytes] = []

    def look(self) -> None:
        """Continue stopped helpers. Raises ZygoteHeld when that did not help."""
        if self._gets_on():
            return
        self._idle_looks += 1
        if self._idle_looks > self.patience.idle_looks:
            self._give_up()
            raise ZygoteHeld(
                "Dragoman's helper processes do not run; if another program stops them "
                "(SIGSTOP), end that program and try again"
            )
        self._zygote.resume()

    def _give_up(self) -> None:
        self._zygote.kill()
        if self.keeper:
            helper_watch.end(self.keeper, self.session)
            helper_watch.kill(self.keeper, self.session)

    def _gets_on(self) -> bool:
        if self.keeper:
            return not helper_watch.is_held(self.keeper)
        before = self._work
        is_held, is_busy, self._work = self._zygote.progress()
        return not is_held and (is_busy or self._work != before)


class ContainedProcess(Process):
    """A program under a keeper, seen through its life socket."""

    def __init__(self, pid: int, life: int, keeper: int = 0, session: int = 0) -> None:
        super().__init__(pid)
        self._life = life
        self._keeper = keeper
        self._session = session
        self._born = process_tree.state(pid).born
        self._rounds = 0
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(life, self._take_report)

    def signal(self, number: int) -> None:
        self._order(f"signal {int(number)}")

    def kill(self) -> None:
        self._order("end")

    async def overrule(self) -> None:
        with contextlib.suppress(OSError):  # no descriptor is free; it is tried again
            try:
                await asyncio.to_thread(self._do_the_keepers_work)
            except RuntimeError:  # no thread can be had, as when the tree is a fork bomb
                self._do_the_keepers_work()

    def _do_the_keepers_work(self) -> None:
        helper_watch.end(self._keeper, self._session)
        self._rounds += 1
        if self._rounds > _ROUNDS_BEFORE_KILL and not process_tree.living(self._keeper):
            helper_watch.kill(self._keeper, self._session)

    def release(self) -> None:
        self._let_go()
        if not self._gone.done():
            self._gone.set_result(None)

    def _let_go(self) -> None:
        if self._life >= 0:
            life, self._life = self._life, -1
            self._loop.remove_reader(life)
            descriptors.close(life)
        if not self._exited.done():
            # The keeper was killed, or cannot end the tree: no better news will come.
            self._exited.set_result(ExitStatus(None, "SIGKILL"))

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
            case [b"gone"]:
                self.release()
            case _:
                self._mourn()

    def _mourn(self) -> None:
        """The keeper was killed: those above it end what it leaves, and so do we."""
        self._let_go()
        deadline = time.monotonic() + _ORPHAN_SECONDS
        name = f"orphans-{self.pid}"
        try:
            threading.Thread(
                target=self._end_orphans, args=(deadline,), name=name, daemon=True
            ).start()
        except RuntimeError:  # no thread can be had
            self._end_orphans_from_the_loop(deadline)

    def _end_orphans(self, deadline: float) -> None:
        while self._has_orphans(deadline):
            time.sleep(_RETRY_SECONDS)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self.release)

    def _end_orphans_from_the_loop(self, deadline: float) -> None:
        if self._has_orphans(deadline):
            self._loop.call_later(_RETRY_SECONDS, self._end_orphans_from_the_loop, deadline)
        else:
            self.release()

    def _has_orphans(self, deadline: float) -> bool:
        """Kill them, once; whether to try again."""
        with contextlib.suppress(OSError):  # no descriptor is free: those above the keeper do it
            if helper_watch.end_strays(self._session) and time.monotonic() < deadline:
                return True
            # Those above may have been killed with it, and still look alive.
            helper_watch.end_session(self.pid, self._born)
        return False

    def __del__(self) -> None:
        if getattr(self, "_life", -1) >= 0:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
            descriptors.close(self._life)
