"""The connection to one agent: started, shaken hands on, watched, and started again.

Knows nothing of sessions but that someone routes to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman._version import __version__
from dragoman.client.dialect import Host, Welcome
from dragoman.client.options import HostCapabilities, Timeouts
from dragoman.client.v1.dialect import V1
from dragoman.client.v1.serving import WAITS, Serving
from dragoman.errors import ConnectionClosed, DragomanError, VersionMismatch
from dragoman.rpc import Peer, Tap
from dragoman.transport.base import Transport
from dragoman.transport.stdio import AgentCommand, StdioTransport


class Connection:
    """`on_lost` is called, once for each time, when the agent goes although nobody closed it."""

    def __init__(
        self,
        agent: AgentCommand | Transport,
        host: Host,
        *,
        offers: HostCapabilities,
        timeouts: Timeouts,
        tap: Tap | None,
        on_lost: Callable[[DragomanError], None],
    ) -> None:
        self.pid: int | None = None
        """The agent's process, if it is one that we started."""
        self._agent = agent
        self._host = host
        self._offers = offers
        self._timeouts = timeouts
        self._tap = tap
        self._on_lost = on_lost
        self._peer: Peer | None = None
        self._dialect: V1 | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def dialect(self) -> V1:
        """How to speak to this agent. Raises ConnectionClosed before there is a connection."""
        if self._dialect is None:
            raise ConnectionClosed("the client is not connected")
        return self._dialect

    @property
    def error(self) -> DragomanError | None:
        """Why the connection ended, once it has."""
        return None if self._peer is None else self._peer.error

    async def connect(self) -> Welcome:
        """Start the agent and shake hands.

        Raises StartError, ConnectionLost, CallTimeout, RemoteError, InvalidMessage or
        VersionMismatch.
        """
        self._peer = peer = await self._start()
        self._dialect = V1(peer, self._timeouts)
        try:
            welcome = await self._shake_hands()
        except BaseException:
            await peer.aclose()
            raise
        self._watching = asyncio.create_task(self._watch(peer))
        return welcome

    async def _start(self) -> Peer:
        transport = self._agent
        if isinstance(transport, AgentCommand):
            transport = await StdioTransport.start(transport)
        self.pid = transport.pid if isinstance(transport, StdioTransport) else None
        serving = Serving(self._host)
        peer = Peer(
            transport,
            on_notification=serving.on_notification,
            on_request=serving.on_request,
            waits=WAITS,
            tap=self._tap,
        )
        return await peer.__aenter__()

    async def _shake_hands(self) -> Welcome:
        welcome = await self.dialect.initialize(self._offers, "dragoman", __version__)
        if welcome.protocol_version != V1.version:
            raise VersionMismatch(welcome.protocol_version)
        return welcome

    async def _watch(self, peer: Peer) -> None:
        self._on_lost(await peer.wait_ended())

    async def reconnect(self) -> Welcome:
        """The same agent anew. Raises ConnectionClosed where that cannot be."""
        if not isinstance(self._agent, AgentCommand):
            raise ConnectionClosed("only an agent started by command can be started again")
        await self.aclose()
        return await self.connect()

    async def kill(self) -> None:
        """End the agent at once; sessions learn that it is lost."""
        if self._peer is not None:
            closing = asyncio.create_task(self._peer.aclose())
            await asyncio.sleep(0)
            closing.cancel()  # which has a transport kill what stands behind it
            await asyncio.wait([closing])

    async def aclose(self) -> None:
        """Close the transport; what stands behind it ends."""
        if self._watching is not None:
            self._watching.cancel()
        if self._peer is not None:
            await self._peer.aclose()
