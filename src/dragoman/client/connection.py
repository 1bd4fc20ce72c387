"""The connection to one agent: started, shaken hands on, watched, and started again.

Knows nothing of sessions but that someone routes to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from dragoman.client.config import HostCapabilities, Timeouts
from dragoman.client.dialect import Dialect, Host, Welcome
from dragoman.client.handshake import Undecided, shake_hands
from dragoman.client.v1.inbound import WAITS, Serving
from dragoman.errors import CallTimeout, ConnectionClosed, DragomanError
from dragoman.rpc import Pace, Peer, Tap
from dragoman.transport.base import Transport
from dragoman.transport.proxy_chain import ChainTransport
from dragoman.transport.remote_address import RemoteAgent
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import ProxyTarget, processes_of, way_to


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
        proxies: Sequence[ProxyTarget] = (),
    ) -> None:
        self.pids: list[int] = []
        """The processes that we started: those of the proxies, and behind them the agent's."""
        self._agent = agent
        self._proxies = proxies
        self._start_transport = way_to(agent, proxies, at_work=self._is_at_work)
        self._host = host
        self._offers = offers
        self._timeouts = timeouts
        self._tap = tap
        self._on_lost = on_lost
        self._protocol = protocol
        self._serving: Undecided | Serving = Serving(host)
        self._peer: Peer | None = None
        self._dialect: Dialect | None = None
        self.pace: Pace | None = None
        """How fast the agent is read; holds from the next start on."""
        self._watching: asyncio.Task[None] | None = None

    @property
    def dialect(self) -> Dialect:
        """How to speak to this agent. Raises ConnectionClosed before there is a connection."""
        if self._dialect is None:
            raise ConnectionClosed("the client is not connected")
        return self._dialect

    @property
    def pauses(self) -> int | None:
        """How often reading the agent was paused and went on; None while it is paused."""
        return 0 if self._peer is None else self._peer.pauses

    @property
    def error(self) -> DragomanError | None:
        """Why the connection ended, once it has."""
        return None if self._peer is None else self._peer.error

    async def connect(self) -> Welcome:
        """Start the agent and shake hands.

        Raises StartError, ConnectionLost, CallTimeout, RemoteError, InvalidMessage or
        VersionMismatch.
        """
        transport = await self._start_transport()
        self.pids = processes_of(transport)
        self._peer = peer = await self._serve(transport)
        try:
            welcome = await self._shake_hands(peer)
        except CallTimeout as error:
            silent = transport.silent if isinstance(transport, ChainTransport) else ""
            await peer.aclose()
            raise CallTimeout(error.method, error.seconds, silent) from None
        except BaseException:
            await peer.aclose()
            raise
        self._watching = asyncio.create_task(self._watch(peer))
        return welcome

    async def _serve(self, transport: Transport) -> Peer:
        self._serving = serving = Serving(self._host)
        if self._protocol > 1:
            self._serving = serving = Undecided(serving)
        peer = Peer(
            transport,
            on_notification=serving.on_notification,
            on_request=serving.on_request,
            waits=WAITS,
            tap=self._tap,
            is_held=self._host.asks_outside,
        )
        peer.pace = self.pace
        self._host.notify = peer.notify
        return await peer.__aenter__()

    def _is_at_work(self, session_id: str) -> bool:
        state = self._host.known(session_id)
        return state is not None and (state.turn is not None or state.activity != "idle")

    async def _shake_hands(self, peer: Peer) -> Welcome:
        agreed = await shake_hands(
            peer, self._host, self._offers, self._timeouts, protocol=self._protocol
        )
        self._dialect = agreed.dialect
        if agreed.serving is not None and isinstance(self._serving, Undecided):
            self._serving.serving = agreed.serving
        peer.usual = self._serving.usual()
        return agreed.welcome

    async def _watch(self, peer: Peer) -> None:
        self._on_lost(await peer.wait_ended())

    async def reconnect(self) -> Welcome:
        """Reconnect to the same agent; a remote one may be on its way back, and is waited for.

        Raises ConnectionClosed where that cannot be, and what `connect` does.
        """
        if not isinstance(self._agent, AgentCommand | RemoteAgent):
            raise ConnectionClosed("only an agent started by a command can be restarted")
        await self.aclose()
        if any(isinstance(each, RemoteAgent) for each in (self._agent, *self._proxies)):
            from dragoman.transport.reconnection import patiently  # brings networks along

            return await patiently(self.connect)
        return await self.connect()

    async def kill(self, reason: str) -> None:
        """End the agent at once; sessions learn that it is lost, and the reason."""
        if self._peer is not None:
            closing = asyncio.create_task(self._peer.aclose(reason))
            await asyncio.sleep(0)
            closing.cancel()  # which has a transport kill its process
            await asyncio.wait([closing])

    async def aclose(self) -> None:
        """Close the transport, which ends its process."""
        if self._watching is not None:
            self._watching.cancel()
        if self._peer is not None:
            await self._peer.aclose()
