"""MCP servers that a session passes to its agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import msgspec

from dragoman.agents.settings.mcp_settings import HttpServer, SseServer, StdioServer
from dragoman.client.capabilities import AgentCapabilities

McpHandler: TypeAlias = Callable[[str, dict[str, Any] | None], Awaitable[Any]]


class InProcessServer(msgspec.Struct, kw_only=True):
    """An MCP server in this process. The agent reaches it through the ACP connection or, if the
    agent runs on this machine without MCP over ACP, through a small program that it starts.

    `handle(method, params)` answers an MCP request, such as `tools/list` or `tools/call`, with
    its result. What it raises becomes the error: a RemoteError as it is, anything else as an
    internal one. `id` must be unique on the connection. If the agent uses the small
    program, Dragoman itself answers `initialize` (with these `capabilities`) and `ping`.
    """

    name: str
    id: str
    handle: McpHandler
    capabilities: dict[str, Any] = msgspec.field(default_factory=lambda: {"tools": {}})

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send the agent an MCP notification about the request that `handle` is answering, such as
        `notifications/progress`.

        Raises RuntimeError elsewhere: ACP ties every one of them to a request.
        """
        tell = _telling.get()
        if tell is None:
            raise RuntimeError("an MCP notification can only be sent while handling a request")
        tell(method, params)


_Tell: TypeAlias = Callable[[str, dict[str, Any] | None], None]
_telling: ContextVar[_Tell | None] = ContextVar("telling", default=None)


@contextmanager
def telling(tell: _Tell) -> Generator[None]:
    """What servers notify meanwhile, in this task, goes here."""
    token = _telling.set(tell)
    try:
        yield
    finally:
        _telling.reset(token)


McpServer: TypeAlias = StdioServer | HttpServer | SseServer | InProcessServer


def supported(
    servers: Iterable[McpServer], agent: AgentCapabilities, *, is_here: bool
) -> tuple[list[McpServer], list[str]]:
    """The servers the agent can use, and a sentence for each that has to be left out. An agent that
    runs here can use servers of this process without MCP over ACP.

    Raises TypeError for an invalid server.
    """
    kept: list[McpServer] = []
    left_out: list[str] = []
    for server in servers:
        if (transport := _missing(server, agent, is_here)) is None:
            kept.append(server)
        else:
            left_out.append(f"MCP server {server.name!r} left out: the agent has no {transport}")
    return kept, left_out


def _missing(server: McpServer, agent: AgentCapabilities, is_here: bool) -> str | None:
    match server:
        case StdioServer():
            return None if agent.mcp_stdio else "stdio transport for MCP"
        case HttpServer():
            return None if agent.mcp_http else "HTTP transport for MCP"
        case SseServer():
            return None if agent.mcp_sse else "SSE transport for MCP"
        case InProcessServer():
            return None if agent.mcp_acp or (is_here and agent.mcp_stdio) else "MCP over ACP"
        case _:
            raise TypeError(f"expected a server such as StdioServer, not {type(server).__name__}")
