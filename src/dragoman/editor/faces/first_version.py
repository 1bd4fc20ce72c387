"""ACP v1, as an agent speaks it to an editor."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.agents.extensions import SHOWN_TERMINALS
from dragoman.client.dialects.encoding import Shows, token_usage
from dragoman.client.dialects.translation import contents
from dragoman.client.dialects.v1 import encoding
from dragoman.client.dialects.v1.encoding import EncoderV1
from dragoman.editor.desk import Desk
from dragoman.editor.faces.face import (
    Face,
    end_of_turn,
    implementation,
    shared_methods,
)
from dragoman.editor.link import EditorOffers
from dragoman.editor.window import EditorWindow
from dragoman.hub.cluster import commands as c
from dragoman.schema import v1
from dragoman.session.state import PendingPermission, SessionState


class FaceV1(Face):
    """Version 1, for an editor with these `capabilities`."""

    schema = v1

    def __init__(self, desk: Desk, capabilities: v1.ClientCapabilities) -> None:
        super().__init__(desk, _shows(capabilities))
        desk.link.offers = EditorOffers(
            reads=capabilities.fs.read_text_file,
            writes=capabilities.fs.write_text_file,
            terminals=capabilities.terminal,
        )

    def welcome(self) -> v1.InitializeResponse:
        return v1.InitializeResponse(
            protocol_version=1,
            agent_info=implementation(v1),
            agent_capabilities=_capabilities(),
            auth_methods=[],
            meta={"steering": {"supported": True}},
        )

    def encoder(self, session_id: str) -> EncoderV1:
        return EncoderV1(self.shows, self.desk.link.terminals)

    def facts(self, window: EditorWindow) -> dict[str, Any]:
        options = self.encoder(window.id).options(window.options(window.state.config_options))
        return {
            "modes": encoding.modes(window.state.modes),
            "config_options": options or None,
        }

    async def authenticate(self, request: v1.AuthenticateRequest) -> v1.AuthenticateResponse:
        await self.desk.authenticate(request.method_id)
        return v1.AuthenticateResponse()

    async def load_session(self, request: v1.LoadSessionRequest) -> v1.LoadSessionResponse:
        return v1.LoadSessionResponse(**await self._attach(request, replay=True))

    async def resume_session(self, request: v1.ResumeSessionRequest) -> v1.ResumeSessionResponse:
        return v1.ResumeSessionResponse(**await self._attach(request, replay=False))

    async def set_mode(self, request: v1.SetSessionModeRequest) -> v1.SetSessionModeResponse:
        self.desk.open(request.session_id)
        await self.desk.send(request.session_id, c.SetMode(request.mode_id))
        return v1.SetSessionModeResponse()

    async def prompt(self, request: v1.PromptRequest) -> v1.PromptResponse:
        window = self.desk.open(request.session_id)
        ended = await window.prompt(contents(request.prompt))
        end_of_turn(ended)
        return v1.PromptResponse(
            stop_reason=ended.stop_reason or "end_turn",
            usage=token_usage(ended.usage, v1),
            meta=ended.meta,
        )

    def permission(
        self, session_id: str, asked: PendingPermission, state: SessionState
    ) -> v1.RequestPermissionRequest:
        """With what is known of the tool call, and what exactly an allow would cover."""
        encoder = self.encoder(session_id)
        call = state.thread_of(asked.subagent).tool_call(asked.tool_call_id or "")
        content = encoder.content(asked.content, state) if asked.content else UNSET
        told = v1.ToolCallUpdate(
            tool_call_id=asked.tool_call_id or asked.id,
            title=asked.title,
            content=content,
        )
        if call is not None:
            told.kind, told.status, told.raw_input = call.kind, call.status, _given(call.raw_input)
            told.locations = encoding.shared.locations(call.locations, v1) or UNSET
            told.meta = _given(call.meta)
        options = self.permission_options(asked)
        return v1.RequestPermissionRequest(session_id=session_id, tool_call=told, options=options)


def _given(value: Any) -> Any:
    return UNSET if value is None else value


def _capabilities() -> v1.AgentCapabilities:
    return v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=v1.PromptCapabilities(image=True, audio=True, embedded_context=True),
        mcp_capabilities=v1.McpCapabilities(http=True, sse=True, acp=True),
        session_capabilities=v1.SessionCapabilities(
            list=v1.SessionListCapabilities(),
            delete=v1.SessionDeleteCapabilities(),
            additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
            fork=v1.SessionForkCapabilities(),
            resume=v1.SessionResumeCapabilities(),
            close=v1.SessionCloseCapabilities(),
        ),
    )


def _shows(client: v1.ClientCapabilities) -> Shows:
    session = client.session or v1.ClientSessionCapabilities()
    options, asks = session.config_options, client.elicitation
    shown = client.meta or {}
    return Shows(
        notices=session.notices is not None,
        compactions=session.compaction is not None,
        plans=client.plan is not None,
        subagents=client.subagents is not None,
        switches=options is not None and options.boolean is not None,
        terminals=all(shown.get(name) == value for name, value in SHOWN_TERMINALS.items()),
        forms=asks is not None and asks.form is not None,
        addresses=asks is not None and asks.url is not None,
    )


FaceV1.methods = shared_methods(v1) | {
    "authenticate": (v1.AuthenticateRequest, FaceV1.authenticate),
    "session/load": (v1.LoadSessionRequest, FaceV1.load_session),
    "session/resume": (v1.ResumeSessionRequest, FaceV1.resume_session),
    "session/set_mode": (v1.SetSessionModeRequest, FaceV1.set_mode),
    "session/prompt": (v1.PromptRequest, FaceV1.prompt),
}
