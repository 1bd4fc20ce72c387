"""The interface between the dialects and the client, in both directions.

A dialect turns what an agent sends into calls on `Host`, and what the client wants into messages:
there is one for each version of the protocol, and nothing above them knows which one is spoken.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias

import msgspec

from dragoman.client.capabilities import AgentCapabilities, AgentInfo, AuthMethod, SessionInfo
from dragoman.client.mcp import McpHandler, McpServer
from dragoman.errors import DragomanError
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import PermissionAnswer, Subject
from dragoman.host.terminals.provider import TerminalCommand, TerminalExit, TerminalSnapshot
from dragoman.session.content import Content
from dragoman.session.events import Event, ToolCallUpdated
from dragoman.session.facts import ConfigOption, PermissionOption, TokenUsage
from dragoman.session.state import SessionState
from dragoman.session.terminals import OutputQuota
from dragoman.wire.fast_path import Usual


class Welcome(msgspec.Struct, kw_only=True):
    """What an agent answers to the handshake."""

    protocol_version: int
    agent: AgentInfo
    capabilities: AgentCapabilities
    auth_methods: list[AuthMethod]
    meta: dict[str, Any] | None = None


class Opened(msgspec.Struct):
    """A session the agent opened, and what it told about it at once."""

    session_id: str
    facts: list[Event]
    meta: dict[str, Any] | None = None


class Finished(msgspec.Struct):
    """How the agent says a turn ended; with an `error`, that is how."""

    stop_reason: str
    usage: TokenUsage | None = None
    meta: dict[str, Any] | None = None
    error: DragomanError | None = None


class Place(msgspec.Struct, kw_only=True):
    """Where a session works and what it brings along; shared by new, load, resume and fork.

    The `additional_directories` are sent only to an agent that accepts them.
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
    """What is known of the session already; it continues from there."""
    recorder: Callable[[list[Event]], None] | None = None
    """Called with the events of each read, in order, before they become part of the state."""
    quota: OutputQuota | None = None
    """How much of what terminals print is an event; without one, all of it."""
    request_id: bytes | None = None
    """That of the call which opens it, while one does."""
    asked: list[Event] = []
    """What the agent asked meanwhile, and what was answered."""

    def is_opened_by(self, request_id: bytes) -> None:
        """What the agent asks about that request, it asks about this place."""
        self.request_id = request_id


OWN_OPTION = "dragoman."
"""Begins the ids of config options that a dialect made of something else: when an agent tells its
options again, it does not mention these."""


Meta: TypeAlias = dict[str, Any] | None
"""What ACP calls `_meta`."""


class Host(Protocol):
    """What a dialect needs of the client to serve the agent."""

    def on_events(self, session_id: str, events: list[Event], size: int) -> None:
        """`size` is how many bytes the events came in."""
        ...

    def known(self, session_id: str) -> SessionState | None:
        """What is known of an open session, for an agent that tells only what changed."""
        ...

    def on_elicitation_complete(self, elicitation_id: str) -> None: ...

    async def read_text_file(
        self, session_id: str, path: str, line: int | None, limit: int | None
    ) -> str: ...

    async def write_text_file(self, session_id: str, path: str, content: str) -> None: ...

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdated | None,
        options: list[PermissionOption],
        subject: Subject = ...,
    ) -> PermissionAnswer: ...

    async def create_elicitation(
        self, session_id: str | None, request: ElicitationRequest, tied_to: bytes | None = None
    ) -> ElicitationAnswer:
        """Without a session it is tied to a request of ours, by its id as JSON."""
        ...

    def asks_outside(self) -> bool:
        """Whether a request of ours waits for a person."""
        ...

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str: ...

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalSnapshot: ...

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str) -> TerminalExit: ...

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None: ...

    async def release_terminal(self, session_id: str, terminal_id: str) -> None: ...

    notify: Callable[[str, bytes], None]
    """Sends the agent a notification."""

    def mcp_server(self, server_id: str) -> McpHandler:
        """Raises ResourceNotFound."""
        ...


Prompt = list[Content]
OnOpened = Callable[[Opened], None]
"""Runs in wire order: before any update that follows the reply."""


class InboundHandler(Protocol):
    """What the agent sends, as the peer hands it on."""

    def on_notification(self, method: str, params: msgspec.Raw) -> None: ...

    def on_request(
        self, method: str, params: msgspec.Raw
    ) -> Coroutine[Any, Any, bytes] | bytes: ...

    def usual(self) -> Usual[Any]:
        """How nearly everything that an agent sends is read and handled."""
        ...


class Dialect(Protocol):
    """What a client says to an agent; methods raise what `Peer.call` raises, and InvalidMessage.

    A method the agent did not advertise is not called; one the version does not have raises
    Unsupported.
    """

    async def authenticate(self, method_id: str, meta: Meta = None) -> None: ...

    async def logout(self) -> None: ...

    async def auth_status(self) -> str: ...

    async def list_providers(self, meta: Meta = None) -> list[dict[str, Any]]: ...

    async def set_provider(
        self,
        provider_id: str,
        api_type: str,
        base_url: str,
        headers: dict[str, str],
        meta: Meta = None,
    ) -> None: ...

    async def disable_provider(self, provider_id: str, meta: Meta = None) -> None: ...

    async def new_session(self, place: Place, on_opened: OnOpened) -> None: ...

    async def load_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        """With its history, told again before `on_opened`."""
        ...

    async def resume_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None: ...

    async def fork_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None: ...

    async def list_sessions(
        self, cwd: str | None, cursor: str | None, meta: Meta = None
    ) -> tuple[list[SessionInfo], str | None]: ...

    async def delete_session(self, session_id: str) -> None: ...

    async def close_session(self, session_id: str) -> None: ...

    def forget(self, session_id: str) -> None:
        """Nothing is kept of a session that was closed here, whatever the agent received."""
        ...

    async def archive_session(self, session_id: str) -> None: ...

    async def unarchive_session(self, session_id: str) -> None: ...

    async def session_status(self, session_id: str) -> str: ...

    async def set_session_title(self, session_id: str, title: str) -> str: ...

    async def prompt(
        self,
        session_id: str,
        prompt: Prompt,
        meta: dict[str, Any] | None,
        on_finished: Callable[[Finished], None],
    ) -> None:
        """Returns when the turn is over; `on_finished` runs in wire order: behind the turn's last
        update, before any later one."""
        ...

    def cancel(self, session_id: str) -> None: ...

    async def cancel_tool_call(self, session_id: str, tool_call_id: str) -> None: ...

    async def cancel_terminal(self, session_id: str, terminal_id: str) -> None: ...

    async def set_mode(self, session_id: str, mode_id: str, meta: Meta = None) -> None: ...

    async def set_config_option(
        self, session_id: str, option: ConfigOption, value: str | bool, meta: Meta = None
    ) -> list[ConfigOption] | None:
        """Every option after the change, if the agent tells them."""
        ...
