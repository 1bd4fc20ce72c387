"""The interface between the dialects and the client, in both directions.

A dialect turns what an agent sends into calls on `Host`, and what the client wants into messages:
there is one for each version of the protocol, and nothing above them knows which one is spoken.
Each says in its own module only what the other does not say alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

import msgspec

from dragoman.agents.extensions import STEERING, said
from dragoman.agents.sign_ins import AuthStatus, status_from
from dragoman.client.capabilities import AgentCapabilities, AgentInfo, AuthMethod, SessionInfo
from dragoman.client.client_options import Timeouts
from dragoman.client.dialects import steer_calls
from dragoman.client.dialects.extension_methods import extension_name
from dragoman.client.dialects.steer_calls import OnSteerReply, run_reply, steering_reply
from dragoman.client.dialects.translation import (
    Schema,
    block_of,
    config_options,
    mcp_server,
    session_info,
)
from dragoman.client.mcp import InProcessServer, McpHandler, McpServer, StdioServer
from dragoman.errors import DragomanError, InvalidMessage, RemoteError, Unsupported
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import PermissionAnswer, Subject
from dragoman.host.terminals.provider import TerminalCommand, TerminalExit, TerminalSnapshot
from dragoman.rpc import Peer
from dragoman.schema import codec
from dragoman.schema.model import Unknown
from dragoman.session.content import Content, Text
from dragoman.session.events import Event, ToolCallUpdated
from dragoman.session.facts import (
    ConfigOption,
    OnLimit,
    PermissionOption,
    SteerWay,
    SystemPrompt,
    TokenUsage,
)
from dragoman.session.limits.delivery import Delivery
from dragoman.session.limits.output_quota import OutputQuota
from dragoman.session.limits.spending import Meter, Spending
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.session.state import SessionState
from dragoman.session.state_limits import LIMITS, fitted
from dragoman.wire.fast_path import Usual

if TYPE_CHECKING:
    from dragoman.agents.settings.settings_file import ModelProvider

T = TypeVar("T")


class Welcome(msgspec.Struct, kw_only=True):
    """What an agent answers to the handshake; nothing is known of it before."""

    protocol_version: int = 0
    agent: AgentInfo = msgspec.field(default_factory=AgentInfo)
    capabilities: AgentCapabilities = msgspec.field(default_factory=AgentCapabilities)
    auth_methods: list[AuthMethod] = []
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


class Ledger(Protocol):
    """Knows what all sessions of the store have used."""

    seconds: float
    """How often it is worth to be looked at while a turn runs."""

    async def spent(self, limit: SpendingLimit, turn_id: str) -> Spending:
        """By all turns that a shared limit is about, except this one."""
        ...


class Place(msgspec.Struct, kw_only=True):
    """Where a session works and what it brings along; shared by new, load, resume and fork.

    The `additional_directories` are sent only to an agent that accepts them.
    """

    cwd: str
    additional_directories: list[str] = []
    tell_directories: bool = True
    mcp_servers: list[McpServer] = []
    programs: dict[str, StdioServer] = {}
    """By id: what the agent starts to reach a server of this process."""
    system_prompt: SystemPrompt | None = None
    meta: dict[str, Any] | None = None
    notes: list[str] = []
    """A sentence for each thing that had to be left out."""
    history: SessionState | None = None
    """What is known of the session already; it continues from there."""
    recorder: Callable[[list[Event]], None] | None = None
    """Called with the events of each read, in order, before they become part of the state."""
    quota: OutputQuota | None = None
    """How much of what terminals print is an event; without one, all of it."""
    meter: Meter | None = None
    """What the session has used already, for its limits."""
    delivery: Delivery | None = None
    """Finds out whether the agent has the prompt that is parked, if that is in doubt."""
    ledger: Ledger | None = None
    """What all other sessions use; without one there is no limit on that."""
    limits: Sequence[SpendingLimit] = ()
    """Of this session, besides those of its client."""
    on_limit: OnLimit | None = None
    """For this session, whatever that of its client is."""
    question_timeout: float | None = None
    """The same."""
    request_id: bytes | None = None
    """That of the call which opens it, while one does."""
    asked: list[Event] = []
    """What the agent asked meanwhile, and what was answered."""

    def servers_to_tell(self) -> list[McpServer]:
        """The servers as the agent receives them."""
        return [
            self.programs.get(each.id, each) if isinstance(each, InProcessServer) else each
            for each in self.mcp_servers
        ]

    def is_opened_by(self, request_id: bytes) -> None:
        """What the agent asks about that request, it asks about this place."""
        self.request_id = request_id


Meta: TypeAlias = dict[str, Any] | None
"""What ACP calls `_meta`."""


class PulledSteers(msgspec.Struct, frozen=True):
    """Steers by their ids, for an agent that asks; `more` says that other prompts wait."""

    steers: dict[str, list[Content]]
    more: bool


class Host(Protocol):
    """What a dialect needs of the client to serve the agent."""

    def on_events(self, session_id: str, events: list[Event], size: int) -> None:
        """`size` is how many bytes the events came in."""
        ...

    def known(self, session_id: str) -> SessionState | None:
        """What is known of an open session, for an agent that tells only what changed."""
        ...

    def on_elicitation_complete(self, elicitation_id: str) -> None: ...

    def on_auth_status(self, status: AuthStatus) -> None:
        """The agent says whether it is signed in."""
        ...

    def on_run(self, session_id: str, run_id: str | None) -> None:
        """The agent names the run that a steer is for; None when it is over."""
        ...

    def on_tokens(self, session_id: str, usage: TokenUsage) -> None:
        """What one request to the model has used."""
        ...

    async def pull_steers(self, session_id: str) -> PulledSteers:
        """What was said meanwhile, for an agent that asks for it."""
        ...

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
    drain: Callable[[], Awaitable[None]]
    """Sends the agent a notification."""

    def on_extension(self, method: str, params: msgspec.Raw) -> bool:
        """A notification that is not ACP's; whether anyone listens."""
        ...

    def extension(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes]:
        """The result of a request that is not ACP's. Raises MethodNotFound."""
        ...

    def mcp_server(self, server_id: str) -> McpHandler:
        """Raises ResourceNotFound."""
        ...


Prompt = list[Content]
OnOpened = Callable[[Opened], None]
"""Runs in wire order: before any update that follows the reply."""
OnFinished = Callable[[Finished], None]


class InboundHandler(Protocol):
    """What the agent sends, as the peer hands it on."""

    def on_notification(self, method: str, params: msgspec.Raw) -> None: ...

    def on_request(
        self, method: str, params: msgspec.Raw
    ) -> Coroutine[Any, Any, bytes] | bytes: ...

    def usual(self) -> Usual[Any]:
        """How nearly everything that an agent sends is read and handled."""
        ...


class Dialect(ABC):
    """What a client says to an agent; methods raise what `Peer.call` raises, and InvalidMessage.

    What both versions say alike is here, in the structs of the version's `schema`. A method the
    agent did not advertise is not called; one the version does not have raises Unsupported.
    """

    schema: ClassVar[Schema]
    capabilities_field: ClassVar[str]
    """Where the answer to `initialize` has the agent's capabilities."""
    plain_value: ClassVar[str | None]
    """The type of a config option's value that is not a boolean."""

    def __init__(self, peer: Peer, timeouts: Timeouts) -> None:
        self._peer = peer
        self._timeouts = timeouts
        self.reply_meta: dict[str, dict[str, Any]] = {}
        """The `_meta` of the newest reply to a method, if it had one."""

    # ── the connection ────────────────────────────────────────────────────────────────────────

    def welcome(self, raw: msgspec.Raw) -> Welcome:
        """The answer to `initialize`."""
        reply = codec.decode(raw, self.schema.InitializeResponse)
        capabilities = self._capabilities(reply)
        capabilities.raw = _as_it_came(raw, self.capabilities_field)
        if (said(reply.meta, STEERING) or said(capabilities.raw.get("_meta"), STEERING)) is True:
            capabilities.steer = "steering"
        methods = (method for method in reply.auth_methods if not isinstance(method, Unknown))
        return Welcome(
            protocol_version=reply.protocol_version,
            agent=self._agent_info(reply),
            capabilities=capabilities,
            auth_methods=[self._auth_method(method) for method in methods],
            meta=reply.meta,
        )

    @abstractmethod
    def _agent_info(self, reply: Any) -> AgentInfo: ...

    @abstractmethod
    def _capabilities(self, reply: Any) -> AgentCapabilities: ...

    @abstractmethod
    def _auth_method(self, wire: Any) -> AuthMethod: ...

    @abstractmethod
    async def authenticate(self, method_id: str, meta: Meta = None) -> None: ...

    async def _sign_in(self, method: str, request: msgspec.Struct) -> None:
        # Signing in may take a person as long as it takes.
        await self._peer.call(
            method, codec.encode(request), on_reply=lambda raw: self._keep_meta(method, raw)
        )

    @abstractmethod
    async def logout(self, meta: Meta = None) -> None: ...

    async def auth_status(self, meta: Meta = None) -> AuthStatus:
        request = self.schema.AuthStatusRequest(meta=meta)
        reply = await self._control("auth/status", request, self.schema.AuthStatusResponse)
        return status_from(reply.state, reply.accounts)

    async def list_providers(self, meta: Meta = None) -> list[dict[str, Any]]:
        request = self.schema.ListProvidersRequest(meta=meta)
        reply = await self._control("providers/list", request, self.schema.ListProvidersResponse)
        return [msgspec.to_builtins(provider) for provider in reply.providers]

    async def set_provider(
        self, provider_id: str, provider: ModelProvider | None, meta: Meta = None
    ) -> None:
        """None switches it off."""
        if provider is None:
            off = self.schema.DisableProviderRequest(provider_id=provider_id, meta=meta)
            await self._control("providers/disable", off, self.schema.DisableProviderResponse)
            return
        fields = msgspec.structs.asdict(provider)
        request = self.schema.SetProviderRequest(provider_id=provider_id, meta=meta, **fields)
        await self._control("providers/set", request, self.schema.SetProviderResponse)

    # ── opening sessions ──────────────────────────────────────────────────────────────────────

    async def new_session(self, place: Place, on_opened: OnOpened) -> None:
        request = self.schema.NewSessionRequest(**self._workplace(place))
        reply_type = self.schema.NewSessionResponse
        await self._open("session/new", request, reply_type, None, place, on_opened)

    @abstractmethod
    async def load_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        """With its history, told again before `on_opened`."""

    async def resume_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        request = self.schema.ResumeSessionRequest(session_id=session_id, **self._workplace(place))
        reply_type = self.schema.ResumeSessionResponse
        await self._open("session/resume", request, reply_type, session_id, place, on_opened)

    async def fork_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        request = self.schema.ForkSessionRequest(session_id=session_id, **self._workplace(place))
        reply_type = self.schema.ForkSessionResponse
        await self._open("session/fork", request, reply_type, None, place, on_opened)

    def _workplace(self, place: Place) -> dict[str, Any]:
        """The fields that every request has which opens a session.

        Without servers of a transport that this version does not have; they were left out with a
        note already, because no agent of this version can say that it takes them.
        """
        servers = (mcp_server(server, self.schema) for server in place.servers_to_tell())
        directories = place.additional_directories if place.tell_directories else []
        return {
            "cwd": place.cwd,
            "mcp_servers": [server for server in servers if server is not None],
            "additional_directories": directories,
            "system_prompt": self._system_prompt(place),
            "meta": place.meta,
        }

    def _system_prompt(self, place: Place) -> Any:
        if place.system_prompt is None:
            return None
        said = block_of(Text(place.system_prompt.text), self.schema)
        return self.schema.SystemPrompt(mode=place.system_prompt.mode, content=[said])

    async def _open(
        self,
        method: str,
        request: msgspec.Struct,
        reply_type: type[Any],
        session_id: str | None,
        place: Place,
        on_opened: OnOpened,
    ) -> None:
        def on_reply(raw: msgspec.Raw) -> None:
            data = codec.object_of(raw)
            reply = codec.decode(data, reply_type)
            known = reply.session_id if session_id is None else session_id
            on_opened(Opened(known, self._facts(reply, data), reply.meta))
            self._has_opened(known)

        with nullcontext() if session_id is None else self._reopening(session_id):
            await self._peer.call(
                method,
                codec.encode(request),
                timeout=self._timeouts.initialize,
                on_reply=on_reply,
                on_sent=place.is_opened_by,
            )

    def _reopening(self, session_id: str) -> AbstractContextManager[None]:
        """Around the call that has the agent open a session it knows."""
        return nullcontext()

    def _has_opened(self, session_id: str) -> None:  # noqa: B027  # a hook that version 1 leaves empty
        """Called right after `on_opened`."""

    @abstractmethod
    def _facts(self, reply: Any, raw: bytes | msgspec.Raw) -> list[Event]:
        """What a reply that opens a session tells about it."""

    # ── sessions the agent keeps ──────────────────────────────────────────────────────────────

    async def list_sessions(
        self,
        cwd: str | None,
        cursor: str | None,
        meta: Meta = None,
        *,
        archived: str | None = None,
    ) -> tuple[list[SessionInfo], str | None]:
        request = self.schema.ListSessionsRequest(
            cwd=cwd, cursor=cursor, archived=archived, meta=meta
        )
        reply = await self._control("session/list", request, self.schema.ListSessionsResponse)
        return [session_info(info) for info in reply.sessions], reply.next_cursor

    async def delete_session(self, session_id: str, meta: Meta = None) -> None:
        request = self.schema.DeleteSessionRequest(session_id=session_id, meta=meta)
        await self._control("session/delete", request, self.schema.DeleteSessionResponse)
        self.forget(session_id)

    async def close_session(self, session_id: str, meta: Meta = None) -> None:
        request = self.schema.CloseSessionRequest(session_id=session_id, meta=meta)
        try:
            await self._control("session/close", request, self.schema.CloseSessionResponse)
        finally:
            self.forget(session_id)

    def forget(self, session_id: str) -> None:  # noqa: B027  # version 1 keeps nothing
        """Nothing is kept of a session that was closed here, whatever the agent received."""

    async def archive_session(self, session_id: str, meta: Meta = None) -> None:
        request = self.schema.ArchiveSessionRequest(session_id=session_id, meta=meta)
        await self._control("session/archive", request, self.schema.ArchiveSessionResponse)

    async def unarchive_session(self, session_id: str, meta: Meta = None) -> None:
        request = self.schema.UnarchiveSessionRequest(session_id=session_id, meta=meta)
        await self._control("session/unarchive", request, self.schema.UnarchiveSessionResponse)

    async def session_status(self, session_id: str, meta: Meta = None) -> str:
        request = self.schema.SessionStatusRequest(session_id=session_id, meta=meta)
        reply = await self._control("session/status", request, self.schema.SessionStatusResponse)
        return reply.status

    async def set_session_title(self, session_id: str, title: str, meta: Meta = None) -> str:
        request = self.schema.SetSessionTitleRequest(session_id=session_id, title=title, meta=meta)
        reply_type = self.schema.SetSessionTitleResponse
        return (await self._control("session/set_title", request, reply_type)).title

    # ── a live session ────────────────────────────────────────────────────────────────────────

    @abstractmethod
    async def prompt(
        self, session_id: str, prompt: Prompt, meta: Meta, on_finished: OnFinished
    ) -> None:
        """Returns when the turn is over; `on_finished` runs in wire order: after the turn's last
        update, before any later one."""

    def _prompt_request(self, session_id: str, prompt: Prompt, meta: Meta) -> bytes:
        blocks = [block_of(part, self.schema) for part in prompt]
        request = self.schema.PromptRequest(session_id=session_id, prompt=blocks, meta=meta)
        return codec.encode(request)

    async def steer(
        self,
        session_id: str,
        prompt: Prompt,
        meta: Meta,
        on_reply: OnSteerReply,
        *,
        way: SteerWay,
        run_id: str,
    ) -> None:
        """Put something into the running turn, by a `way` that the agent offers. An error that the
        agent answers with is a reply, too."""
        blocks = [block_of(part, self.schema) for part in prompt]
        match way:
            case "prompt":
                calling = self._prompt_in_flight(session_id, prompt, meta, on_reply)
            case "run":
                params = steer_calls.run_params(session_id, blocks, meta, run_id)
                calling = self._steer(steer_calls.RUN, params, lambda raw: on_reply(run_reply(raw)))
            case _:
                params, read = steer_calls.steering_params(session_id, blocks, meta), steering_reply
                calling = self._steer(steer_calls.STEERING, params, lambda raw: on_reply(read(raw)))
        try:
            await calling
        except RemoteError as error:
            on_reply(steer_calls.steer_refusal(error))

    async def _steer(
        self, method: str, params: bytes, on_reply: Callable[[msgspec.Raw], None]
    ) -> None:
        await self._peer.call(method, params, timeout=self._timeouts.control, on_reply=on_reply)

    async def _prompt_in_flight(
        self, session_id: str, prompt: Prompt, meta: Meta, on_reply: OnSteerReply
    ) -> None:
        raise Unsupported("a prompt while another is in flight")

    @abstractmethod
    def cancel(self, session_id: str, meta: Meta = None) -> None: ...

    async def cancel_tool_call(self, session_id: str, tool_call_id: str) -> None:
        raise Unsupported("stopping a single tool call")

    async def cancel_terminal(self, session_id: str, terminal_id: str) -> None:
        raise Unsupported("stopping a terminal of its own")

    async def set_mode(self, session_id: str, mode_id: str, meta: Meta = None) -> None:
        raise Unsupported("modes that are not config options")

    async def set_config_option(
        self, session_id: str, option: ConfigOption, value: str | bool, meta: Meta = None
    ) -> list[ConfigOption] | None:
        """Every option after the change, if the agent tells them."""
        request = self.schema.SetSessionConfigOptionRequest(
            session_id=session_id,
            config_id=option.id,
            meta=meta,
            value=value,
            type="boolean" if isinstance(value, bool) else self.plain_value,
        )
        reply_type = self.schema.SetSessionConfigOptionResponse
        try:
            reply = await self._control("session/set_config_option", request, reply_type)
        except InvalidMessage:
            return None  # it is set anyway
        return config_options(reply.config_options)

    async def call_extension(self, method: str, params: Any, timeout: float | None) -> Any:
        """Raises ValueError for a name that is ACP's."""
        wait = self._timeouts.control if timeout is None else timeout
        encoded = msgspec.json.encode({} if params is None else params)
        return msgspec.json.decode(
            await self._peer.call(extension_name(method), encoded, timeout=wait)
        )

    def notify_extension(self, method: str, params: Any) -> None:
        """Raises ValueError for a name that is ACP's."""
        encoded = msgspec.json.encode({} if params is None else params)
        self._peer.notify(extension_name(method), encoded)

    async def _control(self, method: str, request: msgspec.Struct, reply_type: type[T]) -> T:
        raw = await self._peer.call(
            method,
            codec.encode(request),
            timeout=self._timeouts.control,
            on_reply=lambda raw: self._keep_meta(method, raw),
        )
        return codec.decode(codec.object_of(raw), reply_type)

    def _keep_meta(self, method: str, raw: msgspec.Raw) -> None:
        self.reply_meta.pop(method, None)
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            told = msgspec.json.decode(codec.object_of(raw), type=_Reply).meta
            if kept := fitted(told, LIMITS.fact)[0]:
                self.reply_meta[method] = kept


class _Reply(msgspec.Struct):
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


def _as_it_came(raw: msgspec.Raw, field: str) -> dict[str, Any]:
    """A field of a reply word for word, with what the schema has no name for."""
    match msgspec.json.decode(raw, type=dict[str, Any]).get(field):
        case {**found}:
            return found
        case _:
            return {}
