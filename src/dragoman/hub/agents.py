"""The agents that run here: one process for many sessions, or one for each, started on demand."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Protocol

from dragoman.client.client import Client
from dragoman.client.mcp import McpServer
from dragoman.errors import DragomanError

logger = logging.getLogger("dragoman.hub")


class Launcher(Protocol):
    """How to start an agent by its name."""

    def client(self, agent: str, cwd: str) -> Client:
        """A client that is not connected yet. Raises ConfigError or UnknownAgent."""
        ...

    def is_shared(self, agent: str) -> bool:
        """Whether one process serves all sessions of this agent."""
        ...

    def mcp_servers(self, agent: str) -> list[McpServer]:
        """What its sessions bring along."""
        ...


class Running:
    """One agent process and how many sessions use it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.users = 0
        self.idle_since = time.monotonic()


class Agents:
    """Starts agents when a session needs one and ends those that none has used for a while."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self._shared: dict[str, Running] = {}
        self._own: list[Running] = []
        self._starting: dict[str, asyncio.Lock] = {}

    async def use(self, agent: str, cwd: str) -> Running:
        """An agent that is connected; give it back with `leave`.

        Raises whatever entering a client raises.
        """
        if not self.launcher.is_shared(agent):
            running = await self._start(agent, cwd)
            self._own.append(running)
            running.users += 1
            return running
        async with self._starting.setdefault(agent, asyncio.Lock()):
            running = self._shared.get(agent)
            if running is None or running.client.connection_error is not None:
                running = self._shared[agent] = await self._start(agent, cwd)
            running.users += 1
            return running

    async def _start(self, agent: str, cwd: str) -> Running:
        client = self.launcher.client(agent, cwd)
        await client.__aenter__()
        return Running(client)

    async def leave(self, running: Running) -> None:
        """A session does not need it any more."""
        running.users -= 1
        running.idle_since = time.monotonic()
        if running in self._own:
            self._own.remove(running)
            await running.client.aclose()
        elif running.users == 0 and running not in self._shared.values():
            await running.client.aclose()  # it was lost, and another has taken its place

    async def stop_idle(self, seconds: float) -> None:
        """End shared agents that nobody has used for so long."""
        for agent, running in list(self._shared.items()):
            if running.users == 0 and time.monotonic() - running.idle_since >= seconds:
                del self._shared[agent]
                await self._end(running)

    async def aclose(self) -> None:
        everyone = [*self._shared.values(), *self._own]
        self._shared.clear()
        self._own.clear()
        await asyncio.gather(*map(self._end, everyone))

    async def _end(self, running: Running) -> None:
        with suppress(DragomanError):
            await running.client.aclose()
