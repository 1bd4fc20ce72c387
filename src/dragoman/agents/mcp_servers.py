"""MCP servers that are named, and started or reached by the agent itself."""

from __future__ import annotations

import msgspec


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
