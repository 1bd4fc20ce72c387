"""MCP servers in settings, and in the files that other programs keep them in."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import msgspec

from dragoman.agents.settings.setting_keys import MCP_KEYS
from dragoman.agents.settings.value_reader import ValueReader, settings_text
from dragoman.errors import ConfigError
from dragoman.host.rules.policy_file import read_strict_json


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


NamedServer: TypeAlias = StdioServer | HttpServer | SseServer

_LOCAL = "stdio"
_HTTP = ("http", "streamable-http", "streamableHttp")
"""What other programs call the transport that ACP calls `http`."""


def load_mcp_config(path: str | os.PathLike[str]) -> tuple[NamedServer, ...]:
    """The servers in a file as other programs write it: an object `mcpServers`, by name. Raises
    ConfigError."""
    try:
        from pathlib import Path

        text = settings_text(Path(path))
    except FileNotFoundError:
        raise ConfigError(str(path), "", "a file, but there is none") from None
    return McpReader(str(path)).file(read_strict_json(text, str(path)))


def joined(
    servers: tuple[NamedServer, ...], more: tuple[NamedServer, ...]
) -> tuple[NamedServer, ...]:
    """All of them; one with the name of an earlier one takes its place."""
    return tuple({server.name: server for server in (*servers, *more)}.values())


class McpReader(ValueReader):
    def settings(self, top: dict[str, Any]) -> tuple[NamedServer, ...]:
        """Of both keys; a name may be there only once."""
        named = self._named(top.get("mcpServers", {}))
        listed = self._list(top.get("mcp_servers", []), "mcp_servers")
        servers = [self._listed(each, f"mcp_servers[{i}]") for i, each in enumerate(listed)]
        for server in servers:
            if any(server.name == other.name for other in named):
                self._fail(f"mcpServers.{server.name}", "a name that is not in mcp_servers too")
        return (*servers, *named)

    def file(self, document: Any) -> tuple[NamedServer, ...]:
        top = self._object(document, "", {"mcpServers"})
        if "mcpServers" not in top:
            self._fail("mcpServers", "an object of MCP servers, by name")
        return self._named(top["mcpServers"])

    def _named(self, value: Any) -> tuple[NamedServer, ...]:
        entries = self._object(value, "mcpServers").items()
        return tuple(self._server(name, each, f"mcpServers.{name}") for name, each in entries)

    def _listed(self, value: Any, place: str) -> NamedServer:
        entry = self._object(value, place, MCP_KEYS)
        return self._server(self._word(entry.get("name"), f"{place}.name"), value, place)

    def _server(self, name: str, value: Any, place: str) -> NamedServer:
        entry = self._object(value, place, MCP_KEYS)
        kind = self._kind(entry, place)
        if kind == _LOCAL:
            return StdioServer(
                name=name,
                command=self._word(entry.get("command"), f"{place}.command"),
                args=self._strings(entry.get("args", []), f"{place}.args"),
                env=self._variables(entry.get("env", {}), f"{place}.env"),
            )
        there = SseServer if kind == "sse" else HttpServer
        return there(
            name=name,
            url=self._word(entry.get("url"), f"{place}.url"),
            headers=self._mapping(entry.get("headers", {}), f"{place}.headers"),
        )

    def _kind(self, entry: dict[str, Any], place: str) -> str:
        kind = entry.get("type")
        if kind is None:
            if "command" not in entry and "url" not in entry:
                self._fail(place, "either a command (a string) or a url (a string)")
            return _LOCAL if "command" in entry else "http"
        if kind not in (_LOCAL, "sse", *_HTTP):
            self._fail(f"{place}.type", '"stdio", "http" or "sse"')
        return kind
