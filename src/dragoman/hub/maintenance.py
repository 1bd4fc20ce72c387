"""Background work: renew leases, recover sessions of dead owners, stop idle ones, report outages.

Without that, a delayed turn would look like one that has stopped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError, LeaseLost, SessionError
from dragoman.hub.opener import Opener
from dragoman.hub.running.agent_pool import AgentPool
from dragoman.process import descriptors
from dragoman.store.base import LEASE_SECONDS, Store
from dragoman.store.outage import failure_logged
from dragoman.store.records import Owner

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub

logger = logging.getLogger("dragoman.hub")

_SWEEP_SECONDS = 1.0
_LOOK_SECONDS = 0.5
_RENEW_SECONDS = LEASE_SECONDS / 4
_AT_HAND_SECONDS = 30.0
"""For so long after its last use a session's newest events are kept in memory."""


class Maintenance:
    """The background tasks of a hub; one that fails is tried again and does not affect the
    others."""

    def __init__(self, hub: Hub, opener: Opener, agents: AgentPool) -> None:
        self._hub = hub
        self._opener = opener
        self._agents = agents
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._recovering = asyncio.Lock()
        self.failing: set[str] = set()
        """The names of the chores that did not work when they were last tried."""
        self._expired: dict[tuple[str, str], float] = {}
        """Since when the lease of a session and an owner is known to have run out."""

    def start(self) -> None:
        # Leases have a task of their own: the other chores may take longer than one lasts.
        self._tasks = [
            asyncio.create_task(
                self._keep_on(_SWEEP_SECONDS, self.recover, self._save, self.detach_idle)
            ),
            asyncio.create_task(self._keep_on(_RENEW_SECONDS, self._renew_if_any)),
            asyncio.create_task(
                self._keep_on(self._hub.limits.parked_seconds, self._hub.parked.take_up)
            ),
        ]

    async def aclose(self) -> None:
        """Finish the chore at hand: a lease that was just taken has to be released. One that
        waits for a store that is away is cancelled."""
        self._stopping.set()
        working: Iterable[asyncio.Task[None]] = self._tasks
        while working and self._hub.store.away is None:
            _, working = await asyncio.wait(working, timeout=_LOOK_SECONDS)
        for task in working:
            task.cancel()
        if working:
            await asyncio.wait(working)

    async def _keep_on(self, seconds: float, *chores: Callable[[], Awaitable[None]]) -> None:
        while not self._stopping.is_set():
            await self._try_all(chores)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    async def _try_all(self, chores: Sequence[Callable[[], Awaitable[None]]]) -> None:
        for chore in chores:
            name = chore.__name__.strip("_")
            if await self._try(chore):
                self.failing.discard(name)
            else:
                self.failing.add(name)
            if self._stopping.is_set():
                return

    async def _try(self, chore: Callable[[], Awaitable[None]]) -> bool:
        """Whether it worked."""
        with failure_logged("a chore failed", logger):
            await chore()
            return True
        return False

    # ── recovery ──────────────────────────────────────────────────────────────────────────────

    async def recover(self) -> None:
        """Recover the sessions whose owners have ended without closing them. Raises DragomanError
        if this process is short of descriptors: it then sees too little of other processes."""
        if descriptors.are_short():
            raise DragomanError("no free file descriptor: cannot recover sessions")
        async with self._recovering:
            ours, owned = self._hub.owner.id, await self._hub.store.owned()
            ended = cache(self._hub.hosts.has_ended)
            others = [(each, owner) for each, owner in owned if owner.id != ours]
            found = [each for each, owner in others if ended(owner)]
            for session_id in {*found, *self._silent(others), *self._opener.to_recover}:
                opening = self._hub.running.opening(session_id)
                if not opening.locked():  # opening it here recovers it
                    async with opening:
                        await self._try(partial(self._recover, session_id))

    def _silent(self, others: Sequence[tuple[str, Owner]]) -> list[str]:
        """Sessions of owners that cannot be seen from here and do not renew their leases. By our
        own watch: a machine that wakes up finds all leases run out, also those of the living."""
        now = time.monotonic()
        self._expired = {
            (session_id, owner.id): self._expired.get((session_id, owner.id), now)
            for session_id, owner in others
            if not owner.alive and self._hub.hosts.has_ended(owner) is None
        }
        silence = self._hub.limits.silence_seconds
        return [each for (each, _), since in self._expired.items() if now - since > silence]

    async def _recover(self, session_id: str) -> None:
        try:
            await self._opener.recover(session_id)
        except SessionError:
            self._opener.to_recover.pop(session_id, None)  # another process was quicker

    # ── leases ────────────────────────────────────────────────────────────────────────────────

    async def _renew_if_any(self) -> None:
        if self._hub.running.has_leases:
            await self.renew()

    async def renew(self) -> None:
        """Keep our sessions, and stop recording those that another process has taken."""
        lives = list(self._hub.live.values())
        held = await self._hub.store.renew(self._hub.owner, seconds=LEASE_SECONDS)
        for live in lives:
            if live.id not in held:
                live.recording.fail(LeaseLost(live.id))

    # ── what is at rest ───────────────────────────────────────────────────────────────────────

    async def _save(self) -> None:
        for live in list(self._hub.live.values()):
            if live.wants_snapshot:
                await self._try(live.save_snapshot)

    async def detach_idle(self, after: float | None = None) -> None:
        """Detach sessions that nobody has used for so many seconds, if they can be continued."""
        after = self._hub.limits.idle_seconds if after is None else after
        now = time.monotonic()
        for live in list(self._hub.live.values()):
            if not (live.idle or (self._hub.parked.are_taken_up and live.is_parked_for(after))):
                continue
            agent, unused = live.agent.client.capabilities, now - live.used_at
            if unused >= after and (agent.load or agent.resume):
                self._hub.running.detach(live)
            elif unused >= _AT_HAND_SECONDS:
                live.recording.tail.forget()
        await self._agents.stop_idle(after)


_NOTICE_SECONDS = 0.5
BACK = "the database is back"


@asynccontextmanager
async def told_of_outages(store: Store, tell: Callable[[str], None]) -> AsyncGenerator[None]:
    """As long as this lasts."""
    telling = asyncio.create_task(_tell(store, tell))
    try:
        yield
    finally:
        telling.cancel()


async def _tell(store: Store, tell: Callable[[str], None]) -> None:
    async for away in outages(store):
        tell(away or BACK)


async def outages(store: Store) -> AsyncGenerator[str | None]:
    """What the store says of being away, whenever that changes; None when it is back."""
    told: str | None = None
    while True:
        if (away := store.away) != told:
            told = away
            yield away
        await asyncio.sleep(_NOTICE_SECONDS)
