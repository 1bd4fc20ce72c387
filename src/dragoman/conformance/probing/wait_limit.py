"""How long the other side may keep us waiting, on a machine that may be busy.

A slow machine is not a fault of what is examined. So two kinds of time do not count: the time in
which its processes were ready to run and had no processor, which the kernel measures, and the time
in which we had none ourselves. Where the kernel does not say, only the second kind is left out.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from dragoman.process import process_tree

_TICK: Final = 0.25
_LONGEST: Final = 6
"""How many times its limit a single wait may take, if things keep arriving meanwhile."""
_NOTHING: Final = 1e-6
_NANOSECONDS: Final = 1e-9


def no_processes() -> list[int]:
    return []


class WaitLimit:
    """Bounds waits to so many seconds in which nothing happens."""

    def __init__(
        self, seconds: float, processes: Callable[[], Iterable[int]] = no_processes
    ) -> None:
        """`processes` names those that are examined, as they are at the moment."""
        self.seconds = seconds
        self._processes = processes

    def of(self, seconds: float) -> WaitLimit:
        """The same, for another number of seconds."""
        return WaitLimit(seconds, self._processes)

    def wait(self) -> Wait:
        """Begin to wait for something that may come in several steps."""
        return Wait(self.seconds, ProcessorQueue(self._processes))

    async def happens(self, event: Callable[[], Awaitable[object]]) -> bool:
        """Wait for one thing to happen; whether it did in time. `event` is called often."""
        return await self.wait().happens(event)

    async def rest(self) -> None:
        """Let the time pass."""
        await self.happens(asyncio.Event().wait)


class Wait:
    """One wait. Each step may take the whole time again, up to a limit for all of them."""

    def __init__(self, seconds: float, queue: ProcessorQueue) -> None:
        self._seconds = seconds
        self._most = _LONGEST * seconds
        self._queue = queue

    async def happens(self, event: Callable[[], Awaitable[object]]) -> bool:
        """Wait for the next thing to happen; whether it did in time. `event` is called often."""
        left, loop = min(self._seconds, self._most), asyncio.get_running_loop()
        while left > _NOTHING:
            tick, start = min(_TICK, left), loop.time()
            try:
                async with asyncio.timeout(tick):
                    await event()
            except TimeoutError:
                # What the tick took beyond its length, we were kept from running ourselves.
                spent = max(0.0, tick - self._queue.seconds())
                self._most -= spent
                left -= spent
            else:
                self._most -= min(tick, loop.time() - start)
                return True
        return False


class ProcessorQueue:
    """How long the threads of some processes have waited for a processor."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        self._processes = processes
        self._seen: dict[str, int] = {}
        self.seconds()

    def seconds(self) -> float:
        """The seconds since this was last asked, of all threads together."""
        now = {
            thread: nanoseconds for pid in self._processes() for thread, nanoseconds in _delays(pid)
        }
        grown = sum(max(0, spent - self._seen.get(thread, 0)) for thread, spent in now.items())
        self._seen = now
        return grown * _NANOSECONDS


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    return [pid, *process_tree.descendants(pid)]


def _delays(pid: int) -> Iterable[tuple[str, int]]:
    """For each thread, how many nanoseconds it has been ready to run without running."""
    tasks = f"/proc/{pid}/task"
    try:
        threads = os.listdir(tasks)
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"{tasks}/{thread}/schedstat", encoding="ascii") as file:
                yield thread, int(file.read().split()[1])
        except (OSError, IndexError):
            continue


async def ended(pid: int, limit: WaitLimit) -> bool:
    """Wait for the end of a process that is not a child of ours; whether it came in time."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):
        return await _looked_for(pid, limit)
    over, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(watched, over.set)
    try:
        return await limit.happens(over.wait)
    finally:
        loop.remove_reader(watched)
        os.close(watched)


async def _looked_for(pid: int, limit: WaitLimit) -> bool:
    """The same, without the kernel's help."""
    for _ in range(round(limit.seconds / _TICK)):
        if process_tree.state(pid).state in (b"", b"Z", b"X"):
            return True
        await limit.of(_TICK).rest()
    return False
