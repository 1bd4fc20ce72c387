"""An agent made with the official Python SDK, whose models check every message we send it."""

from __future__ import annotations

import asyncio
from typing import Any

from acp import (
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    SetSessionModeResponse,
    run_agent,
    text_block,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_user_message_text,
)
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    Implementation,
    PermissionOption,
    PromptCapabilities,
    SessionMode,
    SessionModeState,
    ToolCallUpdate,
)

MODES = SessionModeState(
    current_mode_id="ask",
    available_modes=[SessionMode(id="ask", name="Ask"), SessionMode(id="code", name="Code")],
)
OPTIONS = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class SdkAgent:
    """Writes what it is told into a file, if it may, and shows it."""

    def __init__(self) -> None:
        self._cwd = ""

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        capabilities = AgentCapabilities(
            load_session=True, prompt_capabilities=PromptCapabilities(embedded_context=True)
        )
        info = Implementation(name="sdk", version="1")
        return InitializeResponse(
            protocol_version=1, agent_capabilities=capabilities, agent_info=info
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        self._cwd = cwd
        return NewSessionResponse(session_id="sdk-1", modes=MODES)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        self._cwd = cwd
        await self._client.session_update(session_id, update_user_message_text("Before?"))
        await self._client.session_update(session_id, update_agent_message_text("Before."))
        return LoadSessionResponse(modes=MODES)

    async def set_session_mode(self, **_: Any) -> SetSessionModeResponse:
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        text = prompt[0].text
        await self._client.session_update(session_id, update_agent_thought_text("hm"))
        call = ToolCallUpdate(tool_call_id="w", title="Write", kind="edit", status="pending")
        answer = await self._client.request_permission(
            session_id=session_id, tool_call=call, options=OPTIONS
        )
        if answer.outcome.outcome == "selected" and answer.outcome.option_id == "yes":
            await self._work(session_id, text)
        else:
            await self._client.session_update(session_id, update_agent_message_text("Not then."))
        return PromptResponse(stop_reason="end_turn")

    async def _work(self, session_id: str, text: str) -> None:
        path = f"{self._cwd}/said.txt"
        await self._client.write_text_file(session_id=session_id, path=path, content=text)
        read = await self._client.read_text_file(session_id=session_id, path=path)
        terminal = await self._client.create_terminal(
            session_id=session_id, command="cat", args=["said.txt"]
        )
        where = {"session_id": session_id, "terminal_id": terminal.terminal_id}
        ended = await self._client.wait_for_terminal_exit(**where)
        shown = await self._client.terminal_output(**where)
        await self._client.release_terminal(**where)
        told = f"{read.content}|{shown.output.strip()}|{ended.exit_code}"
        await self._client.session_update(session_id, update_agent_message(text_block(told)))

    async def cancel(self, session_id: str, **_: Any) -> None:
        pass


if __name__ == "__main__":
    agent: Any = SdkAgent()
    asyncio.run(run_agent(agent))
