"""The connection to one agent: started, shaken hands on, watched, and started again.

Knows nothing of sessions but that someone routes to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.client.dialect import Dialect, Host, Welcome
from dragoman.client.handshake import Undecided, shake_hands
from dragoman.client.options import HostCapabilities, Timeouts
from dragoman.client.v1.serving import WAITS, Serving
from dragoman.errors import ConnectionClosed, DragomanError
from dragoman.rpc import Peer, Tap
from dragoman.transport.base import Transport
from dragoman.transport.remote import RemoteAgent
from dragoman.transport.stdio import AgentCommand, StdioTransport

if TYPE_CHECKING:
    from dragoman.transport.route import Route


class Connection:
    """`on_lost` is called, once for each time, when the agent goes although nobody closed it."""

    def __init__(
        self,
        agent: AgentCommand | RemoteAgent | Transport,
        host: Host,
        *,
        offers: HostCapabilities,
        timeouts: Timeouts,
        tap: Tap | None,
        on_lost: Callable[[DragomanError], None],
        protocol: int = 1,
    ) -> None:
        self.pid: int | None = None
        """The agent's process, if it is one that we started."""
        self._agent = agent
        self._route: Route | None = None
        self._host = host
        self._offers = offers
        self._timeouts = timeouts
        self._tap = tap
        self._on_lost = on_lost
        self._protocol = protocol
        self._serving: Undecided | Serving = Serving(host)
        self._peer: Peer | None = None
        self._dialect: Dialect | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def dialect(self) -> Dialect:
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
        try:
            welcome = await self._shake_hands(peer)
        except BaseException:
            await peer.aclose()
            raise
        self._watching = asyncio.create_task(self._watch(peer))
        return welcome

    async def _start(self) -> Peer:
        transport = self._agent
        if isinstance(transport, AgentCommand):
            transport = await StdioTransport.start(transport)
        elif isinstance(transport, RemoteAgent):
            transport = await self._reach(transport)
        self.pid = transport.pid if isinstance(transport, StdioTransport) else None
        self._serving = serving = Serving(self._host)
        if self._protocol > 1:
            self._serving = serving = Undecided(serving)
        peer = Peer(
            transport,
            on_notification=serving.on_notification,
            on_request=serving.on_request,
            waits=WAITS,
            tap=self._tap,
        )
        return await peer.__aenter__()

    async def _reach(self, agent: RemoteAgent) -> Transport:
        from dragoman.transport.route import Route  # brings networks along

        self._route = self._route or Route(agent)
        return await self._route.connect()

    async def _shake_hands(self, peer: Peer) -> Welcome:
        agreed = await shake_hands(
            peer, self._host, self._offers, self._timeouts, protocol=self._protocol
        )
        self._dialect = agreed.dialect
        if agreed.serving is not None and isinstance(self._serving, Undecided):
            self._serving.serving = agreed.serving
        return agreed.welcome

    async def _watch(self, peer: Peer) -> None:
        self._on_lost(await peer.wait_ended())

    async def reconnect(self) -> Welcome:
        """The same agent anew; one that runs elsewhere may be on its way back, and is waited for.

        Raises ConnectionClosed where that cannot be, and what `connect` does.
        """
        if not isinstance(self._agent, AgentCommand | RemoteAgent):
            raise ConnectionClosed("only an agent started by command can be started again")
        await self.aclose()
        if isinstance(self._agent, RemoteAgent):
            from dragoman.transport.route import patiently

            return await patiently(self.connect)
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
