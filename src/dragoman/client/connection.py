"""The connection to one agent: start, handshake, monitor, reconnect.

Knows nothing of sessions but that someone routes to them.

Version 2 is asked for only where someone wants it, and imported only when an agent agrees to it;
others get version 1. So does an agent that repeats the number but answers in the format of
version 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman._version import __version__
from dragoman.client.client_options import HostCapabilities, Timeouts
from dragoman.client.dialects.dialect import Dialect, Host, InboundHandler, Welcome
from dragoman.client.dialects.v1.dialect import V1
from dragoman.client.dialects.v1.inbound import WAITS, Serving
from dragoman.errors import (
    AuthRequired,
    CallTimeout,
    ConnectionClosed,
    DragomanError,
    InvalidMessage,
    MethodNotFound,
    RemoteError,
    Unsupported,
    VersionMismatch,
)
from dragoman.rpc import Pace, Peer, Tap
from dragoman.session.state_limits import LIMITS, fitted, fitting
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import ProxyTarget, RemoteAgent, processes_of, way_to
from dragoman.transport.transport import Transport
from dragoman.wire.fast_path import Usual

if TYPE_CHECKING:
    from dragoman.agents.settings.settings_file import ModelProvider
    from dragoman.host.fence.fence import Fence


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
        fence: Fence | None = None,
        model_providers: Mapping[str, ModelProvider | None] | None = None,
    ) -> None:
        self.model_providers = dict(model_providers or {})
        """Sent each time the agent has started; None switches one off."""
        self.pids: list[int] = []
        """The processes that we started: those of the proxies, and behind them the agent's."""
        self._agent = agent
        self._proxies = proxies
        self._start_transport = way_to(agent, proxies, at_work=self._is_at_work, fence=fence)
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
        """How often reading the agent was paused and continued; None while it is paused."""
        return 0 if self._peer is None else self._peer.pauses

    @property
    def error(self) -> DragomanError | None:
        """Why the connection ended, once it has."""
        return None if self._peer is None else self._peer.error

    async def connect(self) -> Welcome:
        """Start the agent and shake hands.

        Raises StartError, ConnectionLost, CallTimeout, RemoteError, InvalidMessage,
        VersionMismatch, or Unsupported if there are model providers to set and it takes none.
        """
        transport = await self._start_transport()
        self.pids = processes_of(transport)
        self._peer = peer = await self._serve(transport)
        try:
            welcome = await self._shake_hands(peer)
            await self._set_providers(welcome)
        except CallTimeout as error:
            from dragoman.transport.proxy_chain import ChainTransport

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
        self._host.notify, self._host.drain = peer.notify, transport.drain
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

    async def _set_providers(self, welcome: Welcome) -> None:
        if self.model_providers and not welcome.capabilities.providers:
            raise Unsupported("the model providers that are set for it: providers/set")
        for provider_id, provider in self.model_providers.items():
            await self.dialect.set_provider(provider_id, provider)

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


NAME = "dragoman"


class Agreed(msgspec.Struct, frozen=True):
    """How to speak with the agent; `serving` is None where version 1 is served already."""

    dialect: Dialect
    welcome: Welcome
    serving: InboundHandler | None = None


class Undecided:
    """Serves in one version until another is agreed on."""

    def __init__(self, serving: InboundHandler) -> None:
        self.serving = serving

    def on_notification(self, method: str, params: msgspec.Raw) -> None:
        self.serving.on_notification(method, params)

    def on_request(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        return self.serving.on_request(method, params)

    def usual(self) -> Usual[Any]:
        return self.serving.usual()


class _Answer(msgspec.Struct, rename="camel"):
    protocol_version: int
    info: Any = None
    capabilities: Any = None

    @property
    def spoken(self) -> int:
        """The version that it is in, whatever it says: these two fields are version 2's own."""
        if self.protocol_version == 2 and self.info is None and self.capabilities is None:
            return 1
        return self.protocol_version


async def shake_hands(
    peer: Peer, host: Host, offers: HostCapabilities, timeouts: Timeouts, *, protocol: int
) -> Agreed:
    """Raises what `Peer.call` raises, InvalidMessage, and VersionMismatch."""
    try:
        if protocol == V1.version:
            agreed = await _first(peer, offers, timeouts)
        else:
            agreed = await _second(peer, host, offers, timeouts)
    except MethodNotFound as error:
        raise MethodNotFound(f"{error.message}; is this an ACP agent?", error.data) from error
    _shorten(agreed.welcome)
    return agreed


def _shorten(welcome: Welcome) -> None:
    """What an agent says of itself is kept for as long as it runs, and shown in many places."""
    agent, capabilities = welcome.agent, welcome.capabilities
    agent.name, agent.version = agent.name[: LIMITS.line], agent.version[: LIMITS.line]
    agent.title = None if agent.title is None else agent.title[: LIMITS.line]
    capabilities.raw = fitted(capabilities.raw, LIMITS.fact)[0]
    welcome.auth_methods = fitting(welcome.auth_methods, LIMITS.fact)[0]
    welcome.meta = fitted(welcome.meta, LIMITS.fact)[0]


async def _first(peer: Peer, offers: HostCapabilities, timeouts: Timeouts) -> Agreed:
    dialect = V1(peer, timeouts)
    welcome = await dialect.initialize(offers, NAME, __version__)
    if welcome.protocol_version != V1.version:
        raise VersionMismatch(welcome.protocol_version)
    return Agreed(dialect, welcome)


async def _second(peer: Peer, host: Host, offers: HostCapabilities, timeouts: Timeouts) -> Agreed:
    from dragoman.client.dialects.v2 import wire_format

    request = wire_format.initialize(offers, NAME, __version__)
    try:
        raw = await peer.call("initialize", request, timeout=timeouts.initialize)
    except AuthRequired:
        raise
    except RemoteError:
        # Some refuse what they do not speak instead of offering what they do.
        return await _first(peer, offers, timeouts)
    match _version(raw):
        case V1.version:
            return _in_first(peer, timeouts, raw)
        case 2:
            return _in_second(peer, host, timeouts, raw)
        case other:
            raise VersionMismatch(other)


def _version(raw: msgspec.Raw) -> int:
    try:
        return msgspec.json.decode(raw, type=_Answer).spoken
    except msgspec.DecodeError as error:
        raise InvalidMessage(f"the answer to initialize has no version: {error}") from error


def _in_first(peer: Peer, timeouts: Timeouts, raw: msgspec.Raw) -> Agreed:
    dialect = V1(peer, timeouts)
    welcome = dialect.welcome(raw)
    welcome.protocol_version = V1.version
    return Agreed(dialect, welcome)


def _in_second(peer: Peer, host: Host, timeouts: Timeouts, raw: msgspec.Raw) -> Agreed:
    from dragoman.client.dialects.v2.dialect import V2
    from dragoman.client.dialects.v2.inbound import Serving as Serving2

    serving = Serving2(host)
    dialect = V2(peer, timeouts, serving.conversations)
    return Agreed(dialect, dialect.welcome(raw), serving)
