"""The sessions that run in this process, from opening to release.

Each way in and out is a task of its own: its caller may be cancelled, and what was begun is
ended in order anyway. A caller that wants a session that is on its way out waits for it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from dragoman.client.sessions.session_controls import stop_by_closing
from dragoman.errors import ConnectionClosed, DragomanError, LeaseLost, StoreError
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.opener import NOT_RECORDED, Opener, Way
from dragoman.hub.running.agent_pool import AgentPool
from dragoman.hub.running.running_session import RunningSession
from dragoman.session import events as e
from dragoman.store.records import SessionRecord

logger = logging.getLogger("dragoman.hub")

_STOPPED = "the turn was cancelled because the process that ran the session was stopped"


class RunningSessions:
    """The live sessions of one hub. `tell` is called with the id of a session that starts here, or
    fails to continue."""

    def __init__(
        self,
        opener: Opener,
        agents: AgentPool,
        tell: Callable[[str], None],
        limits: HubLimits,
    ) -> None:
        self._limits = limits
        self._freed_memory = FreedMemory()
        self._next_trim: asyncio.TimerHandle | None = None
        self.by_id: dict[str, RunningSession] = {}
        self.failures: dict[str, DragomanError] = {}
        """Why a session that ran here no longer does, when the store did not take it."""
        self._opener = opener
        self._agents = agents
        self._tell = tell
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._beginning: set[asyncio.Task[RunningSession]] = set()
        self._detaching: dict[str, asyncio.Task[None]] = {}
        self._is_closed = False

    @property
    def has_leases(self) -> bool:
        if self.by_id or self._beginning or self._opener.to_recover:
            return True
        return any(each.locked() for each in self._opening.values())

    # ── in ────────────────────────────────────────────────────────────────────────────────────

    async def open(self, session_id: str, way: Way) -> RunningSession:
        """A stored session; the one that runs here, if it does."""
        await self.until_free(session_id)
        if (live := self.by_id.get(session_id)) is not None:
            return live
        return await self.begin(session_id, lambda: self._reopened(session_id, way))

    async def _reopened(self, session_id: str, way: Way) -> RunningSession:
        """Someone here may have been quicker."""
        live = self.by_id.get(session_id)
        return live or await self._opener.reopen(session_id, way)

    def opening(self, session_id: str) -> asyncio.Lock:
        """Held while a session is taken, so that we do not get in our own way."""
        return self._opening.setdefault(session_id, asyncio.Lock())

    @asynccontextmanager
    async def adopting(
        self, agent: str, agent_session_id: str
    ) -> AsyncGenerator[SessionRecord | None]:
        """One at a time for each session that an agent knows, with what is recorded of it here."""
        async with self.opening(f"{agent} {agent_session_id}"):
            # The store may not have yet what an agent calls those that run here.
            for live in self.by_id.values():
                if (live.record.agent, live.session.id) == (agent, agent_session_id):
                    yield live.record
                    return
            yield await self._opener.recorded(agent, agent_session_id)

    async def begin(
        self, session_id: str, opened: Callable[[], Awaitable[RunningSession]]
    ) -> RunningSession:
        """Have what is being opened run here; it is cancelled with its caller."""
        if self._is_closed:
            raise ConnectionClosed("the hub is closed")
        task = asyncio.create_task(self._begun(session_id, opened))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)
        return await task

    async def _begun(
        self, session_id: str, opened: Callable[[], Awaitable[RunningSession]]
    ) -> RunningSession:
        async with self.opening(session_id):
            return self._run(await opened())

    def _run(self, live: RunningSession) -> RunningSession:
        self.by_id[live.id] = live
        self.failures.pop(live.id, None)
        live.recording.on_failed = partial(self._failed, live)
        if (error := live.recording.error) is not None:
            self._failed(live, error)
        self._tell(live.id)
        return live

    def _failed(self, live: RunningSession, error: DragomanError) -> None:
        """The store no longer takes the session's events: it must not continue unseen."""
        logger.error("session %s is no longer recorded: %s", live.id, error)
        self.failures[live.id] = error
        self._tell(live.id)
        self.detach(live, partial(_cut_off, live, error))

    def beside(self, live: RunningSession) -> list[RunningSession]:
        """The other sessions of the same process."""
        others = self.by_id.values()
        return [each for each in others if each.agent is live.agent and each is not live]

    # ── out ───────────────────────────────────────────────────────────────────────────────────

    def detach(
        self, live: RunningSession, settle: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Stop running a session here, after `settle`; by default, its turn is cancelled. It is
        stored, and can be opened again anywhere. Nothing happens when that is under way, or has
        been done."""
        if self.by_id.get(live.id) is live:
            del self.by_id[live.id]
            self.free_after(live.id, self._detach(live, settle or partial(_settle, live)))

    def free_after(self, session_id: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Until this is done, nobody here opens the session."""
        task = self._detaching[session_id] = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._detaching.pop(session_id, None))
        task.add_done_callback(self._trim_soon)
        return task

    def _trim_soon(self, _: object) -> None:
        """Once nobody holds what was detached: those who waited for that may, for a moment."""
        loop = asyncio.get_running_loop()
        loop.call_later(self._limits.trim_seconds, self.trim)

    def trim(self) -> None:
        if self._is_closed or not self._freed_memory.is_worth_returning:
            return
        loop = asyncio.get_running_loop()
        if not (pause := self._freed_memory.pause):
            loop.run_in_executor(None, self._freed_memory.give_back)
        elif self._next_trim is None:
            self._next_trim = loop.call_later(pause, self._trim_again)

    def _trim_again(self) -> None:
        self._next_trim = None
        self.trim()

    async def until_free(self, session_id: str) -> None:
        """Wait until a session that is being detached can be opened again."""
        await _finished(*(self._detaching[each] for each in self._detaching.keys() & {session_id}))

    async def _detach(self, live: RunningSession, settle: Callable[[], Awaitable[None]]) -> None:
        try:
            await settle()
            with suppress(DragomanError):
                await live.agent.client.close_session(live.session.id)
        finally:
            live.session.gate.forget()
            try:
                await self._agents.leave(live.agent)
            finally:
                await self._release(live)

    async def _release(self, live: RunningSession) -> None:
        error = live.recording.error
        if error is None or isinstance(error, LeaseLost):
            await self._opener.release(live.recording.lease)
        else:
            # Its end is not stored: that is done first, as soon as the store takes it.
            self._opener.to_recover[live.id] = f"{NOT_RECORDED}: {_reason(error)}"

    async def aclose(self) -> None:
        """All of them, those that are being opened too, and the agents."""
        self._is_closed = True
        for beginning in self._beginning:
            beginning.cancel()
        lives = list(self.by_id.values())
        self.by_id.clear()
        try:
            await asyncio.gather(*map(_settle, lives))
            # What an agent holds up continues once that has ended.
            await _finished(
                *self._detaching.values(), *self._beginning, timeout=self._limits.cancel_seconds
            )
        finally:
            await self._agents.aclose()
            await _finished(*self._detaching.values(), *self._beginning)
            await asyncio.gather(*map(self._release, lives))


async def _settle(live: RunningSession) -> None:
    # When a turn ends in order, the next prompt is sent: those that wait are to wait here.
    if live.session.busy and not live.session.queued and not live.session.holds_back:
        live.session.log.record(e.Notice(_STOPPED, severity="warning", source="client"))
        with suppress(DragomanError, TimeoutError):
            async with asyncio.timeout(live.limits.cancel_seconds):
                await live.session.cancel()
    await live.detach(ConnectionClosed("the process that ran the session was closed"))


async def _cut_off(live: RunningSession, error: DragomanError) -> None:
    """The agent is cancelled, and ended if it continues: it would work unseen, and maybe alongside
    the one that has the session now. Other sessions of the same process start it again."""
    await live.detach(error)
    if not await _has_stopped(live):
        logger.warning("the agent of session %s does not stop, and is killed", live.id)
        await live.agent.client.kill()


async def _has_stopped(live: RunningSession) -> bool:
    """Whether the agent has stopped working for a session whose turn was cancelled; one that
    continues is asked to close it, if it can."""
    if await live.session.has_stopped(live.limits.cancel_seconds):
        return True
    return await stop_by_closing(live.session, live.agent.client, live.limits.cancel_seconds)


def _reason(error: DragomanError) -> str:
    return error.reason if isinstance(error, StoreError) else str(error)


async def _finished(*tasks: asyncio.Task[Any], timeout: float | None = None) -> None:
    """However they end."""
    if tasks:
        await asyncio.wait(tasks, timeout=timeout)


# ── freed memory ────────────────────────────────────────────────────────────────────────────────

# Returns freed memory to the system.
#
# Python's collector frees a session, whose parts refer to each other, only when it happens to
# run. glibc keeps what lies between pieces that are still in use, which after a long session is
# most of what that session took.


_MUCH = 16 << 20
_REST = 20
"""How many times as long as a collection, which holds everything up, there is no other."""


class FreedMemory:
    """Whether the process has grown by `much` bytes since its start.

    Not since it last gave memory back: what was in use then may be free now.
    """

    def __init__(self, much: int = _MUCH, clock: Callable[[], float] = time.monotonic) -> None:
        self._much = much
        self._clock = clock
        self._rests_until = 0.0
        self._size = _resident()

    @property
    def is_worth_returning(self) -> bool:
        return _resident() - self._size >= self._much

    @property
    def pause(self) -> float:
        """Seconds until it is time to give more back."""
        return max(0.0, self._rests_until - self._clock())

    def give_back(self) -> None:
        """Takes some milliseconds, so it is best done in a thread."""
        import ctypes  # late, since hardly any process needs it

        begun = self._clock()
        gc.collect()
        ended = self._clock()
        self._rests_until = ended + _REST * (ended - begun)

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # glibc has it, musl does not
            trim(0)


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system does not say, so that nothing grows."""
    if sys.platform != "linux":
        return 0
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
