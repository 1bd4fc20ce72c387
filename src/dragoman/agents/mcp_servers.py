"""MCP servers with a name, which the agent itself starts or connects to."""

from __future__ import annotations

import msgspec


class StdioServer(msgspec.Struct, kw_only=True):
    """An MCP server that the agent starts; nearly every agent supports these."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class HttpServer(msgspec.Struct, kw_only=True):
    """An MCP server at an HTTP address."""

    name: str
    url: str
    headers: dict[str, str] = {}


class SseServer(msgspec.Struct, kw_only=True):
    """An MCP server at an address that speaks SSE."""

    name: str
    url: str
    headers: dict[str, str] = {}
