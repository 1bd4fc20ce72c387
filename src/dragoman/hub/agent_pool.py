"""The agents that run here: one process for many sessions, or one for each, started on demand."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from dragoman.client.client import Client
from dragoman.client.mcp import McpServer
from dragoman.errors import DragomanError
from dragoman.hub.event_recorder import EventRecorder
from dragoman.session.facts import EVERYTHING, Offer

logger = logging.getLogger("dragoman.hub")


class Launcher(Protocol):
    """How to start an agent by its name."""

    def client(self, agent: str, cwd: str, offer: Offer) -> Client:
        """A client that is not connected yet, and offers at most this. Raises ConfigError or
        UnknownAgent."""
        ...

    def is_shared(self, agent: str) -> bool:
        """Whether one process serves all sessions of this agent that are offered the same."""
        ...

    def mcp_servers(self, agent: str) -> list[McpServer]:
        """What its sessions bring along."""
        ...


class Running:
    """One agent process and how many sessions use it; `started_again` is to be called when it is
    another process. While a recording in `behind` has much to store, the agent is not read."""

    def __init__(self, client: Client, started_again: Callable[[], None]) -> None:
        self.client = client
        self.started_again = started_again
        self.behind: set[EventRecorder] = set()
        client.read_at(self._pace)
        self.users = 0
        self.idle_since = time.monotonic()

    def _pace(self) -> Awaitable[None] | None:
        return self._until_stored() if self.behind else None

    async def _until_stored(self) -> None:
        while self.behind:
            await next(iter(self.behind)).caught_up()


class AgentPool:
    """Starts agents when a session needs one and ends those that none has used for a while.

    `on_change` gets the clients that run whenever there is one more or less. With `attended`, what
    agents ask waits for an answer, inside sessions and outside.
    """

    def __init__(
        self,
        launcher: Launcher,
        on_change: Callable[[Sequence[Client]], None] | None = None,
        *,
        attended: bool = False,
    ) -> None:
        self._attended = attended
        self.launcher = launcher
        self._on_change = on_change
        self._running: list[Running] = []
        self._shared: dict[tuple[str, Offer], Running] = {}
        """Of those that run, the one that new sessions of an agent share. What a process is offered
        holds for all its sessions: those that are offered something else have another one."""
        self._starting: dict[tuple[str, Offer], asyncio.Lock] = {}

    async def use(self, agent: str, cwd: str, offer: Offer = EVERYTHING) -> Running:
        """An agent that is connected; give it back with `leave`.

        Raises whatever entering a client raises.
        """
        if not self.launcher.is_shared(agent):
            return _used(await self._start(agent, cwd, offer))
        key = (agent, offer)
        async with self._starting.setdefault(key, asyncio.Lock()):
            running = self._shared.get(key)
            if running is not None and running.client.connection_error is not None:
                # It has died; those who still use it end it when they leave.
                if not running.users:
                    await self._end(running)
                running = None
            if running is None:
                running = self._shared[key] = await self._start(agent, cwd, offer)
            return _used(running)

    async def _start(self, agent: str, cwd: str, offer: Offer) -> Running:
        client = self.launcher.client(agent, cwd, offer)
        client.questions = "wait" if self._attended else "refuse"
        running = Running(client, self._changed)
        await client.__aenter__()
        self._running.append(running)
        self._changed()
        return running

    def clients(self, agent: str) -> list[Client]:
        """Those of this agent that run."""
        running = (each.client for each in self._running)
        return [client for client in running if client.name == agent]

    async def leave(self, running: Running, *, spent: bool = False) -> None:
        """A session no longer needs it; no other can use one that is `spent`."""
        running.users -= 1
        running.idle_since = time.monotonic()
        if spent and running.users == 0:
            self.retire(running)
        if running.users == 0 and running not in self._shared.values():
            await self._end(running)

    def retire(self, running: Running) -> None:
        """No new session shares it; it ends when the last that does leaves it."""
        self._shared = {key: one for key, one in self._shared.items() if one is not running}

    async def stop_idle(self, seconds: float) -> None:
        """End shared agents that nobody has used for so long."""
        for key, running in list(self._shared.items()):
            if running.users == 0 and time.monotonic() - running.idle_since >= seconds:
                del self._shared[key]
                await self._end(running)

    async def aclose(self) -> None:
        self._shared.clear()
        await asyncio.gather(*map(self._end, list(self._running)))

    async def _end(self, running: Running) -> None:
        with suppress(DragomanError):
            await running.client.aclose()
        if running in self._running:
            self._running.remove(running)
            self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change([running.client for running in self._running])


def _used(running: Running) -> Running:
    running.users += 1
    return running
