"""Hosts: hubs on one store, each with a home and agents of its own, as on machines of their own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from support.hubs import Agent, TestLauncher, stored

from dragoman.hub.hosting import Presence
from dragoman.hub.hub import Hub
from dragoman.store.records import HostRecord


@asynccontextmanager
async def hosting(
    folder: Path, name: str, agents: Mapping[str, Agent], *, home: str | None = None
) -> AsyncGenerator[Hub]:
    """A host; its home is its name, unless it is given."""
    async with (
        stored(folder) as store,
        Hub(store, TestLauncher(agents), home=home or name, label=name) as hub,
    ):
        await hub.be_host(Presence(name=name, agents=lambda: list(agents), cwd=str(folder)))
        yield hub


@asynccontextmanager
async def two_hosts(folder: Path, one: Agent, two: Agent) -> AsyncGenerator[tuple[Hub, Hub]]:
    """Both know an agent "it", each its own."""
    async with (
        hosting(folder, "one", {"it": one}) as first,
        hosting(folder, "two", {"it": two}) as second,
    ):
        yield first, second


async def host_of(hub: Hub) -> HostRecord:
    """As the others see it."""
    return await hub.hosts.named(hub.owner.id)
