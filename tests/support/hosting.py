"""Hosts: hubs on one store, each with a home and agents of its own, as on machines of their own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.hubs import Agent, TestLauncher

from dragoman.hub.cluster.host_service import Presence
from dragoman.hub.hub import Hub
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import HostRecord


@dataclass(frozen=True)
class Place:
    """Where hosts meet: a folder that all of them have, and the database of their store; without
    one that is SQLite in the folder."""

    folder: Path
    database: str | None = None

    @property
    def cwd(self) -> str:
        return str(self.folder)

    @asynccontextmanager
    async def store(self, name: str = "nobody") -> AsyncGenerator[Store]:
        """As the host of that name has it."""
        if self.database is None:
            store = await open_store(self.folder / "store")
        else:
            store = await open_postgres(self.database, self.folder / "homes" / name)
        try:
            yield store
        finally:
            await store.aclose()


@asynccontextmanager
async def hosting(place: Place, name: str, agents: Mapping[str, Agent]) -> AsyncGenerator[Hub]:
    """A host; its home is its name."""
    async with (
        place.store(name) as store,
        Hub(store, TestLauncher(agents), home=name, label=name) as hub,
    ):
        await hub.be_host(Presence(name=name, agents=lambda: list(agents), cwd=place.cwd))
        yield hub


@asynccontextmanager
async def two_hosts(place: Place, one: Agent, two: Agent) -> AsyncGenerator[tuple[Hub, Hub]]:
    """Both know an agent "it", each its own."""
    async with (
        hosting(place, "one", {"it": one}) as first,
        hosting(place, "two", {"it": two}) as second,
    ):
        yield first, second


async def host_of(hub: Hub) -> HostRecord:
    """As the others see it."""
    return await hub.hosts.named(hub.owner.id)
