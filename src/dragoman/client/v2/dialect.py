"""The v2 dialect: every method a client calls, as one method here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from dragoman.client.capabilities import AgentCapabilities, AgentInfo, AuthMethod, SessionInfo
from dragoman.client.config import Timeouts
from dragoman.client.dialect import Finished, Meta, OnOpened, Opened, Place, Prompt, Welcome
from dragoman.client.v2 import wire_format
from dragoman.client.v2.inbound import Conversations
from dragoman.errors import InvalidMessage, RequestCancelled, Unsupported
from dragoman.rpc import Peer
from dragoman.schema import codec, v2
from dragoman.schema.base import Unknown
from dragoman.session.events import CommandsChanged, ConfigChanged, Event
from dragoman.session.facts import ConfigOption

T = TypeVar("T")


class _Acknowledged(msgspec.Struct, rename="camel"):
    """Earlier drafts answer with an empty object."""

    message_id: Any = None


class _Told(msgspec.Struct):
    capabilities: Any = None


class V2:
    """Speaks ACP v2 over a peer, with the `conversations` in which turns end."""

    version = 2

    def __init__(self, peer: Peer, timeouts: Timeouts, conversations: Conversations) -> None:
        self._peer = peer
        self._timeouts = timeouts
        self._conversations = conversations

    # ── the connection ────────────────────────────────────────────────────────────────────────

    def welcome(self, raw: msgspec.Raw) -> Welcome:
        """The answer to `initialize`."""
        reply = codec.decode(raw, v2.InitializeResponse)
        methods = [_auth_method(m) for m in reply.auth_methods if not isinstance(m, Unknown)]
        return Welcome(
            protocol_version=reply.protocol_version,
            agent=AgentInfo(reply.info.name, reply.info.version, reply.info.title),
            capabilities=_capabilities(reply, raw),
            auth_methods=methods,
            meta=reply.meta,
        )

    async def authenticate(self, method_id: str, meta: Meta = None) -> None:
        # Signing in may take a person as long as it takes.
        request = v2.LoginAuthRequest(method_id=method_id, meta=meta)
        await self._peer.call("auth/login", codec.encode(request))

    async def logout(self) -> None:
        await self._control("auth/logout", v2.LogoutAuthRequest(), v2.LogoutAuthResponse)

    async def auth_status(self) -> str:
        reply = await self._control("auth/status", v2.AuthStatusRequest(), v2.AuthStatusResponse)
        return reply.state

    async def list_providers(self, meta: Meta = None) -> list[dict[str, Any]]:
        reply = await self._control(
            "providers/list", v2.ListProvidersRequest(meta=meta), v2.ListProvidersResponse
        )
        return [msgspec.to_builtins(provider) for provider in reply.providers]

    async def set_provider(
        self,
        provider_id: str,
        api_type: str,
        base_url: str,
        headers: dict[str, str],
        meta: Meta = None,
    ) -> None:
        request = v2.SetProviderRequest(
            provider_id=provider_id,
            api_type=api_type,
            base_url=base_url,
            headers=headers,
            meta=meta,
        )
        await self._control("providers/set", request, v2.SetProviderResponse)

    async def disable_provider(self, provider_id: str, meta: Meta = None) -> None:
        request = v2.DisableProviderRequest(provider_id=provider_id, meta=meta)
        await self._control("providers/disable", request, v2.DisableProviderResponse)

    # ── opening sessions ──────────────────────────────────────────────────────────────────────

    async def new_session(self, place: Place, on_opened: OnOpened) -> None:
        request = v2.NewSessionRequest(
            cwd=place.cwd,
            mcp_servers=wire_format.mcp_servers(place),
            additional_directories=wire_format.directories(place),
            system_prompt=wire_format.system_prompt(place),
            meta=place.meta,
        )
        await self._open("session/new", request, v2.NewSessionResponse, None, place, on_opened)

    async def load_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        await self._resume(session_id, place, v2.ReplayFromStart(), on_opened)

    async def resume_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        await self._resume(session_id, place, None, on_opened)

    async def _resume(
        self,
        session_id: str,
        place: Place,
        replay_from: v2.ReplayFrom | None,
        on_opened: OnOpened,
    ) -> None:
        request = v2.ResumeSessionRequest(
            session_id=session_id,
            cwd=place.cwd,
            mcp_servers=wire_format.mcp_servers(place),
            additional_directories=wire_format.directories(place),
            replay_from=replay_from,
            system_prompt=wire_format.system_prompt(place),
            meta=place.meta,
        )
        foreground = self._conversations.of(session_id).foreground
        foreground.reopen()
        try:
            await self._open(
                "session/resume", request, v2.ResumeSessionResponse, session_id, place, on_opened
            )
        finally:
            foreground.opening = False

    async def fork_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        request = v2.ForkSessionRequest(
            session_id=session_id,
            cwd=place.cwd,
            mcp_servers=wire_format.mcp_servers(place),
            additional_directories=wire_format.directories(place),
            system_prompt=wire_format.system_prompt(place),
            meta=place.meta,
        )
        await self._open("session/fork", request, v2.ForkSessionResponse, None, place, on_opened)

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
            reply = codec.decode(_result(raw), reply_type)
            known = reply.session_id if session_id is None else session_id
            opened = Opened(known, _facts(reply), reply.meta)
            on_opened(opened)
            self._conversations.of(opened.session_id).foreground.opening = False
            self._conversations.tell(opened.session_id)

        await self._peer.call(
            method,
            codec.encode(request),
            timeout=self._timeouts.initialize,
            on_reply=on_reply,
            on_sent=place.is_opened_by,
        )

    # ── sessions the agent keeps ──────────────────────────────────────────────────────────────

    async def list_sessions(
        self, cwd: str | None, cursor: str | None, meta: Meta = None
    ) -> tuple[list[SessionInfo], str | None]:
        request = v2.ListSessionsRequest(cwd=cwd, cursor=cursor, meta=meta)
        reply = await self._control("session/list", request, v2.ListSessionsResponse)
        return [_session_info(info) for info in reply.sessions], reply.next_cursor

    async def delete_session(self, session_id: str) -> None:
        request = v2.DeleteSessionRequest(session_id=session_id)
        await self._control("session/delete", request, v2.DeleteSessionResponse)
        self.forget(session_id)

    async def close_session(self, session_id: str) -> None:
        request = v2.CloseSessionRequest(session_id=session_id)
        try:
            await self._control("session/close", request, v2.CloseSessionResponse)
        finally:
            self.forget(session_id)

    def forget(self, session_id: str) -> None:
        self._conversations.forget(session_id)

    async def archive_session(self, session_id: str) -> None:
        request = v2.ArchiveSessionRequest(session_id=session_id)
        await self._control("session/archive", request, v2.ArchiveSessionResponse)

    async def unarchive_session(self, session_id: str) -> None:
        request = v2.UnarchiveSessionRequest(session_id=session_id)
        await self._control("session/unarchive", request, v2.UnarchiveSessionResponse)

    async def session_status(self, session_id: str) -> str:
        request = v2.SessionStatusRequest(session_id=session_id)
        reply = await self._control("session/status", request, v2.SessionStatusResponse)
        return reply.status

    async def set_session_title(self, session_id: str, title: str) -> str:
        request = v2.SetSessionTitleRequest(session_id=session_id, title=title)
        reply = await self._control("session/set_title", request, v2.SetSessionTitleResponse)
        return reply.title

    # ── a live session ────────────────────────────────────────────────────────────────────────

    async def prompt(
        self,
        session_id: str,
        prompt: Prompt,
        meta: dict[str, Any] | None,
        on_finished: Callable[[Finished], None],
    ) -> None:
        request = v2.PromptRequest(
            session_id=session_id, prompt=[wire_format.content(part) for part in prompt], meta=meta
        )
        over = asyncio.Event()

        def finish(finished: Finished) -> None:
            over.set()
            on_finished(finished)

        foreground = self._conversations.of(session_id).foreground
        sent = foreground.prompted(prompt, finish)
        try:
            await self._peer.call(
                "session/prompt",
                codec.encode(request),
                on_reply=lambda raw: foreground.acknowledged(sent, _message_id(raw)),
            )
            await self._ended(over)
        except RequestCancelled:
            on_finished(Finished("cancelled"))
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

    def cancel(self, session_id: str) -> None:
        self._conversations.of(session_id).foreground.stops()
        request = v2.CancelSessionNotification(session_id=session_id)
        self._peer.notify("session/cancel", codec.encode(request))

    async def cancel_tool_call(self, session_id: str, tool_call_id: str) -> None:
        request = v2.CancelToolCallRequest(session_id=session_id, tool_call_id=tool_call_id)
        await self._control("tool_call/cancel", request, v2.CancelToolCallResponse)

    async def cancel_terminal(self, session_id: str, terminal_id: str) -> None:
        request = v2.CancelTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        await self._control("terminal/cancel", request, v2.CancelTerminalResponse)

    async def set_mode(self, session_id: str, mode_id: str, meta: Meta = None) -> None:
        # Modes are a config option here; the session sets that.
        raise Unsupported("modes that are not config options")

    async def set_config_option(
        self, session_id: str, option: ConfigOption, value: str | bool, meta: Meta = None
    ) -> list[ConfigOption] | None:
        request = v2.SetSessionConfigOptionRequest(
            session_id=session_id,
            config_id=option.id,
            meta=meta,
            type="boolean" if isinstance(value, bool) else "id",
            value=value,
        )
        method, reply_type = "session/set_config_option", v2.SetSessionConfigOptionResponse
        try:
            reply = await self._control(method, request, reply_type)
        except InvalidMessage:
            return None  # it is set anyway
        return wire_format.config_options(reply.config_options)

    async def _control(self, method: str, request: msgspec.Struct, reply_type: type[T]) -> T:
        raw = await self._peer.call(method, codec.encode(request), timeout=self._timeouts.control)
        return codec.decode(_result(raw), reply_type)


def _result(raw: msgspec.Raw) -> bytes | msgspec.Raw:
    """Some agents answer with null where there is nothing to tell."""
    return b"{}" if bytes(raw) == b"null" else raw


def _message_id(raw: msgspec.Raw) -> str | None:
    try:
        found = msgspec.json.decode(raw, type=_Acknowledged).message_id
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, str) else None


def _facts(reply: Any) -> list[Event]:
    facts: list[Event] = []
    if options := wire_format.config_options(reply.config_options):
        facts.append(ConfigChanged(options))
    if commands := wire_format.commands(reply.available_commands):
        facts.append(CommandsChanged(commands))
    return facts


def _capabilities(reply: v2.InitializeResponse, raw: msgspec.Raw) -> AgentCapabilities:
    """An agent that has sessions can list, resume, replay and close them."""
    wire, session = reply.capabilities, reply.capabilities.session
    found = AgentCapabilities(
        mcp_stdio=False,
        logout=bool(reply.auth_methods),
        auth_status=wire.auth is not None and wire.auth.status is not None,
        providers=wire.providers is not None,
        raw=_told(raw),
    )
    if session is not None:
        found.load = found.resume = found.list = found.close = True
        _add_session(found, session)
    return found


def _add_session(found: AgentCapabilities, wire: v2.SessionCapabilities) -> None:
    found.fork = wire.fork is not None
    found.delete = wire.delete is not None
    found.archive = wire.archive is not None
    found.status = wire.status is not None
    found.set_title = wire.title is not None
    found.additional_directories = wire.additional_directories is not None
    found.system_prompt = wire.system_prompt is not None
    if (prompt := wire.prompt) is not None:
        found.image = prompt.image is not None
        found.audio = prompt.audio is not None
        found.embedded_context = prompt.embedded_context is not None
    if (mcp := wire.mcp) is not None:
        found.mcp_stdio = mcp.stdio is not None
        found.mcp_http = mcp.http is not None
        found.mcp_acp = mcp.acp is not None


def _told(raw: msgspec.Raw) -> dict[str, Any]:
    """The capabilities word for word, with what the schema has no name for."""
    match msgspec.json.decode(raw, type=_Told).capabilities:
        case {**capabilities}:
            return capabilities
        case _:
            return {}


def _auth_method(wire: v2.AuthMethodAgent | v2.AuthMethodTerminal) -> AuthMethod:
    if isinstance(wire, v2.AuthMethodTerminal):
        env = {variable.name: variable.value for variable in wire.env}
        way = AuthMethod(wire.method_id, wire.name, "terminal", wire.description, wire.args, env)
    else:
        way = AuthMethod(wire.method_id, wire.name, "agent", wire.description)
    way.meta = wire.meta
    return way


def _session_info(wire: v2.SessionInfo) -> SessionInfo:
    return SessionInfo(
        id=wire.session_id,
        cwd=wire.cwd,
        additional_directories=wire.additional_directories,
        title=wire.title,
        updated_at=wire.updated_at,
        archived=wire.archived,
        meta=wire.meta,
    )
