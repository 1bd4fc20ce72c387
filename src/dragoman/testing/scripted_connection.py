"""One v1 client of a scripted agent: answers every method that it calls.

All but the prompt is answered at once, in wire order. A client that asks for version 2 gets it from
`testing.v2`, which is imported only then.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from dragoman.errors import (
    DragomanError,
    InvalidMessage,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ResourceNotFound,
)
from dragoman.rpc import Peer
from dragoman.schema import codec, v1
from dragoman.schema.model import Unknown
from dragoman.testing.agent_stdio import StandardStreams
from dragoman.testing.scripted_turn import AgentTurn
from dragoman.transport.transport import Transport
from dragoman.wire import messages

if TYPE_CHECKING:
    from dragoman.testing.scripted_agent import AgentSession, ScriptedAgent
    from dragoman.testing.v2.connection import Second

CONVERSATION = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "subagent_update",
    }
)
"""The kinds of updates that are replayed on load."""


class ScriptedConnection:
    """A client, the sessions it has open, and the turns that run."""

    def __init__(self, agent: ScriptedAgent, transport: Transport) -> None:
        self.agent = agent
        self.transport = transport
        self.client = v1.ClientCapabilities()
        self.peer = Peer(
            transport,
            on_notification=self._on_notification,
            on_request=self._on_request,
            waits=frozenset({"session/prompt", *agent.answers}),
            tap=self._note_frame,
        )
        self._open: dict[str, AgentSession] = {}
        self._roots: dict[str, AgentSession] = {}
        """The sessions that subagents work for."""
        self.turns: dict[str, AgentTurn] = {}
        """Those that run, by session."""
        self._frame = b""
        self._second: Second | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # ── what the agent does ───────────────────────────────────────────────────────────────────

    def update(self, session_id: str, update: Any, *, keep: bool = True) -> None:
        """Send an update; what belongs to the conversation is also kept, unless told not to."""
        raw = msgspec.Raw(codec.encode(update))
        if keep and _kind(update) in CONVERSATION and session_id in self._open:
            self._keep(self._open[session_id], raw)
        if self.peer.error is None:
            told = raw if self._second is None else self._second.update(session_id, update)
            wire = {"sessionId": session_id, "update": told}
            self.peer.notify("session/update", codec.encode(wire))

    def _keep(self, session: AgentSession, update: msgspec.Raw) -> None:
        root = self._roots.get(session.id)
        if root is None:
            session.history.append(update)
        else:
            told = {"sessionId": session.id, "update": update}
            root.history.append(msgspec.Raw(codec.encode(told)))

    def open_subagent(self, subagent_id: str, parent: AgentSession) -> AgentSession:
        """A session for it, whose conversation is kept with that of the session it works for."""
        root = self._roots.get(parent.id, parent)
        session = type(parent)(id=subagent_id, cwd=parent.cwd)
        self._roots[subagent_id], self._open[subagent_id] = root, session
        return session

    def tell_again(self, session: AgentSession) -> None:
        """The conversation so far, with that of its subagents."""
        for update in list(session.history):
            told = msgspec.json.decode(update)
            if "update" in told and "sessionUpdate" not in told:
                self.open_subagent(told["sessionId"], session)
                self.update(told["sessionId"], told["update"], keep=False)
            else:
                self.update(session.id, update, keep=False)

    def session(self, session_id: str) -> AgentSession:
        """Raises ResourceNotFound for a session nobody ever had, or that was forgotten."""
        session = self._open.get(session_id) or self.agent.sessions.get(session_id)
        if session is None:
            raise ResourceNotFound(f"no such session: {session_id}", {"sessionId": session_id})
        return session

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it may never have been begun

    def close(self) -> None:
        """The client is gone."""
        if self._second is not None:
            self._second.close()

    async def vanish(self, code: int) -> None:
        """Be gone: a process ends at once, in memory the connection does."""
        if isinstance(self.transport, StandardStreams):
            self.transport.exit(code)
        await self.transport.aclose()
        await asyncio.Event().wait()  # this turn never answers

    # ── what the client sends ─────────────────────────────────────────────────────────────────

    def _note_frame(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        if direction == "received":
            self._frame = frame

    def _on_notification(self, method: str, params: msgspec.Raw) -> None:
        self.agent.received.append((method, msgspec.json.decode(params)))
        if method == "session/cancel":
            self._cancel(codec.decode(params, v1.CancelNotification).session_id)

    def _cancel(self, session_id: str) -> None:
        if (turn := self.turns.get(session_id)) is not None:
            turn.cancel()

    def _on_request(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        self.agent.received.append((method, msgspec.json.decode(params)))
        if method in self.agent.answers:
            return instead(self.agent.answers[method], params)
        if method == "initialize":
            self._second = self._wanted(params)
        if self._second is not None:
            answered = self._second.on_request(method, params)
            return answered if isinstance(answered, bytes) else codec.encode(answered)
        if not offers(self.agent.capabilities, method):
            raise MethodNotFound(f"{method} is not offered here")
        result = self.answer(method, params)
        return result if inspect.iscoroutine(result) else codec.encode(result)

    def _wanted(self, params: msgspec.Raw) -> Second | None:
        """The newest version both sides speak, if it is not the first."""
        asked = codec.decode(params, v1.InitializeRequest).protocol_version
        if asked < 2 or 2 not in self.agent.protocol_versions:
            return None
        from dragoman.testing.v2.connection import Second

        return Second(self)

    def answer(self, method: str, params: msgspec.Raw) -> Any:
        """What version 1 answers, or will. Raises MethodNotFound for an unknown method."""
        known, answer = v1.REQUESTS_TO_AGENT.get(method), _ANSWERS.get(method)
        if known is None or answer is None:
            raise MethodNotFound(f"{method} is not offered here")
        try:
            request = codec.decode(params, known.params)
        except InvalidMessage as error:
            raise InvalidParams(str(error)) from error
        return answer(self, request)

    # ── the connection ────────────────────────────────────────────────────────────────────────

    def initialize(self, request: v1.InitializeRequest) -> v1.InitializeResponse:
        self.client = request.client_capabilities
        return v1.InitializeResponse(
            protocol_version=1,
            agent_capabilities=self.agent.capabilities,
            agent_info=self.agent.info,
            auth_methods=list(self.agent.auth_methods),
        )

    def authenticate(self, request: v1.AuthenticateRequest) -> v1.AuthenticateResponse:
        methods = [m for m in self.agent.auth_methods if isinstance(m, v1.AuthMethodAgent)]
        if request.method_id not in {method.id for method in methods}:
            raise InvalidParams(f"there is no sign-in method {request.method_id}")
        return v1.AuthenticateResponse()

    def logout(self, request: v1.LogoutRequest) -> v1.LogoutResponse:
        return v1.LogoutResponse()

    # ── opening sessions ──────────────────────────────────────────────────────────────────────

    def new_session(self, request: v1.NewSessionRequest) -> v1.NewSessionResponse:
        session = self.agent.new_session(request.cwd, request.additional_directories)
        self.opened(session, request)
        return v1.NewSessionResponse(
            session_id=session.id,
            modes=self.agent.modes_of(session),
            config_options=self.agent.options_of(session, self.client),
        )

    def load_session(self, request: v1.LoadSessionRequest) -> v1.LoadSessionResponse:
        session = self.session(request.session_id)
        self.opened(session, request)
        self.tell_again(session)
        return v1.LoadSessionResponse(
            modes=self.agent.modes_of(session),
            config_options=self.agent.options_of(session, self.client),
        )

    def resume_session(self, request: v1.ResumeSessionRequest) -> v1.ResumeSessionResponse:
        session = self.session(request.session_id)
        self.opened(session, request)
        return v1.ResumeSessionResponse(
            modes=self.agent.modes_of(session),
            config_options=self.agent.options_of(session, self.client),
        )

    def fork_session(self, request: v1.ForkSessionRequest) -> v1.ForkSessionResponse:
        session = self.forked(request.session_id, request.cwd, request.additional_directories)
        self.opened(session, request)
        return v1.ForkSessionResponse(
            session_id=session.id,
            modes=self.agent.modes_of(session),
            config_options=self.agent.options_of(session, self.client),
        )

    def forked(self, session_id: str, cwd: str, more_folders: list[str]) -> AgentSession:
        """A new session that remembers what the other one does."""
        origin = self.session(session_id)
        session = self.agent.new_session(cwd, more_folders)
        session.history = list(origin.history)
        session.mode, session.options = origin.mode, dict(origin.options)
        session.used, session.cost = origin.used, origin.cost
        session.title = None if origin.title is None else f"{origin.title} (fork)"
        self.agent.keep(session)
        return session

    def opened(self, session: AgentSession, request: Any) -> None:
        """`request` opened this session here."""
        session.request = request
        self._open[session.id] = session
        # The reply goes out when this call returns, and commands behind it.
        asyncio.get_running_loop().call_soon(self._tell_commands, session)

    def _tell_commands(self, session: AgentSession) -> None:
        if self.agent.commands:
            commands = v1.AvailableCommandsUpdate(available_commands=list(self.agent.commands))
            self.update(session.id, commands)

    # ── sessions it keeps ─────────────────────────────────────────────────────────────────────

    def list_sessions(self, request: v1.ListSessionsRequest) -> v1.ListSessionsResponse:
        # Asked for one by one: those on disk may go while others are looked at.
        kept = map(self.agent.sessions.get, list(self.agent.sessions))
        wanted = [s for s in kept if s is not None and _is_wanted(s, request)]
        start = _cursor(request.cursor)
        end = start + self.agent.page_size
        return v1.ListSessionsResponse(
            sessions=[_info(session) for session in wanted[start:end]],
            next_cursor=str(end) if end < len(wanted) else None,
        )

    def delete_session(self, request: v1.DeleteSessionRequest) -> v1.DeleteSessionResponse:
        session = self.session(request.session_id)
        self._cancel(session.id)
        self._open.pop(session.id, None)
        self.agent.sessions.pop(session.id, None)
        return v1.DeleteSessionResponse()

    def close_session(self, request: v1.CloseSessionRequest) -> v1.CloseSessionResponse:
        session = self.active(request.session_id)
        self._cancel(session.id)
        del self._open[session.id]
        return v1.CloseSessionResponse()

    def archive_session(self, request: v1.ArchiveSessionRequest) -> v1.ArchiveSessionResponse:
        self._set_archived(request.session_id, True)
        return v1.ArchiveSessionResponse()

    def unarchive_session(self, request: v1.UnarchiveSessionRequest) -> v1.UnarchiveSessionResponse:
        self._set_archived(request.session_id, False)
        return v1.UnarchiveSessionResponse()

    def _set_archived(self, session_id: str, archived: bool) -> None:
        session = self.session(session_id)
        session.archived = archived
        self.agent.keep(session)

    def session_status(self, request: v1.SessionStatusRequest) -> v1.SessionStatusResponse:
        session = self.session(request.session_id)
        return v1.SessionStatusResponse(status="open" if session.id in self._open else "saved")

    def set_session_title(self, request: v1.SetSessionTitleRequest) -> v1.SetSessionTitleResponse:
        session = self.session(request.session_id)
        title = request.title.strip()
        if not title:
            raise InvalidParams("a title cannot be empty")
        session.title = title
        self.agent.keep(session)
        return v1.SetSessionTitleResponse(title=title)

    # ── open sessions ─────────────────────────────────────────────────────────────────────────

    def active(self, session_id: str) -> AgentSession:
        """Raises ResourceNotFound for a session that is not open here."""
        session = self._open.get(session_id)
        if session is None:
            why = f"session {session_id} is not open on this connection"
            raise ResourceNotFound(why, {"sessionId": session_id})
        return session

    def set_session_mode(self, request: v1.SetSessionModeRequest) -> v1.SetSessionModeResponse:
        self.switch(self.active(request.session_id), request.mode_id)
        return v1.SetSessionModeResponse()

    def switch(self, session: AgentSession, mode_id: str) -> None:
        """Raises InvalidParams for a mode the agent does not have."""
        if mode_id not in {mode.id for mode in self.agent.modes}:
            raise InvalidParams(f"there is no mode {mode_id}")
        session.mode = mode_id
        self.agent.keep(session)
        self.update(session.id, v1.CurrentModeUpdate(current_mode_id=mode_id))

    def set_config_option(
        self, request: v1.SetSessionConfigOptionRequest
    ) -> v1.SetSessionConfigOptionResponse:
        session = self.active(request.session_id)
        options = self.agent.options_of(session, self.client) or []
        known = {o.id: o for o in options if not isinstance(o, Unknown)}
        if request.config_id not in known:
            raise InvalidParams(f"there is no option {request.config_id}")
        if not _can_be(known[request.config_id], request.value):
            raise InvalidParams(f"{request.config_id} cannot be {request.value}")
        session.options[request.config_id] = request.value
        self.agent.keep(session)
        now = self.agent.options_of(session, self.client) or []
        return v1.SetSessionConfigOptionResponse(config_options=now)

    def prompt(self, request: v1.PromptRequest) -> Coroutine[Any, Any, bytes]:
        session = self.active(request.session_id)
        if session.id in self.turns:
            raise InvalidRequest(f"session {session.id} is busy with another turn")
        self.remember_prompt(session, request.prompt)
        turn = AgentTurn(self, session, request.prompt, self.request_id)
        self.turns[session.id] = turn
        return self._play(turn)

    @property
    def request_id(self) -> bytes:
        """The id of the request that is being answered, as raw JSON."""
        return _request_id(self._frame)

    def remember_prompt(self, session: AgentSession, prompt: list[v1.ContentBlock]) -> str:
        """Under an id of its own: one that nothing followed must not run into the next."""
        key = f"prompt-{len(session.history)}"
        asked = [v1.UserMessageChunk(content=part, message_id=key) for part in prompt]
        session.history += [msgspec.Raw(codec.encode(chunk)) for chunk in asked]
        self.agent.keep(session)
        return key

    def ended(self, turn: AgentTurn) -> None:
        """The script of a turn is over."""
        del self.turns[turn.session_id]
        if turn.session_id in self.agent.sessions:
            self.agent.keep(turn.session)

    async def _play(self, turn: AgentTurn) -> bytes:
        try:
            await self.agent.play(turn)
        except DragomanError:
            if not turn.cancelled.is_set():
                raise
        finally:
            self.ended(turn)
        for work in turn.afterwards:
            # A timer that is due runs behind what is ready now, and the reply is.
            asyncio.get_running_loop().call_later(0, work)
        cancelled = turn.cancelled.is_set() and not turn.ignores_cancel
        reason = "cancelled" if cancelled else turn.stop_reason
        return codec.encode(v1.PromptResponse(stop_reason=reason, usage=turn.usage))


_ANSWERS: dict[str, Callable[[ScriptedConnection, Any], Any]] = {
    "initialize": ScriptedConnection.initialize,
    "authenticate": ScriptedConnection.authenticate,
    "logout": ScriptedConnection.logout,
    "session/new": ScriptedConnection.new_session,
    "session/load": ScriptedConnection.load_session,
    "session/resume": ScriptedConnection.resume_session,
    "session/fork": ScriptedConnection.fork_session,
    "session/list": ScriptedConnection.list_sessions,
    "session/delete": ScriptedConnection.delete_session,
    "session/close": ScriptedConnection.close_session,
    "session/archive": ScriptedConnection.archive_session,
    "session/unarchive": ScriptedConnection.unarchive_session,
    "session/status": ScriptedConnection.session_status,
    "session/set_title": ScriptedConnection.set_session_title,
    "session/set_mode": ScriptedConnection.set_session_mode,
    "session/set_config_option": ScriptedConnection.set_config_option,
    "session/prompt": ScriptedConnection.prompt,
}


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    with suppress(DragomanError):
        await work


def _request_id(frame: bytes) -> bytes:
    message = messages.decode(frame)
    return message.id if isinstance(message, messages.Request) else b"null"


def _kind(update: Any) -> str:
    match update:
        case msgspec.Struct():
            return str(update.__struct_config__.tag)
        case {"sessionUpdate": str(kind)}:
            return kind
        case _:
            return ""


def _is_wanted(session: AgentSession, request: v1.ListSessionsRequest) -> bool:
    wanted = {"include": (True, False), "only": (True,)}.get(request.archived or "", (False,))
    return session.archived in wanted and request.cwd in (None, session.cwd)


def _cursor(cursor: str | None) -> int:
    try:
        return int(cursor or 0)
    except ValueError:
        raise InvalidParams(f"there is no page {cursor}") from None


def _info(session: AgentSession) -> v1.SessionInfo:
    return v1.SessionInfo(
        session_id=session.id, **{name: getattr(session, name) for name in _LISTED}
    )


_LISTED = ("cwd", "additional_directories", "title", "updated_at", "archived")


def _can_be(option: v1.SessionConfigSelect | v1.SessionConfigBoolean, value: str | bool) -> bool:
    if isinstance(option, v1.SessionConfigBoolean):
        return isinstance(value, bool)
    return value in _values(option.options)


def _values(options: v1.SessionConfigSelectOptions) -> set[str]:
    values: set[str] = set()
    for option in options:
        if isinstance(option, v1.SessionConfigSelectGroup):
            values |= {inner.value for inner in option.options}
        else:
            values.add(option.value)
    return values


Answer: TypeAlias = Callable[[Any], Any] | BaseException | Any
"""A result, an error to answer with, or a function of the params that returns one of them."""

NEVER: Final = object()
"""An `Answer`: the method is never answered."""

_ADVERTISED = {
    "session/list": "list",
    "session/delete": "delete",
    "session/fork": "fork",
    "session/resume": "resume",
    "session/close": "close",
    "session/archive": "archive",
    "session/unarchive": "archive",
    "session/status": "status",
    "session/set_title": "title",
}


def offers(capabilities: v1.AgentCapabilities, method: str) -> bool:
    """Whether an agent with these capabilities has this method."""
    if method == "session/load":
        return capabilities.load_session
    if method == "logout":
        return capabilities.auth.logout is not None
    name = _ADVERTISED.get(method)
    return name is None or getattr(capabilities.session_capabilities, name) is not None


def instead(answer: Any, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
    """What a test wants to be answered."""
    if answer is NEVER:
        return _never()
    if callable(answer):
        answer = answer(msgspec.json.decode(params))
    if isinstance(answer, BaseException):
        raise answer
    return codec.encode(answer)


async def _never() -> bytes:
    await asyncio.Event().wait()
    raise AssertionError
