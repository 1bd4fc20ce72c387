"""The v1 dialect: every method a client calls, as one method here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from dragoman.client import translation
from dragoman.client.capabilities import AgentCapabilities, AgentInfo, AuthMethod, SessionInfo
from dragoman.client.config import HostCapabilities, Timeouts
from dragoman.client.dialect import OWN_OPTION, Finished, Meta, Opened, Place, Prompt, Welcome
from dragoman.client.v1 import wire_format
from dragoman.errors import InvalidMessage, RequestCancelled, Unsupported
from dragoman.rpc import Peer
from dragoman.schema import codec, v1
from dragoman.schema.base import Unknown
from dragoman.session.bounds import ID, LIMITS, fitting
from dragoman.session.content import Text
from dragoman.session.events import ConfigChanged, Event
from dragoman.session.facts import ConfigChoice, ConfigOption

T = TypeVar("T")

OLD_MODEL_OPTION = f"{OWN_OPTION}model"
"""The option under which the model of an agent with the older models API appears."""


class _OldModel(msgspec.Struct, rename="camel"):
    model_id: str
    name: str = ""
    description: str | None = None


class _OldModels(msgspec.Struct, rename="camel"):
    current_model_id: str
    available_models: list[_OldModel] = []


class _OldFields(msgspec.Struct):
    models: _OldModels | None = None


class V1:
    """Speaks ACP v1 over a peer. Methods raise what `Peer.call` raises, and InvalidMessage."""

    version = 1

    def __init__(self, peer: Peer, timeouts: Timeouts) -> None:
        self._peer = peer
        self._timeouts = timeouts

    # ── the connection ────────────────────────────────────────────────────────────────────────

    async def initialize(self, host: HostCapabilities, name: str, version: str) -> Welcome:
        request = v1.InitializeRequest(
            protocol_version=self.version,
            client_capabilities=wire_format.client_capabilities(host),
            client_info=v1.Implementation(name=name, title="Dragoman", version=version),
        )
        raw = await self._peer.call(
            "initialize", codec.encode(request), timeout=self._timeouts.initialize
        )
        return self.welcome(raw)

    def welcome(self, raw: msgspec.Raw) -> Welcome:
        """The answer to `initialize`."""
        reply = codec.decode(raw, v1.InitializeResponse)
        info = reply.agent_info
        return Welcome(
            protocol_version=reply.protocol_version,
            agent=AgentInfo() if info is None else AgentInfo(info.name, info.version, info.title),
            capabilities=_capabilities(reply.agent_capabilities, raw),
            auth_methods=[_auth_method(m) for m in reply.auth_methods if not _is_unknown(m)],
            meta=reply.meta,
        )

    async def authenticate(self, method_id: str, meta: Meta = None) -> None:
        # Signing in may take a person as long as it takes.
        request = v1.AuthenticateRequest(method_id=method_id, meta=meta)
        await self._peer.call("authenticate", codec.encode(request))

    async def logout(self) -> None:
        await self._control("logout", v1.LogoutRequest(), v1.LogoutResponse)

    async def auth_status(self) -> str:
        reply = await self._control("auth/status", v1.AuthStatusRequest(), v1.AuthStatusResponse)
        return reply.state

    async def list_providers(self, meta: Meta = None) -> list[dict[str, Any]]:
        reply = await self._control(
            "providers/list", v1.ListProvidersRequest(meta=meta), v1.ListProvidersResponse
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
        request = v1.SetProviderRequest(
            provider_id=provider_id,
            api_type=api_type,
            base_url=base_url,
            headers=headers,
            meta=meta,
        )
        await self._control("providers/set", request, v1.SetProviderResponse)

    async def disable_provider(self, provider_id: str, meta: Meta = None) -> None:
        request = v1.DisableProviderRequest(provider_id=provider_id, meta=meta)
        await self._control("providers/disable", request, v1.DisableProviderResponse)

    # ── opening sessions ──────────────────────────────────────────────────────────────────────

    async def new_session(self, place: Place, on_opened: Callable[[Opened], None]) -> None:
        request = v1.NewSessionRequest(
            cwd=place.cwd,
            mcp_servers=[wire_format.mcp_server(server) for server in place.mcp_servers],
            additional_directories=_told_directories(place),
            system_prompt=_system_prompt(place),
            meta=place.meta,
        )
        await self._open("session/new", request, v1.NewSessionResponse, None, place, on_opened)

    async def load_session(
        self, session_id: str, place: Place, on_opened: Callable[[Opened], None]
    ) -> None:
        request = v1.LoadSessionRequest(
            session_id=session_id,
            cwd=place.cwd,
            mcp_servers=[wire_format.mcp_server(server) for server in place.mcp_servers],
            additional_directories=_told_directories(place),
            system_prompt=_system_prompt(place),
            meta=place.meta,
        )
        await self._open(
            "session/load", request, v1.LoadSessionResponse, session_id, place, on_opened
        )

    async def resume_session(
        self, session_id: str, place: Place, on_opened: Callable[[Opened], None]
    ) -> None:
        request = v1.ResumeSessionRequest(
            session_id=session_id,
            cwd=place.cwd,
            mcp_servers=[wire_format.mcp_server(server) for server in place.mcp_servers],
            additional_directories=_told_directories(place),
            system_prompt=_system_prompt(place),
            meta=place.meta,
        )
        await self._open(
            "session/resume", request, v1.ResumeSessionResponse, session_id, place, on_opened
        )

    async def fork_session(
        self, session_id: str, place: Place, on_opened: Callable[[Opened], None]
    ) -> None:
        request = v1.ForkSessionRequest(
            session_id=session_id,
            cwd=place.cwd,
            mcp_servers=[wire_format.mcp_server(server) for server in place.mcp_servers],
            additional_directories=_told_directories(place),
            system_prompt=_system_prompt(place),
            meta=place.meta,
        )
        await self._open("session/fork", request, v1.ForkSessionResponse, None, place, on_opened)

    async def _open(
        self,
        method: str,
        request: msgspec.Struct,
        reply_type: type[Any],
        session_id: str | None,
        place: Place,
        on_opened: Callable[[Opened], None],
    ) -> None:
        """`on_opened` runs in wire order: before any update that follows the reply."""

        def on_reply(raw: msgspec.Raw) -> None:
            # Some agents answer load and resume with null, meaning nothing to tell.
            data = b"{}" if session_id is not None and bytes(raw) == b"null" else raw
            reply = codec.decode(data, reply_type)
            known = reply.session_id if session_id is None else session_id
            on_opened(Opened(known, _facts(reply, data), reply.meta))

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
        request = v1.ListSessionsRequest(cwd=cwd, cursor=cursor, meta=meta)
        reply = await self._control("session/list", request, v1.ListSessionsResponse)
        return [_session_info(info) for info in reply.sessions], reply.next_cursor

    async def delete_session(self, session_id: str) -> None:
        request = v1.DeleteSessionRequest(session_id=session_id)
        await self._control("session/delete", request, v1.DeleteSessionResponse)

    async def close_session(self, session_id: str) -> None:
        request = v1.CloseSessionRequest(session_id=session_id)
        await self._control("session/close", request, v1.CloseSessionResponse)

    def forget(self, session_id: str) -> None:
        """Nothing is kept."""

    async def archive_session(self, session_id: str) -> None:
        request = v1.ArchiveSessionRequest(session_id=session_id)
        await self._control("session/archive", request, v1.ArchiveSessionResponse)

    async def unarchive_session(self, session_id: str) -> None:
        request = v1.UnarchiveSessionRequest(session_id=session_id)
        await self._control("session/unarchive", request, v1.UnarchiveSessionResponse)

    async def session_status(self, session_id: str) -> str:
        request = v1.SessionStatusRequest(session_id=session_id)
        reply = await self._control("session/status", request, v1.SessionStatusResponse)
        return reply.status

    async def set_session_title(self, session_id: str, title: str) -> str:
        request = v1.SetSessionTitleRequest(session_id=session_id, title=title)
        reply = await self._control("session/set_title", request, v1.SetSessionTitleResponse)
        return reply.title

    # ── a live session ────────────────────────────────────────────────────────────────────────

    async def prompt(
        self,
        session_id: str,
        prompt: Prompt,
        meta: dict[str, Any] | None,
        on_finished: Callable[[Finished], None],
    ) -> None:
        """`on_finished` runs in wire order: behind the turn's last update, before any later one."""
        request = v1.PromptRequest(
            session_id=session_id, prompt=[wire_format.content(part) for part in prompt], meta=meta
        )

        def on_reply(raw: msgspec.Raw) -> None:
            reply = codec.decode(raw, v1.PromptResponse)
            usage = translation.token_usage(reply.usage)
            on_finished(Finished(reply.stop_reason, usage, reply.meta))

        try:
            await self._peer.call("session/prompt", codec.encode(request), on_reply=on_reply)
        except RequestCancelled:
            on_finished(Finished("cancelled"))

    def cancel(self, session_id: str) -> None:
        request = v1.CancelNotification(session_id=session_id)
        self._peer.notify("session/cancel", codec.encode(request))

    async def cancel_tool_call(self, session_id: str, tool_call_id: str) -> None:
        raise Unsupported("stopping a single tool call")

    async def cancel_terminal(self, session_id: str, terminal_id: str) -> None:
        raise Unsupported("stopping a terminal of its own")

    async def set_mode(self, session_id: str, mode_id: str, meta: Meta = None) -> None:
        request = v1.SetSessionModeRequest(session_id=session_id, mode_id=mode_id, meta=meta)
        await self._control("session/set_mode", request, v1.SetSessionModeResponse)

    async def set_config_option(
        self, session_id: str, option: ConfigOption, value: str | bool, meta: Meta = None
    ) -> list[ConfigOption] | None:
        """Every option after the change, if the agent tells them."""
        if option.id == OLD_MODEL_OPTION:
            await self._set_old_model(session_id, str(value))
            return None
        request = v1.SetSessionConfigOptionRequest(
            session_id=session_id,
            config_id=option.id,
            meta=meta,
            value=value,
            type="boolean" if isinstance(value, bool) else None,
        )
        method, reply_type = "session/set_config_option", v1.SetSessionConfigOptionResponse
        try:
            reply = await self._control(method, request, reply_type)
        except InvalidMessage:
            return None  # it is set anyway
        return wire_format.config_options(reply.config_options)

    async def _set_old_model(self, session_id: str, model_id: str) -> None:
        params = msgspec.json.encode({"sessionId": session_id, "modelId": model_id})
        await self._peer.call("session/set_model", params, timeout=self._timeouts.control)

    async def _control(self, method: str, request: msgspec.Struct, reply_type: type[T]) -> T:
        raw = await self._peer.call(method, codec.encode(request), timeout=self._timeouts.control)
        return codec.decode(b"{}" if bytes(raw) == b"null" else raw, reply_type)


def _is_unknown(value: object) -> bool:
    return isinstance(value, Unknown)


def _told_directories(place: Place) -> list[str]:
    return place.additional_directories if place.tell_directories else []


def _system_prompt(place: Place) -> v1.SystemPrompt | None:
    if place.system_prompt is None:
        return None
    return v1.SystemPrompt(mode="append", content=[wire_format.content(Text(place.system_prompt))])


def _facts(reply: Any, raw: bytes | msgspec.Raw) -> list[Event]:
    facts: list[Event] = []
    if reply.modes is not None:
        facts.append(wire_format.modes(reply.modes))
    options = wire_format.config_options(reply.config_options or [])
    if not any(option.category == "model" for option in options):
        options += _old_model_options(raw)
    if options:
        facts.append(ConfigChanged(options))
    return facts


def _old_model_options(raw: bytes | msgspec.Raw) -> list[ConfigOption]:
    try:
        models = msgspec.json.decode(raw, type=_OldFields).models
    except msgspec.DecodeError:
        return []
    if models is None:
        return []
    choices = [
        ConfigChoice(m.model_id, m.name or m.model_id, m.description)
        for m in models.available_models
    ]
    # It is repeated with every option that the agent sends: it must be small.
    few, _ = fitting(choices, LIMITS.fact)
    current = models.current_model_id[:ID]
    return [ConfigOption(OLD_MODEL_OPTION, "Model", current, few, category="model")]


def _capabilities(wire: v1.AgentCapabilities, raw: msgspec.Raw) -> AgentCapabilities:
    session, prompt, mcp = (
        wire.session_capabilities,
        wire.prompt_capabilities,
        wire.mcp_capabilities,
    )
    return AgentCapabilities(
        load=wire.load_session,
        resume=session.resume is not None,
        fork=session.fork is not None,
        list=session.list is not None,
        delete=session.delete is not None,
        close=session.close is not None,
        archive=session.archive is not None,
        status=session.status is not None,
        set_title=session.title is not None,
        additional_directories=session.additional_directories is not None,
        system_prompt=session.system_prompt is not None,
        image=prompt.image,
        audio=prompt.audio,
        embedded_context=prompt.embedded_context,
        mcp_http=mcp.http,
        mcp_sse=mcp.sse,
        mcp_acp=mcp.acp,
        logout=wire.auth.logout is not None,
        auth_status=wire.auth.status is not None,
        providers=wire.providers is not None,
        raw=_told(raw),
    )


class _Told(msgspec.Struct, rename="camel"):
    agent_capabilities: Any = None


def _told(raw: msgspec.Raw) -> dict[str, Any]:
    """The capabilities word for word, with what the schema has no name for."""
    match msgspec.json.decode(raw, type=_Told).agent_capabilities:
        case {**capabilities}:
            return capabilities
        case _:
            return {}


def _auth_method(wire: Any) -> AuthMethod:
    if isinstance(wire, v1.AuthMethodTerminal):
        way = AuthMethod(wire.id, wire.name, "terminal", wire.description, wire.args, wire.env)
    else:
        way = AuthMethod(wire.id, wire.name, "agent", wire.description)
    way.meta = wire.meta
    return way


def _session_info(wire: v1.SessionInfo) -> SessionInfo:
    return SessionInfo(
        id=wire.session_id,
        cwd=wire.cwd,
        additional_directories=wire.additional_directories,
        title=wire.title,
        updated_at=wire.updated_at,
        archived=wire.archived,
        meta=wire.meta,
    )
