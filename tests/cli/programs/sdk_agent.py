"""An agent made with the official SDK's classes: it reads a file, asks, writes, and reports."""

from __future__ import annotations

import asyncio
from typing import Any

from acp import (
    PROTOCOL_VERSION,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    start_tool_call,
    text_block,
    tool_diff_content,
    update_agent_message,
    update_tool_call,
)
from acp.schema import AgentCapabilities, Implementation, PermissionOption, ToolCallUpdate


class SdkAgent:
    """Appends a line to notes.txt, if it may."""

    def __init__(self) -> None:
        self._cwd = ""
        self._client: Any = None

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="sdk", version="3"),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        self._cwd = cwd
        return NewSessionResponse(session_id="sdk-1")

    async def prompt(self, session_id: str, prompt: Any, **_: Any) -> PromptResponse:
        path = f"{self._cwd}/notes.txt"
        read = await self._client.read_text_file(path=path, session_id=session_id)
        diff = tool_diff_content(path, f"{read.content}more\n", read.content)
        await self._client.session_update(
            session_id, start_tool_call("c1", "Append a line", kind="edit", content=[diff])
        )
        answer = await self._client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id="c1"),
            options=[
                PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
                PermissionOption(option_id="no", name="No", kind="reject_once"),
            ],
        )
        allowed = getattr(answer.outcome, "option_id", None) == "yes"
        if allowed:
            await self._client.write_text_file(
                content=f"{read.content}more\n", path=path, session_id=session_id
            )
        await self._client.session_update(
            session_id, update_tool_call("c1", status="completed" if allowed else "failed")
        )
        words = "Done." if allowed else "You said no."
        await self._client.session_update(session_id, update_agent_message(text_block(words)))
        return PromptResponse(stop_reason="end_turn")


agent: Any = SdkAgent()  # a tenth of what the SDK's protocol class asks for
asyncio.run(run_agent(agent))
