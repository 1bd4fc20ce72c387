"""The first words with an agent, which settle the version of the protocol that is spoken.

Version 2 is asked for only where someone wants it, and imported only when an agent agrees to it;
one that does not is spoken to in version 1. So is one that repeats the number it was asked for and
says the rest in the words of version 1.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec

from dragoman._version import __version__
from dragoman.client.config import HostCapabilities, Timeouts
from dragoman.client.dialect import Dialect, Host, InboundHandler, Welcome
from dragoman.client.v1.dialect import V1
from dragoman.errors import (
    AuthRequired,
    InvalidMessage,
    MethodNotFound,
    RemoteError,
    VersionMismatch,
)
from dragoman.rpc import Peer
from dragoman.session.bounds import LIMITS, fitted, fitting
from dragoman.wire.fast_path import Usual

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
    from dragoman.client.v2 import to_wire

    request = to_wire.initialize(offers, NAME, __version__)
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
    from dragoman.client.v2.dialect import V2
    from dragoman.client.v2.inbound import Serving as Serving2

    serving = Serving2(host)
    dialect = V2(peer, timeouts, serving.conversations)
    return Agreed(dialect, dialect.welcome(raw), serving)
