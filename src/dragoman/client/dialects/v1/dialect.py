"""The v1 dialect: what a client says to an agent as only version 1 says it."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.agents.extensions import reply_tokens
from dragoman.client.capabilities import AgentCapabilities, AgentInfo, AuthMethod
from dragoman.client.client_options import HostCapabilities
from dragoman.client.dialects import translation
from dragoman.client.dialects.dialect import (
    Dialect,
    Finished,
    Meta,
    OnFinished,
    OnOpened,
    Place,
    Prompt,
    Welcome,
)
from dragoman.client.dialects.v1 import wire_format
from dragoman.client.sessions.config_options import OWN_OPTION
from dragoman.errors import RequestCancelled
from dragoman.schema import codec, v1
from dragoman.session.events import ConfigChanged, Event
from dragoman.session.facts import ConfigChoice, ConfigOption
from dragoman.session.state_limits import ID, LIMITS, fitting

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


class V1(Dialect):
    """Speaks ACP v1 over a peer."""

    version = 1
    schema = v1
    capabilities_field = "agentCapabilities"
    plain_value = None

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

    def _agent_info(self, reply: v1.InitializeResponse) -> AgentInfo:
        info = reply.agent_info
        return AgentInfo() if info is None else AgentInfo(info.name, info.version, info.title)

    def _capabilities(self, reply: v1.InitializeResponse) -> AgentCapabilities:
        return _capabilities(reply.agent_capabilities)

    def _auth_method(self, wire: Any) -> AuthMethod:
        if isinstance(wire, v1.AuthMethodTerminal):
            way = AuthMethod(wire.id, wire.name, "terminal", wire.description, wire.args, wire.env)
        else:
            way = AuthMethod(wire.id, wire.name, "agent", wire.description)
        way.meta = wire.meta
        return way

    async def authenticate(self, method_id: str, meta: Meta = None) -> None:
        request = v1.AuthenticateRequest(method_id=method_id, meta=meta)
        await self._sign_in("authenticate", request)

    async def logout(self, meta: Meta = None) -> None:
        await self._control("logout", v1.LogoutRequest(meta=meta), v1.LogoutResponse)

    async def load_session(self, session_id: str, place: Place, on_opened: OnOpened) -> None:
        request = v1.LoadSessionRequest(session_id=session_id, **self._workplace(place))
        reply_type = v1.LoadSessionResponse
        await self._open("session/load", request, reply_type, session_id, place, on_opened)

    def _facts(self, reply: Any, raw: bytes | msgspec.Raw) -> list[Event]:
        facts: list[Event] = []
        if reply.modes is not None:
            facts.append(wire_format.modes(reply.modes))
        options = translation.config_options(reply.config_options or [])
        if not any(option.category == "model" for option in options):
            options += _old_model_options(raw)
        if options:
            facts.append(ConfigChanged(options))
        return facts

    # ── a live session ────────────────────────────────────────────────────────────────────────

    async def prompt(
        self, session_id: str, prompt: Prompt, meta: Meta, on_finished: OnFinished
    ) -> None:
        request = self._prompt_request(session_id, prompt, meta)

        def on_reply(raw: msgspec.Raw) -> None:
            reply = codec.decode(raw, v1.PromptResponse)
            usage = reply_tokens(translation.token_usage(reply.usage), reply.meta)
            on_finished(Finished(reply.stop_reason, usage, reply.meta))

        try:
            await self._peer.call("session/prompt", request, on_reply=on_reply)
        except RequestCancelled:
            on_finished(Finished("cancelled"))

    def cancel(self, session_id: str, meta: Meta = None) -> None:
        request = v1.CancelNotification(session_id=session_id, meta=meta)
        self._peer.notify("session/cancel", codec.encode(request))

    async def set_mode(self, session_id: str, mode_id: str, meta: Meta = None) -> None:
        request = v1.SetSessionModeRequest(session_id=session_id, mode_id=mode_id, meta=meta)
        await self._control("session/set_mode", request, v1.SetSessionModeResponse)

    async def set_config_option(
        self, session_id: str, option: ConfigOption, value: str | bool, meta: Meta = None
    ) -> list[ConfigOption] | None:
        if option.id == OLD_MODEL_OPTION:
            await self._set_old_model(session_id, str(value))
            return None
        return await super().set_config_option(session_id, option, value, meta)

    async def _set_old_model(self, session_id: str, model_id: str) -> None:
        params = msgspec.json.encode({"sessionId": session_id, "modelId": model_id})
        await self._peer.call("session/set_model", params, timeout=self._timeouts.control)


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


def _capabilities(wire: v1.AgentCapabilities) -> AgentCapabilities:
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
        system_prompt_override=translation.can_override(session.system_prompt),
        image=prompt.image,
        audio=prompt.audio,
        embedded_context=prompt.embedded_context,
        mcp_http=mcp.http,
        mcp_sse=mcp.sse,
        mcp_acp=mcp.acp,
        logout=wire.auth.logout is not None,
        auth_status=wire.auth.status is not None,
        providers=wire.providers is not None,
    )
