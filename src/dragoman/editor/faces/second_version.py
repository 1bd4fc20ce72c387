"""ACP v2, a draft, as an agent speaks it to an editor.

A prompt is acknowledged at once, with the id of its turn as the id of its message; how it ends, a
`state_update` says. Files and terminals are the agent's own in this version: this machine serves
them to agents of version 1.
"""

from __future__ import annotations

import shlex
from typing import Any

from dragoman.client.dialects import encoding as shared
from dragoman.client.dialects.encoding import Shows
from dragoman.client.dialects.translation import contents
from dragoman.client.dialects.v2 import encoding
from dragoman.client.dialects.v2.encoding import EncoderV2
from dragoman.editor.desk import Desk
from dragoman.editor.faces.face import Face, implementation, shared_methods
from dragoman.editor.window import EditorWindow
from dragoman.hub.cluster import commands as c
from dragoman.schema import v2
from dragoman.session.state import PendingPermission, SessionState


class FaceV2(Face):
    """Version 2, for an editor with these `capabilities`."""

    schema = v2

    def __init__(self, desk: Desk, capabilities: v2.ClientCapabilities) -> None:
        asks = capabilities.elicitation
        shows = Shows(
            notices=True,
            compactions=True,
            plans=True,
            subagents=True,
            switches=True,
            terminals=True,
            forms=asks is not None and asks.form is not None,
            addresses=asks is not None and asks.url is not None,
        )
        super().__init__(desk, shows)

    def welcome(self) -> v2.InitializeResponse:
        return v2.InitializeResponse(
            protocol_version=2, info=implementation(v2), capabilities=_capabilities()
        )

    def encoder(self, session_id: str) -> EncoderV2:
        return EncoderV2(self.shows)

    def facts(self, window: EditorWindow) -> dict[str, Any]:
        state = window.state
        options = self.encoder(window.id).options(window.options(state.config_options))
        return {"config_options": options, "available_commands": encoding.commands(state.commands)}

    async def login(self, request: v2.LoginAuthRequest) -> v2.LoginAuthResponse:
        await self.desk.authenticate(request.method_id)
        return v2.LoginAuthResponse()

    async def resume_session(self, request: v2.ResumeSessionRequest) -> v2.ResumeSessionResponse:
        replay = request.replay_from is not None
        return v2.ResumeSessionResponse(**await self._attach(request, replay=replay))

    async def prompt(self, request: v2.PromptRequest) -> v2.PromptResponse:
        window = self.desk.open(request.session_id)
        turn_id = await window.send_prompt(contents(request.prompt))
        self.desk.spawn(window.see_through(turn_id))
        return v2.PromptResponse(message_id=turn_id)

    async def cancel_tool_call(
        self, request: v2.CancelToolCallRequest
    ) -> v2.CancelToolCallResponse:
        await self.desk.send(request.session_id, c.CancelToolCall(request.tool_call_id))
        return v2.CancelToolCallResponse()

    async def cancel_terminal(self, request: v2.CancelTerminalRequest) -> v2.CancelTerminalResponse:
        await self.desk.send(request.session_id, c.CancelTerminal(request.terminal_id))
        return v2.CancelTerminalResponse()

    def permission(
        self, session_id: str, asked: PendingPermission, state: SessionState
    ) -> v2.RequestPermissionRequest:
        return v2.RequestPermissionRequest(
            session_id=session_id,
            title=asked.title,
            description=asked.explanation,
            subject=self._subject(session_id, asked, state),
            options=self.permission_options(asked),
        )

    def _subject(self, session_id: str, asked: PendingPermission, state: SessionState) -> Any:
        """The tool call with what an allow would cover, else the command."""
        call_id = asked.tool_call_id
        call = state.thread_of(asked.subagent).tool_call(call_id or "")
        if call_id is None and asked.argv is not None:
            line = shlex.join(asked.argv)
            return v2.CommandPermissionSubject(command=line, cwd=asked.cwd or state.cwd)
        told = v2.ToolCallUpdate(tool_call_id=call_id or asked.id, title=asked.title)
        if asked.content:
            told.content = self.encoder(session_id).content(asked.content)
        if call is not None:
            told.kind, told.status = call.kind, call.status
            told.locations = shared.locations(call.locations, v2)
            told.raw_input = call.raw_input
        return v2.ToolCallPermissionSubject(tool_call=told)


def _capabilities() -> v2.AgentCapabilities:
    return v2.AgentCapabilities(
        session=v2.SessionCapabilities(
            prompt=v2.PromptCapabilities(
                image=v2.PromptImageCapabilities(),
                audio=v2.PromptAudioCapabilities(),
                embedded_context=v2.PromptEmbeddedContextCapabilities(),
            ),
            mcp=v2.McpCapabilities(
                stdio=v2.McpStdioCapabilities(),
                http=v2.McpHttpCapabilities(),
                acp=v2.McpAcpCapabilities(),
            ),
            delete=v2.SessionDeleteCapabilities(),
            fork=v2.SessionForkCapabilities(),
            additional_directories=v2.SessionAdditionalDirectoriesCapabilities(),
        )
    )


FaceV2.methods = shared_methods(v2) | {
    "auth/login": (v2.LoginAuthRequest, FaceV2.login),
    "session/resume": (v2.ResumeSessionRequest, FaceV2.resume_session),
    "session/prompt": (v2.PromptRequest, FaceV2.prompt),
    "tool_call/cancel": (v2.CancelToolCallRequest, FaceV2.cancel_tool_call),
    "terminal/cancel": (v2.CancelTerminalRequest, FaceV2.cancel_terminal),
}
