"""How an agent is reached: a process to start, a remote address, and proxies in front of it.

Nothing here shows a header's value, nor the parts of an address that may hold one.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from dragoman.transport.stdio import AgentCommand, Enclosure, StdioTransport
from dragoman.transport.transport import Side, Start, Transport

if TYPE_CHECKING:
    from urllib.parse import SplitResult

SCHEMES = ("ws", "wss", "http", "https")
_SHORTEST_SECRET = 4
"""What is shorter keeps nothing, and is found in any sentence."""


class RemoteAgent(msgspec.Struct, frozen=True):
    """The address of a remote agent (`ws`, `wss`, `http` or `https`), and headers to send to it.

    A bearer token may follow the address as `#token=…`; it is sent as a header. `files` says on
    which side the folders of its sessions are; only files `here` are served.
    """

    url: str
    headers: Mapping[str, str] = {}
    files: Side | None = None

    def __post_init__(self) -> None:
        problem = _problem(self.url)
        if problem:
            raise ValueError(problem)
        for name, value in self.sent_headers.items():
            if not is_header_value(value):
                raise ValueError(f"the header {name} contains characters that are not allowed")

    @property
    def place(self) -> str:
        """The address for people, without anything that could be a secret."""
        parts = _split(self.url)
        return parts._replace(netloc=host_of(parts), query="", fragment="").geturl()

    @property
    def name(self) -> str:
        return _split(self.url).hostname or ""

    @property
    def endpoint(self) -> str:
        """The address to send to."""
        return _split(self.url)._replace(fragment="").geturl()

    @property
    def sent_headers(self) -> dict[str, str]:
        fragment = _split(self.url).fragment
        if not fragment.startswith("token="):
            return dict(self.headers)
        if any(name.lower() == "authorization" for name in self.headers):
            return dict(self.headers)
        token = _unquoted(fragment.removeprefix("token="))
        return {"Authorization": f"Bearer {token}"} | dict(self.headers)

    def is_secret_in(self, text: str) -> bool:
        """Whether a text from there repeats something that we told there and never show."""
        parts = _split(self.url)
        told = [*self.sent_headers.values(), parts.netloc.rpartition("@")[0], parts.query]
        told += [_unquoted(each) for each in told]
        told += [_decoded(word) for each in told for word in each.split()]
        words = {word for each in told for word in (*each.split(), *re.split(r"[^\w.~-]+", each))}
        return any(word in text for word in words if len(word) >= _SHORTEST_SECRET)

    def __repr__(self) -> str:
        return f"<RemoteAgent {self.place}, headers: {', '.join(sorted(self.headers)) or '-'}>"


# The parser of addresses costs more at import than this module: it comes with the first address.


def _split(url: str) -> SplitResult:
    from urllib.parse import urlsplit

    return urlsplit(url)


def _unquoted(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text)


def _decoded(word: str) -> str:
    """What Basic authentication hides."""
    try:
        return b64decode(word, validate=True).decode()
    except ValueError:
        return ""


def is_header_value(text: str) -> bool:
    """One with a newline could say more than it should."""
    return text.isascii() and text.isprintable()


def is_remote(word: str) -> bool:
    """Whether a word is the address of an agent rather than a command."""
    scheme, separator, _ = word.partition("://")
    return bool(separator) and scheme.lower() in SCHEMES


def _problem(url: str) -> str:
    try:
        parts = _split(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"an address that cannot be parsed ({error})"
    if parts.scheme not in SCHEMES or not host:
        return "an address must start with ws://, wss://, http:// or https:// and name a host"
    if any(letter.isspace() or not letter.isprintable() for letter in url):
        return "an address must not contain spaces or control characters"
    return ""


def host_of(parts: SplitResult) -> str:
    """The host and its port, without what may be before them."""
    return parts.netloc.rpartition("@")[2]


ProxyTarget: TypeAlias = AgentCommand | RemoteAgent
"""How a proxy is started, or where it is reached."""


def way_to(
    agent: AgentCommand | RemoteAgent | Transport,
    proxies: Sequence[ProxyTarget] = (),
    *,
    at_work: Callable[[str], bool] = lambda session_id: False,
    fence: Enclosure | None = None,
) -> Start:
    """How to connect to an agent, through its proxies if it has any, with a new connection each
    time.

    `at_work` is for the route to an agent elsewhere. The fence is around the agent, not around its
    proxies. Raises ValueError for a proxy that cannot be one.
    """
    if not proxies:
        return _start(agent, at_work, fence)
    for proxy in proxies:
        check_proxy(proxy)
    several = len(proxies) > 1
    from dragoman.transport.proxy_chain import ChainTransport, Component

    components = [
        Component(
            "proxy",
            name_of(proxy),
            _start(proxy, at_work),
            f" ({number} of {len(proxies)})" if several else "",
        )
        for number, proxy in enumerate(proxies, 1)
    ]
    components.append(Component("agent", name_of(agent), _start(agent, at_work, fence)))
    return partial(ChainTransport.start, components)


def check_proxy(proxy: ProxyTarget) -> None:
    """Raises ValueError: Streamable HTTP sorts messages by session, and wrapped ones name none."""
    if isinstance(proxy, RemoteAgent) and not proxy.url.lower().startswith(("ws://", "wss://")):
        raise ValueError("a remote proxy needs a ws:// or wss:// address")


def agent_name(agent: str | AgentCommand | RemoteAgent | Transport) -> str:
    """What an agent is called that was given no name."""
    match agent:
        case str():
            return RemoteAgent(agent).name if is_remote(agent) else agent
        case RemoteAgent():
            return agent.name
        case AgentCommand():
            return os.path.basename(agent.command)
        case _:
            return ""


def named(
    agent: AgentCommand | RemoteAgent | Transport, name: str
) -> AgentCommand | RemoteAgent | Transport:
    """The agent with the name that people know it by, if its command does not say it."""
    if not isinstance(agent, AgentCommand) or name == os.path.basename(agent.command):
        return agent
    return msgspec.structs.replace(agent, name=name)


def side_of(
    agent: AgentCommand | RemoteAgent | Transport, proxies: Sequence[ProxyTarget]
) -> Side | None:
    """Where the folders are; what is here is served to one elsewhere only if that was said."""
    side = agent.files if isinstance(agent, AgentCommand | RemoteAgent) else "here"
    all_here = all(proxy.files == "here" for proxy in proxies)
    return side if all_here or side != "here" else None


def name_of(target: AgentCommand | RemoteAgent | Transport) -> str:
    """What it is called in errors; nothing that could be a secret."""
    match target:
        case AgentCommand():
            return target.command
        case RemoteAgent():
            return target.place
        case _:
            return "in memory"


def processes_of(transport: Transport) -> list[int]:
    """The processes behind it that were started here, the agent's being the last."""
    if isinstance(transport, StdioTransport):
        return [transport.pid]
    from dragoman.transport.proxy_chain import ChainTransport

    return transport.pids if isinstance(transport, ChainTransport) else []


def _start(
    target: AgentCommand | RemoteAgent | Transport,
    at_work: Callable[[str], bool],
    fence: Enclosure | None = None,
) -> Start:
    match target:
        case AgentCommand():
            return partial(StdioTransport.start, target, fence)
        case RemoteAgent():
            return _Reached(target, at_work)
        case _:
            return partial(_itself, target)


async def _itself(transport: Transport) -> Transport:
    return transport


class _Reached:
    """One elsewhere; what it told us to keep, such as cookies, is kept from time to time."""

    def __init__(self, agent: RemoteAgent, at_work: Callable[[str], bool]) -> None:
        self._agent = agent
        self._at_work = at_work
        self._connect: Start | None = None

    async def __call__(self) -> Transport:
        if self._connect is None:
            from dragoman.transport.reconnection import ReconnectingRoute  # brings networks along

            self._connect = ReconnectingRoute(self._agent, self._at_work).connect
        return await self._connect()
