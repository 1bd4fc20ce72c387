"""The way to an agent: a process to start, an address to reach, and the proxies before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from dragoman.transport.base import Start, Transport
from dragoman.transport.proxy_chain import ChainTransport, Component
from dragoman.transport.remote_address import RemoteAgent
from dragoman.transport.stdio import AgentCommand, StdioTransport

ProxyTarget: TypeAlias = AgentCommand | RemoteAgent
"""How a proxy is started, or where it is reached."""


def way_to(
    agent: AgentCommand | RemoteAgent | Transport,
    proxies: Sequence[ProxyTarget] = (),
    *,
    at_work: Callable[[str], bool] = lambda session_id: False,
) -> Start:
    """How to connect to an agent, through its proxies if it has any, with a new connection each
    time.

    `at_work` is for the route to an agent elsewhere. Raises ValueError for a proxy that cannot
    be one.
    """
    if not proxies:
        return _start(agent, at_work)
    for proxy in proxies:
        check_proxy(proxy)
    several = len(proxies) > 1
    components = [
        Component(
            "proxy",
            name_of(proxy),
            _start(proxy, at_work),
            f" ({number} of {len(proxies)})" if several else "",
        )
        for number, proxy in enumerate(proxies, 1)
    ]
    components.append(Component("agent", name_of(agent), _start(agent, at_work)))
    return partial(ChainTransport.start, components)


def check_proxy(proxy: ProxyTarget) -> None:
    """Raises ValueError: Streamable HTTP sorts messages by session, and wrapped ones name none."""
    if isinstance(proxy, RemoteAgent) and not proxy.url.lower().startswith(("ws://", "wss://")):
        raise ValueError("a remote proxy needs a ws:// or wss:// address")


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
    match transport:
        case StdioTransport():
            return [transport.pid]
        case ChainTransport():
            return transport.pids
        case _:
            return []


def _start(target: AgentCommand | RemoteAgent | Transport, at_work: Callable[[str], bool]) -> Start:
    match target:
        case AgentCommand():
            return partial(StdioTransport.start, target)
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
