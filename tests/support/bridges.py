"""A bridge in this process: to agents in memory, or to commands."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from support.peers import SECONDS

from dragoman.bridge.bridge_server import PATH, Bridge, make_app
from dragoman.bridge.http_connections import BridgeLimits
from dragoman.transport.memory import MemoryTransport, memory_pair
from dragoman.transport.reconnection import ReconnectingRoute
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport
from dragoman.web.server.guard import AllowedHosts
from dragoman.web.server.http_server import AsgiServer

TOKEN = "a-token-for-tests-of-256-bits-or-thereabouts"


@dataclass
class Bridged:
    port: int
    running: AsgiServer
    log: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])

    def agent(self, scheme: str) -> RemoteAgent:
        return RemoteAgent(f"{scheme}://127.0.0.1:{self.port}{PATH}#token={TOKEN}")


@asynccontextmanager
async def bridged(
    start: Callable[[], Awaitable[Transport]],
    *,
    limit: int = 8,
    origins: tuple[str, ...] = (),
    port: int = 0,
    limits: BridgeLimits | None = None,
) -> AsyncGenerator[Bridged]:
    closing = asyncio.Event()
    listener = socket.create_server(("127.0.0.1", port))
    port = listener.getsockname()[1]
    bridge = Bridge(start, limit=limit, closing=closing, limits=limits)
    log: list[tuple[str, str, int]] = []
    app = make_app(
        bridge,
        token=TOKEN,
        hosts=AllowedHosts("127.0.0.1", port),
        origins=origins,
        log=lambda method, path, status, seconds: log.append((method, path, status)),
    )
    running = AsgiServer(app, closing, sockets=True)
    serving = asyncio.create_task(running.serve([listener]))
    await running.ready.wait()
    try:
        yield Bridged(port, running, log)
    finally:
        running.end()
        await serving
        await bridge.connections.all_ended()


class InMemory:
    """Starts agents that are the other end of a pair in memory; the test plays the agent."""

    def __init__(self) -> None:
        self._started: asyncio.Queue[MemoryTransport] = asyncio.Queue()

    async def start(self) -> Transport:
        ours, theirs = memory_pair()
        self._started.put_nowait(theirs)
        return ours

    async def agent(self) -> MemoryTransport:
        async with asyncio.timeout(SECONDS):
            return await self._started.get()


HELLO = b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{}}'
WELCOME = b'{"jsonrpc":"2.0","id":"hello","result":{}}'


@asynccontextmanager
async def by_http(
    limits: BridgeLimits | None = None,
) -> AsyncGenerator[tuple[Transport, MemoryTransport]]:
    """A transport over HTTP, the bridge, and the agent behind it; hands are shaken already."""
    memory = InMemory()
    async with bridged(memory.start, limits=limits) as web:
        ours = await ReconnectingRoute(web.agent("http")).connect()
        try:
            ours.send(HELLO + b"\n")
            theirs = await memory.agent()
            async with asyncio.timeout(SECONDS):
                assert await theirs.receive() == HELLO + b"\n"
                theirs.send(WELCOME + b"\n")
                assert await ours.receive() == WELCOME + b"\n"
            yield ours, theirs
        finally:
            await ours.aclose()
