"""One v2 client of a scripted agent: answers every method that it calls.

What means the same in both versions is answered by the connection of version 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.errors import (
    DragomanError,
    InvalidMessage,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
)
from dragoman.schema import codec, v1, v2
from dragoman.testing.scripted_connection import offers
from dragoman.testing.v2 import words
from dragoman.testing.v2.turn import TurnV2
from dragoman.testing.v2.words import Json, Words
from dragoman.wire.error_replies import to_wire

if TYPE_CHECKING:
    from dragoman.testing.scripted_agent import AgentSession
    from dragoman.testing.scripted_connection import ScriptedConnection

_AS_IN_V1 = frozenset(
    {
        "session/list",
        "session/delete",
        "session/close",
        "session/archive",
        "session/unarchive",
        "session/status",
        "session/set_title",
    }
)


class Second:
    """Version 2 on one connection."""

    def __init__(self, connection: ScriptedConnection) -> None:
        self._connection = connection
        self._words: dict[str, Words] = {}
        self._running: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """The client is gone: what runs for it ends."""
        for task in self._running:
            task.cancel()

    # ── what the agent tells ──────────────────────────────────────────────────────────────────

    def update(self, session_id: str, update: Any) -> Any:
        """An update as it goes on the wire: in the types of v2, translated if necessary."""
        if type(update).__module__ == v2.__name__:
            return update
        return self._words_of(session_id).update(update)

    def _words_of(self, session_id: str) -> Words:
        if session_id not in self._words:
            session = self._connection.session(session_id)
            self._words[session_id] = Words(lambda: self._options(session))
        return self._words[session_id]

    def _options(self, session: AgentSession) -> list[Json]:
        agent = self._connection.agent
        modes = agent.modes_of(session)
        others = agent.options_of(session, self._connection.client) or []
        return [
            *([] if modes is None else [words.mode_option(modes)]),
            *(words.option(option) for option in others),
        ]

    # ── what the client asks ──────────────────────────────────────────────────────────────────

    def on_request(self, method: str, params: msgspec.Raw) -> Any:
        """The answer. Raises MethodNotFound for what the agent does not offer."""
        known, answer = v2.REQUESTS_TO_AGENT.get(method), _ANSWERS.get(method)
        if known is None or not self._offers(method):
            raise MethodNotFound(f"{method} is not offered here")
        if method in _AS_IN_V1:
            return self._connection.answer(method, params)
        if answer is None:
            raise MethodNotFound(f"{method} is not offered here")
        try:
            return answer(self, codec.decode(params, known.params))
        except InvalidMessage as error:
            raise InvalidParams(str(error)) from error

    def _offers(self, method: str) -> bool:
        agent = self._connection.agent
        if method in ("auth/login", "auth/logout"):
            return bool(agent.auth_methods)
        baseline = method in ("session/list", "session/resume", "session/close")
        return baseline or offers(agent.capabilities, method)

    def initialize(self, request: v2.InitializeRequest) -> Json:
        agent = self._connection.agent
        self._connection.client = _as_in_v1(request.capabilities)
        return {
            "protocolVersion": 2,
            "info": agent.info,
            "capabilities": words.capabilities(agent.capabilities),
            "authMethods": [words.auth_method(method) for method in agent.auth_methods],
        }

    def login(self, request: v2.LoginAuthRequest) -> Json:
        self._connection.authenticate(v1.AuthenticateRequest(method_id=request.method_id))
        return {}

    def logout(self, request: v2.LogoutAuthRequest) -> Json:
        return {}

    def new_session(self, request: v2.NewSessionRequest) -> Json:
        connection = self._connection
        session = connection.agent.new_session(request.cwd, request.additional_directories)
        connection.opened(session, request)
        return {"sessionId": session.id, "configOptions": self._options(session)}

    def resume_session(self, request: v2.ResumeSessionRequest) -> Json:
        connection = self._connection
        session = connection.session(request.session_id)
        if request.replay_from is not None and not isinstance(
            request.replay_from, v2.ReplayFromStart
        ):
            raise InvalidParams("history can only be replayed from the start")
        connection.opened(session, request)
        if request.replay_from is not None:
            self._words.pop(session.id, None)
            connection.tell_again(session)
        state = "running" if session.id in connection.turns else "idle"
        told = {"sessionUpdate": "state_update", "state": state}
        connection.update(session.id, told, keep=False)
        return {"configOptions": self._options(session)}

    def fork_session(self, request: v2.ForkSessionRequest) -> Json:
        session = self._connection.forked(
            request.session_id, request.cwd, request.additional_directories
        )
        self._connection.opened(session, request)
        return {"sessionId": session.id, "configOptions": self._options(session)}

    def set_config_option(self, request: v2.SetSessionConfigOptionRequest) -> Json:
        session = self._connection.active(request.session_id)
        if request.config_id == words.MODE and self._connection.agent.modes:
            self._connection.switch(session, str(request.value))
        else:
            wanted = v1.SetSessionConfigOptionRequest(
                session_id=session.id, config_id=request.config_id, value=request.value
            )
            self._connection.set_config_option(wanted)
        return {"configOptions": self._options(session)}

    def cancel_tool_call(self, request: v2.CancelToolCallRequest) -> Json:
        turn = self._turn(request.session_id)
        self._later(turn.stopping(request.tool_call_id).set)
        return {}

    def cancel_terminal(self, request: v2.CancelTerminalRequest) -> Json:
        display = self._turn(request.session_id).displays.get(request.terminal_id)
        if display is None or not display.runs:
            raise InvalidParams(f"there is nothing running in {request.terminal_id}")
        self._later(display.kill)
        return {}

    def _turn(self, session_id: str) -> TurnV2:
        turn = self._connection.turns.get(session_id)
        if not isinstance(turn, TurnV2):
            raise InvalidParams(f"nothing is under way in session {session_id}")
        return turn

    def _later(self, work: Callable[[], object]) -> None:
        """When the answer is out."""
        asyncio.get_running_loop().call_soon(work)

    # ── turns ─────────────────────────────────────────────────────────────────────────────────

    def prompt(self, request: v2.PromptRequest) -> Json:
        connection = self._connection
        session = connection.active(request.session_id)
        if session.id in connection.turns:
            raise InvalidRequest(f"session {session.id} is busy with another turn")
        # Content is the same in both versions.
        asked = codec.decode(codec.encode(request), v1.PromptRequest).prompt
        key = connection.remember_prompt(session, asked)
        turn = TurnV2(connection, session, asked, connection.request_id)
        connection.turns[session.id] = turn
        self._later(lambda: self._begin(turn, key, request))
        return {"messageId": key}

    def _begin(self, turn: TurnV2, key: str, request: v2.PromptRequest) -> None:
        self._words_of(turn.session_id).begin_turn()
        turn.update(v2.UserMessage(message_id=key, content=request.prompt), keep=False)
        turn.state("running")
        task = asyncio.create_task(self._run(turn))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, turn: TurnV2) -> None:
        failure: BaseException | None = None
        try:
            await self._connection.agent.play(turn)
        except Exception as error:
            # Whatever it is, a turn ends; what a cancel brought about is none.
            is_cancel = isinstance(error, DragomanError) and turn.cancelled.is_set()
            failure = None if is_cancel else error
        finally:
            turn.over = True
            for display in turn.displays.values():
                display.kill()
            self._connection.ended(turn)
        turn.state("idle", **_ending(turn, failure))
        for work in turn.afterwards:
            work()


_ANSWERS: dict[str, Callable[[Second, Any], Json]] = {
    "initialize": Second.initialize,
    "auth/login": Second.login,
    "auth/logout": Second.logout,
    "session/new": Second.new_session,
    "session/resume": Second.resume_session,
    "session/fork": Second.fork_session,
    "session/set_config_option": Second.set_config_option,
    "session/prompt": Second.prompt,
    "tool_call/cancel": Second.cancel_tool_call,
    "terminal/cancel": Second.cancel_terminal,
}


def _ending(turn: TurnV2, failure: BaseException | None) -> Json:
    usage = {} if turn.usage is None else {"usage": turn.usage}
    if failure is not None:
        code, message, data = to_wire(failure)
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        return {"stopReason": "error", "error": error}
    cancelled = turn.cancelled.is_set() and not turn.ignores_cancel
    return {"stopReason": "cancelled" if cancelled else turn.stop_reason, **usage}


def _as_in_v1(client: v2.ClientCapabilities) -> v1.ClientCapabilities:
    """What a script may do: here files and commands are its own affair, the rest is for all."""
    told = None
    if client.elicitation is not None:
        encoded = codec.encode(client.elicitation)
        told = codec.decode(encoded, v1.ElicitationCapabilities)
    return v1.ClientCapabilities(
        fs=v1.FileSystemCapabilities(read_text_file=True, write_text_file=True),
        terminal=True,
        session=v1.ClientSessionCapabilities(
            compaction=v1.CompactionCapabilities(),
            notices=v1.NoticeCapabilities(),
            config_options=v1.SessionConfigOptionsCapabilities(
                boolean=v1.BooleanConfigOptionCapabilities()
            ),
        ),
        elicitation=told,
    )
