"""How a version of the protocol is spoken to an editor; what both versions say alike is here.

A face decodes requests, has the desk do them, and puts the results into the structs of its
`schema`. It is also how questions to the editor read in that version.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec

from dragoman._version import __version__
from dragoman.client.client_options import tracing
from dragoman.client.dialects.encoding import Shows, UpdateEncoder
from dragoman.client.dialects.steer_calls import STEERING
from dragoman.client.dialects.translation import Schema, contents, mcp_server_from
from dragoman.client.mcp import McpServer
from dragoman.editor.desk import Desk
from dragoman.editor.editor_launcher import EditorPlace
from dragoman.editor.services.editor_tools import EditorTools
from dragoman.editor.window import AGENT_OPTION, EditorWindow
from dragoman.errors import (
    AuthRequired,
    CommandRefused,
    ConfigError,
    DragomanError,
    InternalError,
    InvalidMessage,
    InvalidParams,
    MethodNotFound,
    RemoteError,
    ResourceNotFound,
    UnknownAgent,
    UnknownSession,
    Unsupported,
)
from dragoman.host.forms.elicitation import FormError
from dragoman.hub.cluster import commands as c
from dragoman.schema import codec, v1
from dragoman.session import events as e
from dragoman.session.state import Pending, PendingElicitation, PendingPermission, SessionState
from dragoman.store.records import SessionRecord, utc

Handle: TypeAlias = Callable[[Any, Any], Awaitable[Any]]
"""Does what a request asks for; its result as a struct of the schema."""


class _Steering(msgspec.Struct, rename="camel"):
    session_id: str
    prompt: list[v1.ContentBlock]


class _ModelChoice(msgspec.Struct, rename="camel"):
    session_id: str
    model_id: str


class Face(ABC):
    """One version, for one editor that can show what `shows` says."""

    schema: ClassVar[Schema]
    methods: ClassVar[Mapping[str, tuple[type[Any], Handle]]]

    def __init__(self, desk: Desk, shows: Shows) -> None:
        self.desk = desk
        self.shows = shows
        self._tools = EditorTools(desk.link, self.schema)

    @abstractmethod
    def welcome(self) -> Any:
        """The answer to `initialize`."""

    @abstractmethod
    def encoder(self, session_id: str) -> UpdateEncoder:
        """What makes updates of the events of a session."""

    # ── requests ──────────────────────────────────────────────────────────────────────────────

    async def answer(self, method: str, params: msgspec.Raw) -> bytes:
        """The result of a request. Raises RemoteError."""
        try:
            return codec.encode(await self._result(method, params))
        except Exception as error:
            if (failure := as_reply(error)) is None:
                raise
            raise failure from error

    async def _result(self, method: str, params: msgspec.Raw) -> Any:
        known = self.methods.get(method)
        if known is None:
            return await self._extension(method, params)
        request_type, handle = known
        request = codec.decode(params, request_type)
        meta: dict[str, Any] = getattr(request, "meta", None) or {}
        with tracing(_text(meta.get("traceparent")), _text(meta.get("tracestate"))):
            return await handle(self, request)

    async def _extension(self, method: str, params: msgspec.Raw) -> Any:
        """A method of the agent's own goes to the agent."""
        said = codec.decode(params or msgspec.Raw(b"{}"), dict[str, Any])
        if not method.startswith("_") or not isinstance(said.get("sessionId"), str):
            raise MethodNotFound(f"{method} is not offered here")
        return await self.desk.extension(said["sessionId"], method, said)

    def hear(self, method: str, params: msgspec.Raw) -> None:
        """A notification."""
        if method == "mcp/message":
            self._tools.hear(params)
        if method == "session/cancel":
            session_id = codec.decode(params, _OfSession).session_id
            if (window := self.desk.windows.get(session_id)) is not None:
                # Not awaited: the agent may stop only once the editor has answered a question.
                self.desk.spawn(window.cancel())

    # ── opening sessions ──────────────────────────────────────────────────────────────────────

    def _place(self, request: Any) -> EditorPlace:
        servers = map(self._server, request.mcp_servers)
        return EditorPlace(
            cwd=request.cwd,
            additional_directories=request.additional_directories,
            mcp_servers=[server for server in servers if server is not None],
        )

    def _server(self, wire: Any) -> McpServer | None:
        """None for one of an unknown kind."""
        if isinstance(wire, self.schema.McpServerAcp):
            return self._tools.server(wire)
        return mcp_server_from(wire)

    async def new_session(self, request: Any) -> Any:
        window = await self.desk.new(self._place(request), self)
        window.begin()
        return self.schema.NewSessionResponse(session_id=window.id, **self.facts(window))

    async def fork_session(self, request: Any) -> Any:
        window = await self.desk.fork(request.session_id, self._place(request), self)
        window.begin()
        return self.schema.ForkSessionResponse(session_id=window.id, **self.facts(window))

    async def _attach(self, request: Any, *, replay: bool) -> dict[str, Any]:
        place = self._place(request)
        window = await self.desk.attach(request.session_id, place, self, replay=replay)
        window.begin()
        return self.facts(window)

    @abstractmethod
    def facts(self, window: EditorWindow) -> dict[str, Any]:
        """What a reply that opens a session says about it."""

    # ── sessions that are open ────────────────────────────────────────────────────────────────

    async def close_session(self, request: Any) -> Any:
        await self.desk.close(request.session_id)
        return self.schema.CloseSessionResponse()

    async def set_config_option(self, request: Any) -> Any:
        window = self.desk.open(request.session_id)
        await self._set(window, request.config_id, request.value)
        options = self.encoder(window.id).options(await self.desk.options(window))
        return self.schema.SetSessionConfigOptionResponse(config_options=options)

    async def _set(self, window: EditorWindow, option_id: str, value: Any) -> None:
        if option_id == AGENT_OPTION and window.agents:
            await self.desk.give_to(window, value)
        elif window.is_mode_option(option_id):
            await self.desk.send(window.id, c.SetMode(value))
        else:
            await self.desk.send(window.id, c.SetConfig(option_id, value))

    async def set_model(self, request: _ModelChoice) -> Any:
        """What was there before models were a config option."""
        window = self.desk.open(request.session_id)
        await self.desk.send(window.id, c.SetModel(request.model_id))
        return {}

    async def steer(self, request: _Steering) -> Any:
        """A message to the running turn, as agents offer it that can be steered."""
        window = self.desk.open(request.session_id)
        reply = await window.steer(contents(request.prompt))
        if reply["outcome"] == "queued" and await window.take_back(reply["steer"]):
            return {"outcome": "promptRequired"}  # the editor sends it as a prompt of its own
        reason = {} if not reply["reason"] else {"reason": reply["reason"]}
        return {"outcome": _STEERED[reply["outcome"]], **reason}

    # ── sessions that are kept ────────────────────────────────────────────────────────────────

    async def list_sessions(self, request: Any) -> Any:
        found, cursor = await self.desk.list(request.cwd, request.cursor)
        listed = [self._listed(record) for record in found]
        return self.schema.ListSessionsResponse(sessions=listed, next_cursor=cursor)

    def _listed(self, record: SessionRecord) -> Any:
        return self.schema.SessionInfo(
            session_id=record.id,
            cwd=record.cwd,
            additional_directories=record.additional_directories,
            title=record.title or record.name,
            updated_at=utc(record.updated_at).isoformat(),
        )

    async def delete_session(self, request: Any) -> Any:
        await self.desk.delete(request.session_id)
        return self.schema.DeleteSessionResponse()

    # ── questions ─────────────────────────────────────────────────────────────────────────────

    def question(
        self, session_id: str, asked: Pending, state: SessionState
    ) -> tuple[str, Any] | None:
        """The method that asks the editor, with its parameters; None for what it cannot ask."""
        if isinstance(asked, PendingPermission):
            return "session/request_permission", self.permission(session_id, asked, state)
        if not (self.shows.addresses if asked.mode == "url" else self.shows.forms):
            return None
        return "elicitation/create", _elicitation(session_id, asked)

    @abstractmethod
    def permission(self, session_id: str, asked: PendingPermission, state: SessionState) -> Any:
        """The parameters of a permission request."""

    def permission_options(self, asked: PendingPermission) -> list[Any]:
        wire = self.schema.PermissionOption
        return [
            wire(option_id=option.id, name=option.name, kind=option.kind, meta=option.meta)
            for option in asked.options
        ]

    def reply(self, asked: Pending, raw: msgspec.Raw) -> c.Command:
        """The answer of the editor, as a command. Raises InvalidMessage."""
        if isinstance(asked, PendingPermission):
            outcome = codec.decode(raw, self.schema.RequestPermissionResponse).outcome
            return c.AnswerPermission(asked.id, getattr(outcome, "option_id", None))
        answer = codec.decode(raw, self.schema.CreateElicitationResponse)
        if answer.action not in ("accept", "decline", "cancel"):
            raise InvalidMessage(f"an answer cannot be {answer.action!r}")
        return c.AnswerElicitation(asked.id, answer.action, answer.content)


class _OfSession(msgspec.Struct, rename="camel"):
    session_id: str


_STEERED = {
    "delivered": "injected",
    "sent": "injected",
    "queued": "startedNewTurn",
    "unsure": "injected",
    "started": "startedNewTurn",
    "refused": "failed",
}
"""What became of a steer, as `_session/steering` says it."""


def _elicitation(session_id: str, asked: PendingElicitation) -> dict[str, Any]:
    said = {
        "sessionId": session_id,
        "message": asked.message,
        "mode": asked.mode,
        "requestedSchema": asked.schema,
        "url": asked.url,
        "elicitationId": asked.elicitation_id,
        "toolCallId": asked.tool_call_id,
    }
    return {name: value for name, value in said.items() if value is not None}


def shared_methods(schema: Schema) -> dict[str, tuple[type[Any], Handle]]:
    """What both versions ask for alike."""
    return {
        "session/new": (schema.NewSessionRequest, Face.new_session),
        "session/fork": (schema.ForkSessionRequest, Face.fork_session),
        "session/list": (schema.ListSessionsRequest, Face.list_sessions),
        "session/delete": (schema.DeleteSessionRequest, Face.delete_session),
        "session/close": (schema.CloseSessionRequest, Face.close_session),
        "session/set_config_option": (
            schema.SetSessionConfigOptionRequest,
            Face.set_config_option,
        ),
        STEERING: (_Steering, Face.steer),
    }


def implementation(schema: Schema) -> Any:
    return schema.Implementation(name="dragoman", title="Dragoman", version=__version__)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


# ── failures ──────────────────────────────────────────────────────────────────────────────────


def as_reply(error: BaseException) -> RemoteError | None:
    """The error that an editor gets; None for one that was not meant for it."""
    match error:
        case RemoteError():
            return error
        case CommandRefused(code="auth_required"):
            return AuthRequired(str(error))
        case UnknownSession():
            return ResourceNotFound(str(error))
        case Unsupported():
            return MethodNotFound(str(error))
        case InvalidMessage() | FormError() | ValueError() | UnknownAgent() | ConfigError():
            return InvalidParams(str(error))
        case CommandRefused(code="invalid" | "unsupported"):
            return InvalidParams(str(error))
        case DragomanError():
            return InternalError(str(error))
        case _:
            return None


def end_of_turn(ended: e.TurnEnded) -> None:
    """Raises InternalError for a turn that was cut short."""
    if ended.error is not None:
        raise InternalError(ended.error)
