"""Chains with `dragoman proxy` in them, in one program: our own client is the conductor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from support.clients import Connectable
from support.hubs import stored
from support.peers import Wire, soon

from dragoman import Client
from dragoman.host.rules.rule import Rule
from dragoman.proxy.proxy_service import ProxyOptions, pass_through
from dragoman.store.base import Store
from dragoman.transport.memory import memory_pair
from dragoman.transport.proxy_chain import ChainTransport, Component
from dragoman.transport.transport import Transport


class Relay:
    """Proxies that record in one store. Use it as a context manager."""

    def __init__(self, store: Store, rules: Sequence[Rule]) -> None:
        self.store = store
        self._options = ProxyOptions(agent="it", rules=rules)
        self._running: list[asyncio.Task[None]] = []

    def connect(self) -> Transport:
        """A proxy of its own."""
        ours, theirs = memory_pair()
        passing = pass_through(self._options, ours, self.store)
        self._running.append(asyncio.create_task(self._until_over(passing, ours)))
        return theirs

    async def _until_over(self, passing: Any, transport: Transport) -> None:
        await passing
        await transport.aclose()

    @asynccontextmanager
    async def client(self, agent: Connectable, **options: Any) -> AsyncGenerator[Client]:
        """A client whose chain is a proxy and the agent."""

        async def started(end: Transport) -> Transport:
            return end

        chain = await ChainTransport.start(
            [
                Component("proxy", "dragoman", lambda: started(self.connect())),
                Component("agent", "it", lambda: started(agent.connect())),
            ]
        )
        async with Client.start(chain, name="it", questions="wait", **options) as client:
            yield client

    @asynccontextmanager
    async def conductor(self) -> AsyncGenerator[Wire]:
        """The conductor's end of a connection to a proxy, frame by frame."""
        transport = self.connect()
        try:
            yield Wire(transport)
        finally:
            await transport.aclose()

    async def over(self) -> None:
        """Until all proxies have ended. Raises what one of them raised."""
        await soon(asyncio.gather(*self._running))
        self._running.clear()


@asynccontextmanager
async def relay(folder: Path, *rules: Rule) -> AsyncGenerator[Relay]:
    """Proxies with a store in this folder; leaving it waits until they have ended."""
    async with AsyncExitStack() as stack:
        made = Relay(await stack.enter_async_context(stored(folder)), rules)
        yield made
        await made.over()
