"""MCP servers that a session brings along for the agent to use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from dragoman.client.capabilities import AgentCapabilities

McpHandler: TypeAlias = Callable[[str, dict[str, Any] | None], Awaitable[Any]]


class StdioServer(msgspec.Struct, kw_only=True):
    """A server the agent starts itself; nearly every agent supports these."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class HttpServer(msgspec.Struct, kw_only=True):
    name: str
    url: str
    headers: dict[str, str] = {}


class SseServer(msgspec.Struct, kw_only=True):
    name: str
    url: str
    headers: dict[str, str] = {}


class InProcessServer(msgspec.Struct, kw_only=True):
    """A server in our own process, reached by the agent through the ACP connection.

    `handle(method, params)` answers an MCP request with its result, such as `tools/list` or
    `tools/call`. What it raises becomes the error: a RemoteError as it is, anything else as an
    internal one. `id` must be unique on the connection.
    """

    name: str
    id: str
    handle: McpHandler


McpServer: TypeAlias = StdioServer | HttpServer | SseServer | InProcessServer


def supported(
    servers: Iterable[McpServer], agent: AgentCapabilities
) -> tuple[list[McpServer], list[str]]:
    """The servers the agent can use, and a sentence for each that has to be left out."""
    kept: list[McpServer] = []
    left_out: list[str] = []
    for server in servers:
        if (transport := _missing(server, agent)) is None:
            kept.append(server)
        else:
            left_out.append(f"MCP server {server.name!r} left out: the agent has no {transport}")
    return kept, left_out


def _missing(server: McpServer, agent: AgentCapabilities) -> str | None:
    match server:
        case StdioServer() if not agent.mcp_stdio:
            return "stdio transport for MCP"
        case HttpServer() if not agent.mcp_http:
            return "HTTP transport for MCP"
        case SseServer() if not agent.mcp_sse:
            return "SSE transport for MCP"
        case InProcessServer() if not agent.mcp_acp:
            return "MCP over ACP"
        case _:
            return None
