"""The v2 dialect: what a client says to an agent as only version 2 says it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman.agents.extensions import PROMPT_QUEUEING, said
from dragoman.client.capabilities import AgentCapabilities, AgentInfo, AuthMethod
from dragoman.client.client_options import Timeouts
from dragoman.client.dialects.dialect import (
    Dialect,
    Finished,
    Meta,
    OnFinished,
    OnOpened,
    Place,
    Prompt,
)
from dragoman.client.dialects.steer_calls import OnSteerReply, SteerReply
from dragoman.client.dialects.translation import can_override, config_options
from dragoman.client.dialects.v2 import wire_format
from dragoman.client.dialects.v2.inbound import Conversations
from dragoman.errors import RequestCancelled
from dragoman.rpc import Peer
from dragoman.schema import codec, v2
from dragoman.session.events import CommandsChanged, ConfigChanged, Event


class _Acknowledged(msgspec.Struct, rename="camel"):
    """Earlier drafts answer with an empty object."""

    message_id: Any = None


class V2(Dialect):
    """Speaks ACP v2 over a peer, with the `conversations` in which turns end."""

    version = 2
    schema = v2
    capabilities_field = "capabilities"
    plain_value = "id"

    def __init__(self, peer: Peer, timeouts: Timeouts, conversations: Conversations) -> None:
        super().__init__(peer, timeouts)
        self._conversations = conversations

    # ── the connection ────────────────────────────────────────────────────────────────────────

    def _agent_info(self, reply: v2.InitializeResponse) -> AgentInfo:
        return AgentInfo(reply.info.name, reply.info.version, reply.info.title)

    def _capabilities(self, reply: v2.InitializeResponse) -> AgentCapabilities:
        """An agent that has sessions can list, resume, replay and close them."""
        wire, session = reply.capabilities, reply.capabilities.session
        found = AgentCapabilities(
            mcp_stdio=False,
            logout=bool(reply.auth_methods),
            auth_status=wire.auth is not None and wire.auth.status is not None,
            providers=wire.providers is not None,
        )
        if session is not None:
            found.load = found.resume = found.list = found.close = True
            _add_session(found, session)
            if said(wire.meta, PROMPT_QUEUEING) is True:
                found.steer = "prompt"
        return found

    def _auth_method(self, wire: v2.AuthMethodAgent | v2.AuthMethodTerminal) -> AuthMethod:
        if isinstance(wire, v2.AuthMethodTerminal):
            env = {variable.name: variable.value for variable in wire.env}
            way = AuthMethod(
                wire.method_id, wire.name, "terminal", wire.description, wire.args, env
            )
        else:
            way = AuthMethod(wire.method_id, wire.name, "agent", wire.description)
        way.meta = wire.meta
        return way

    async def authenticate(self, method_id: str, meta: Meta = None) -> None:
        await self._sign_in("auth/login", v2.LoginAuthRequest(method_id=method_id, meta=meta))

    async def logout(self, meta: Meta = None) -> None:
        await self._control("auth/logout", v2.LogoutAuthRequest(meta=meta), v2.LogoutAuthResponse)

    async def load_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        request = v2.ResumeSessionRequest(
            session_id=session_id, replay_from=v2.ReplayFromStart(), **self._workplace(place)
        )
        reply_type = v2.ResumeSessionResponse
        await self._open("session/resume", request, reply_type, session_id, place, on_opened)

    @contextmanager
    def _reopening(self, session_id: str) -> Generator[None]:
        foreground = self._conversations.of(session_id).foreground
        foreground.reopen()
        try:
            yield
        finally:
            foreground.opening = False

    def _has_opened(self, session_id: str) -> None:
        self._conversations.of(session_id).foreground.opening = False
        self._conversations.tell(session_id)

    def _facts(self, reply: Any, raw: bytes | msgspec.Raw) -> list[Event]:
        facts: list[Event] = []
        if options := config_options(reply.config_options):
            facts.append(ConfigChanged(options))
        if commands := wire_format.commands(reply.available_commands):
            facts.append(CommandsChanged(commands))
        return facts

    def forget(self, session_id: str) -> None:
        self._conversations.forget(session_id)

    # ── a live session ────────────────────────────────────────────────────────────────────────

    async def prompt(
        self, session_id: str, prompt: Prompt, meta: Meta, on_finished: OnFinished
    ) -> None:
        request = self._prompt_request(session_id, prompt, meta)
        over = asyncio.Event()

        def finish(finished: Finished) -> None:
            over.set()
            on_finished(finished)

        foreground = self._conversations.of(session_id).foreground
        sent = foreground.prompted(prompt, finish)

        def taken(raw: msgspec.Raw) -> None:
            foreground.acknowledged(sent, _message_id(raw))
            self._conversations.tell(session_id)  # its work may be over already

        try:
            await self._peer.call("session/prompt", request, on_reply=taken)
            await self._ended(over)
        except RequestCancelled:
            on_finished(Finished("cancelled"))
        finally:
            foreground.withdraw(sent)

    async def _prompt_in_flight(
        self, session_id: str, prompt: Prompt, meta: Meta, on_reply: OnSteerReply
    ) -> None:
        """The agent answers once it is part of the conversation, however long that takes."""
        foreground = self._conversations.of(session_id).foreground
        sent = foreground.prompted(prompt, _nobody_waits)
        on_reply(SteerReply("accepted"))

        def taken(raw: msgspec.Raw) -> None:
            foreground.acknowledged(sent, _message_id(raw))
            foreground.withdraw(sent)
            on_reply(SteerReply("delivered" if foreground.prompts else "started"))
            self._conversations.tell(session_id)

        try:
            request = self._prompt_request(session_id, prompt, meta)
            await self._peer.call("session/prompt", request, on_reply=taken)
        finally:
            foreground.withdraw(sent)

    async def _ended(self, over: asyncio.Event) -> None:
        """The end of the turn, or of the connection: an agent may be lost in the middle of it."""
        ending = asyncio.create_task(over.wait())
        lost = asyncio.create_task(self._peer.wait_ended())
        try:
            await asyncio.wait([ending, lost], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            lost.cancel()
        if not over.is_set():
            raise lost.result()

    def cancel(self, session_id: str, meta: Meta = None) -> None:
        self._conversations.of(session_id).foreground.stops()
        request = v2.CancelSessionNotification(session_id=session_id, meta=meta)
        self._peer.notify("session/cancel", codec.encode(request))

    async def cancel_tool_call(self, session_id: str, tool_call_id: str) -> None:
        request = v2.CancelToolCallRequest(session_id=session_id, tool_call_id=tool_call_id)
        await self._control("tool_call/cancel", request, v2.CancelToolCallResponse)

    async def cancel_terminal(self, session_id: str, terminal_id: str) -> None:
        request = v2.CancelTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        await self._control("terminal/cancel", request, v2.CancelTerminalResponse)


def _nobody_waits(finished: Finished) -> None:
    """A steer has no end of its own."""


def _message_id(raw: msgspec.Raw) -> str | None:
    try:
        found = msgspec.json.decode(raw, type=_Acknowledged).message_id
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, str) else None


def _add_session(found: AgentCapabilities, wire: v2.SessionCapabilities) -> None:
    found.fork = wire.fork is not None
    found.delete = wire.delete is not None
    found.archive = wire.archive is not None
    found.status = wire.status is not None
    found.set_title = wire.title is not None
    found.additional_directories = wire.additional_directories is not None
    found.system_prompt = wire.system_prompt is not None
    found.system_prompt_override = can_override(wire.system_prompt)
    if (prompt := wire.prompt) is not None:
        found.image = prompt.image is not None
        found.audio = prompt.audio is not None
        found.embedded_context = prompt.embedded_context is not None
    if (mcp := wire.mcp) is not None:
        found.mcp_stdio = mcp.stdio is not None
        found.mcp_http = mcp.http is not None
        found.mcp_acp = mcp.acp is not None
