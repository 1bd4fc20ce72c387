"""What a hub does from time to time: keep its leases, put right what dead owners left, rest."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError, LeaseLost, SessionOwned, UnknownSession
from dragoman.hub.agents import Agents
from dragoman.hub.opening import LEASE_SECONDS, Opener
from dragoman.hub.owner import is_gone

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub

logger = logging.getLogger("dragoman.hub")

_SWEEP_SECONDS = 1.0
_RENEW_SECONDS = LEASE_SECONDS / 4
IDLE_SECONDS = 600.0
"""After so long without use a session is put down and an agent stopped, if it can continue."""


class Chores:
    """Runs in the background of a hub; one that fails is tried again, and hurts no other."""

    def __init__(self, hub: Hub, opener: Opener, agents: Agents) -> None:
        self._hub = hub
        self._opener = opener
        self._agents = agents
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._renewed = time.monotonic()

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_on())

    async def aclose(self) -> None:
        """Finish the chore at hand: a lease that was just taken has to be given back."""
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _keep_on(self) -> None:
        while not self._stopping.is_set():
            for chore in (self.recover, self._renew_in_time, self._snapshots, self.rest):
                try:
                    await chore()
                except DragomanError as error:
                    logger.warning("%s failed: %s", chore.__name__.strip("_"), error)
                if self._stopping.is_set():
                    return
            with suppress(TimeoutError):
                async with asyncio.timeout(_SWEEP_SECONDS):
                    await self._stopping.wait()

    async def recover(self) -> None:
        """Put right the sessions whose owners have ended without doing so."""
        for session_id, owner in await self._hub.store.owned():
            if is_gone(owner):
                async with self._hub.opening(session_id):
                    await self._recover(session_id)

    async def _recover(self, session_id: str) -> None:
        try:
            lease = await self._opener.lease(session_id)
        except (SessionOwned, UnknownSession):
            return  # another process was quicker
        try:
            record = await self._hub.store.session(session_id)
            if record is not None:
                await self._opener.put_right(record, lease)
        finally:
            await self._hub.store.release(lease)

    async def _renew_in_time(self) -> None:
        if time.monotonic() - self._renewed >= _RENEW_SECONDS and self._hub.live:
            self._renewed = time.monotonic()
            await self.renew()

    async def renew(self) -> None:
        """Keep our sessions, and let go of those that another process has taken."""
        lives = list(self._hub.live.values())
        held = await self._hub.store.renew(self._hub.owner, seconds=LEASE_SECONDS)
        for live in lives:
            if live.id not in held:
                live.recording.fail(LeaseLost(live.id))

    async def _snapshots(self) -> None:
        for live in list(self._hub.live.values()):
            if live.wants_snapshot:
                await live.save_snapshot()

    async def rest(self, after: float = IDLE_SECONDS) -> None:
        """Put down what nobody has used for so many seconds and can be continued."""
        now = time.monotonic()
        for live in list(self._hub.live.values()):
            agent = live.running.client.capabilities
            if live.idle and now - live.used_at >= after and (agent.load or agent.resume):
                await self._hub.detach(live)
        await self._agents.stop_idle(after)
