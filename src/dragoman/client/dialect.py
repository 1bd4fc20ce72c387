"""Between the dialects and the client: the words in which both sides speak of a connection.

A dialect turns what an agent sends into calls on `Host`, and what the client wants into messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from dragoman.client.capabilities import AgentCapabilities, AgentInfo, AuthMethod
from dragoman.client.mcp import McpHandler, McpServer
from dragoman.host.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions import PermissionAnswer
from dragoman.host.terminals import TerminalCommand, TerminalExit, TerminalSnapshot
from dragoman.session.content import Content
from dragoman.session.events import Event, ToolCallUpdated
from dragoman.session.facts import PermissionOption, TokenUsage
from dragoman.session.state import SessionState


class Welcome(msgspec.Struct, kw_only=True):
    """What an agent answers to the handshake."""

    protocol_version: int
    agent: AgentInfo
    capabilities: AgentCapabilities
    auth_methods: list[AuthMethod]


class Opened(msgspec.Struct):
    """A session the agent opened, and what it told about it at once."""

    session_id: str
    facts: list[Event]


class Finished(msgspec.Struct):
    """How the agent says a turn ended."""

    stop_reason: str
    usage: TokenUsage | None = None
    meta: dict[str, Any] | None = None


class Place(msgspec.Struct, kw_only=True):
    """Where a session works and what it brings along; shared by new, load, resume and fork.

    Of the `additional_directories` the agent is told only when it takes any.
    """

    cwd: str
    additional_directories: list[str] = []
    tell_directories: bool = True
    mcp_servers: list[McpServer] = []
    system_prompt: str | None = None
    meta: dict[str, Any] | None = None
    notes: list[str] = []
    """A sentence for each thing that had to be left out."""
    history: SessionState | None = None
    """What is known of the session already; it goes on from there."""
    listen: Callable[[Event], None] | None = None
    """Told of every event of the session as it happens."""


OWN_OPTION = "dragoman."
"""Begins the ids of config options that a dialect made of something else: when an agent tells its
options anew, it does not speak of these."""


class Host(Protocol):
    """What a dialect needs of the client to serve the agent."""

    def on_event(self, session_id: str, event: Event, size: int) -> None:
        """`size` is how many bytes the event came in."""
        ...

    def on_elicitation_complete(self, elicitation_id: str) -> None: ...

    async def read_text_file(
        self, session_id: str, path: str, line: int | None, limit: int | None
    ) -> str: ...

    async def write_text_file(self, session_id: str, path: str, content: str) -> None: ...

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdated, options: list[PermissionOption]
    ) -> PermissionAnswer: ...

    async def create_elicitation(
        self, session_id: str | None, request: ElicitationRequest
    ) -> ElicitationAnswer: ...

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str: ...

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalSnapshot: ...

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str) -> TerminalExit: ...

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None: ...

    async def release_terminal(self, session_id: str, terminal_id: str) -> None: ...

    def mcp_server(self, server_id: str) -> McpHandler:
        """Raises ResourceNotFound."""
        ...


Prompt = list[Content]
