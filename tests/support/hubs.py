"""Hubs on a store of their own, with agents that run in the same program or as processes."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from support.clients import Connectable
from support.peers import SECONDS

from dragoman import AgentCommand, Client, HostCapabilities
from dragoman.agents.settings.project_settings import NO_TERMS, ProjectTerms
from dragoman.client.mcp import McpServer
from dragoman.hub.cluster.owner import is_gone, started, this_process
from dragoman.hub.hub import Hub
from dragoman.hub.hub_limits import HubLimits
from dragoman.session import events as e
from dragoman.session.facts import Offer, SystemPrompt
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.records import Owner, StoredEvent
from dragoman.store.store_limits import StoreLimits
from dragoman.transport.target import RemoteAgent

Agent: TypeAlias = Connectable | AgentCommand | RemoteAgent


class TestLauncher:
    """Agents by name; `own` names those with a process for each session."""

    __test__ = False

    def __init__(
        self, agents: Mapping[str, Agent], *, own: set[str] | None = None, **options: Any
    ) -> None:
        self.started: list[str] = []
        self.prompts: dict[str | None, SystemPrompt] = {}
        """By agent, what the settings would say."""
        self._agents = agents
        self._own = own or set()
        self._options = options

    def client(self, agent: str, cwd: str, offer: Offer) -> Client:
        self.started.append(agent)
        reached = self._agents[agent]
        if not isinstance(reached, AgentCommand | RemoteAgent):
            reached = reached.connect()
        offered = HostCapabilities(
            read_files=offer.files, write_files=offer.files, terminals=offer.terminals
        )
        return self.start(reached, name=agent, capabilities=offered, **self._options)

    def start(self, reached: Any, **options: Any) -> Client:
        return Client.start(reached, **options)

    def is_shared(self, agent: str) -> bool:
        return agent not in self._own

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        return []

    def system_prompt(self, agent: str | None, cwd: str) -> SystemPrompt | None:
        return self.prompts.get(agent)

    def of_project(self, agent: str, cwd: str) -> ProjectTerms:
        return NO_TERMS


@asynccontextmanager
async def stored(folder: Path, limits: StoreLimits | None = None) -> AsyncGenerator[Store]:
    store = await open_store(folder / "store", limits)
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def hub_with(
    folder: Path,
    agent: Agent,
    *,
    own: set[str] | None = None,
    limits: HubLimits | None = None,
    store_limits: StoreLimits | None = None,
    **options: Any,
) -> AsyncGenerator[Hub]:
    """A hub that knows one agent, "it"."""
    launcher = TestLauncher({"it": agent}, own=own, **options)
    async with stored(folder, store_limits) as store, Hub(store, launcher, limits=limits) as hub:
        yield hub


async def stored_events(hub: Hub, session_id: str) -> list[e.Event]:
    return [each.decode() for each in await hub.store.events(session_id)]


async def seen_until(
    pages: AsyncIterator[list[StoredEvent]], kind: type[e.Event], times: int = 1
) -> list[e.Event]:
    """What a reader sees, up to the event of this kind."""
    seen: list[e.Event] = []
    async with asyncio.timeout(SECONDS):
        async for page in pages:
            for each in page:
                seen.append(each.decode())
                times -= isinstance(seen[-1], kind)
            if times <= 0:
                return seen
    raise AssertionError("the events ended")


def dead_process() -> Owner:
    """An owner that was there and is no more."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    here = this_process()
    owner = Owner("dead", here.machine, process.pid, started(process.pid))
    assert not is_gone(owner)
    process.communicate()
    return owner
