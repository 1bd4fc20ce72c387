"""A process of this machine, held by a descriptor instead of its number.

A signal reaches this process or none, even if another one has its number by now, and its end is
noticed without looking repeatedly. The number and the start of a process are read before it can be
held, so they are compared once more when it is. Linux only.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path

from dragoman.hub.cluster.owner import is_here, started
from dragoman.store.records import Owner

CAN_HOLD = sys.platform == "linux" and hasattr(os, "pidfd_open")


class HeldProcess:
    """Use it as a context manager. A program that has ended stays what it is: ended."""

    def __init__(self, pid: int, since: str) -> None:
        """Raises ProcessLookupError if this process has ended, OSError if it cannot be held."""
        if not CAN_HOLD:
            raise OSError("processes cannot be held here")
        self.pid = pid
        self._descriptor = _pidfd(pid)
        # From here on the number belongs to what is held. Is that the process that was meant?
        if not since or started(pid) != since:
            os.close(self._descriptor)
            raise ProcessLookupError(pid)

    @classmethod
    def of(cls, owner: Owner) -> HeldProcess:
        """Raises ProcessLookupError also for one of another machine, or of another container: here,
        its number is that of someone else."""
        if not is_here(owner):
            raise ProcessLookupError(owner.pid)
        return cls(owner.pid, owner.started)

    def __enter__(self) -> HeldProcess:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def send(self, number: signal.Signals) -> None:
        """A signal; nothing to one that has ended."""
        if sys.platform == "linux":
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    @property
    def is_paused(self) -> bool:
        """Whether a signal has stopped it, and it waits to be continued."""
        with suppress(OSError):
            stat = Path(f"/proc/{self.pid}/stat").read_text(errors="replace").rpartition(")")[2]
            return not self.has_ended and stat.split()[0] == "T"
        return False

    @property
    def has_ended(self) -> bool:
        return bool(select.select([self._descriptor], [], [], 0)[0])

    async def ended(self) -> None:
        """Wait for its end."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        descriptor = os.dup(self._descriptor)  # a loop watches each only once
        loop.add_reader(descriptor, over.set)
        try:
            await over.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)


def _pidfd(pid: int) -> int:
    if sys.platform == "linux":
        return os.pidfd_open(pid)
    raise OSError("processes cannot be held here")


def wake(owner: Owner) -> None:
    """Continue a process that was stopped by a signal, so that it can do what it is asked."""
    with suppress(OSError), HeldProcess.of(owner) as process:
        if process.is_paused:
            process.send(signal.SIGCONT)
