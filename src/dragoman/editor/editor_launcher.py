"""Starts agents for sessions of editors: with the editor's files, terminals and MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from dragoman.agents.listing import list_agents
from dragoman.client.client import Client
from dragoman.client.mcp import McpServer
from dragoman.data_directory import data_directory
from dragoman.editor.open_editors import Editors, OpenEditors
from dragoman.editor.services.editor_files import EditorFiles
from dragoman.editor.services.editor_terminals import EditorTerminals
from dragoman.errors import ConfigError
from dragoman.host.terminals.pty import LocalTerminals
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport


class EditorPlace(msgspec.Struct, kw_only=True, frozen=True):
    """What an editor says about a session when it opens one. It is not stored: MCP servers may
    come with secrets."""

    cwd: str
    additional_directories: Sequence[str] = ()
    mcp_servers: Sequence[McpServer] = ()


def start_served(
    target: AgentCommand | RemoteAgent | Transport, editors: Editors, **options: Any
) -> Client:
    """As `Client.start`, with files and terminals of the editors that have a session open.

    Not for an agent in a fence: an editor is outside. It opens a path by its name, and what that
    leads to may have changed since it was checked.
    """
    if options.get("fence") is not None:
        return Client.start(target, **options)
    own, closed = OpenEditors(editors), [str(data_directory())]
    options["files"] = EditorFiles(own, forbidden=closed)
    options["terminals"] = EditorTerminals(own, LocalTerminals(forbidden=closed))
    own.client = Client.start(target, **options)
    return own.client


class EditorLauncher(SettingsLauncher):
    """As the settings say. `places` has what an editor said of each session that it opened."""

    def __init__(
        self, *args: Any, places: dict[str, EditorPlace], editors: Editors, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._places = places
        self._editors = editors

    def start(self, target: AgentCommand | RemoteAgent, **options: Any) -> Client:
        """With the editor's files and terminals, unless they would be outside a fence."""
        return start_served(target, self._editors, **options)

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        place = self._places.get(session_id)
        own = () if place is None else place.mcp_servers
        names = {server.name for server in own}
        general = super().mcp_servers(session_id)
        return [*(server for server in general if server.name not in names), *own]

    def usable(self) -> list[str]:
        """The agents that can be started; none while the settings cannot be read."""
        with suppress(ConfigError):
            return [each.name for each in list_agents(self.settings()) if each.state != "missing"]
        return []
