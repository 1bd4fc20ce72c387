"""A child process, and the steps that end it, contained or not.

A process belongs to the event loop it was started on. It does not own the descriptors its
standard streams were connected to.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakSet

_log = logging.getLogger(__name__)

# How long a tree may take to end once it is to be killed, before we look after it ourselves.
_ORDERED_SECONDS = 1.0
# How often we try then, and for how long each time; only the kernel can make it longer.
_TRIES = 20
_TRY_SECONDS = 0.1


class ExitStatus(NamedTuple):
    """How a process ended: an exit code, or the name of the signal that ended it."""

    code: int | None
    signal: str | None

    @classmethod
    def of(cls, returncode: int) -> ExitStatus:
        """From Python's convention, where a negative number is a signal."""
        if returncode >= 0:
            return cls(returncode, None)
        return cls(None, _signal_name(-returncode))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_started: WeakSet[Process] = WeakSet()


def kill_all() -> None:
    """Kill every tree that was started here, without waiting: this process is about to end and
    cannot do so in order. From any thread."""
    for process in list(_started):
        with suppress(Exception):
            process.kill()


class Process(ABC):
    """A running program with all its descendants."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[ExitStatus] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        _started.add(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pid} {self.status or 'running'}>"

    @property
    def status(self) -> ExitStatus | None:
        """How the program ended, or None while it runs; its descendants may outlive it."""
        return self._exited.result() if self._exited.done() else None

    def on_exit(self, callback: Callable[[], None]) -> None:
        """Call back, from the event loop, when the program itself has ended."""
        self._exited.add_done_callback(lambda _: callback())

    async def wait(self) -> ExitStatus:
        """Wait for the program itself to end."""
        await asyncio.wait([self._exited])
        return self._exited.result()

    async def stop(self, *, exit_within: float = 2.0, term_within: float = 3.0) -> None:
        """Let the program end by itself, then TERM, then KILL its tree; nothing is left.

        The caller closes the program's standard input first. When cancelled, go straight to
        KILL.
        """
        try:
            if await _done(self._exited, exit_within) and self._gone.done():
                return
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)  # a stopped process cannot act on TERM
            await _done(self._gone, term_within)
        finally:
            await self._kill_and_wait()

    async def _kill_and_wait(self) -> None:
        try:
            self.kill()
            if not await _done(self._gone, _ORDERED_SECONDS) and not await self._overruled():
                _log.warning("processes of %r did not end when killed", self)
        finally:
            self.release()

    async def _overruled(self) -> bool:
        for _ in range(_TRIES):
            await self.overrule()
            if await _done(self._gone, _TRY_SECONDS):
                return True
        return False

    @abstractmethod
    def signal(self, number: int) -> None:
        """Send a signal to the program and its descendants; nothing when they are gone."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the whole tree, without waiting."""

    @abstractmethod
    async def overrule(self) -> None:
        """Kill the whole tree without its keeper; called again until it is gone."""

    @abstractmethod
    def release(self) -> None:
        """Let go of what watches the process; whatever still runs is killed."""


async def _done(future: asyncio.Future[Any], seconds: float) -> bool:
    if not future.done():
        await asyncio.wait([future], timeout=seconds)
    return future.done()
