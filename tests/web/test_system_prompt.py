"""The system prompt of a session, over HTTP and in a chat of the AI SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from support.serving import served

from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.scripted_agent import EVERYTHING

CAN = msgspec.structs.replace(
    EVERYTHING.session_capabilities, system_prompt=v1.SessionSystemPromptCapabilities()
)


async def _tell(turn: AgentTurn) -> None:
    told: Any = turn.session.request.system_prompt
    turn.say("nothing" if told is None else f"{told.mode}: {told.content[0].text}")


def agents() -> dict[str, ScriptedAgent]:
    accepting = msgspec.structs.replace(EVERYTHING, session_capabilities=CAN)
    return {"told": ScriptedAgent(_tell, capabilities=accepting), "deaf": ScriptedAgent(_tell)}


async def test_a_new_session_is_told_it_and_shows_it(tmp_path: Path) -> None:
    async with served(tmp_path, agents()) as server:
        body = {"agent": "told", "cwd": str(tmp_path), "systemPrompt": "Be brief."}
        session_id = (await server.call("POST", "/api/sessions", body))["id"]
        await server.prompt(session_id)
        await server.until(session_id, "idle")
        shown = await server.call("GET", f"/api/sessions/{session_id}")
        assert shown["systemPrompt"] == {"text": "Be brief."}
        assert shown["entries"][-1]["pieces"] == ["append: Be brief."]


async def test_what_cannot_be_told_begins_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, agents()) as server:
        for agent, prompt, status in (
            ("deaf", "Be brief.", (409, "unsupported")),
            ("told", {"text": "Be brief.", "mode": "override"}, (409, "unsupported")),
            ("told", {"text": "Be brief.", "mode": "instead"}, (400, "invalid")),
            ("told", {"text": " "}, (400, "invalid")),
            ("told", "", (400, "invalid")),
            ("told", 7, (400, "invalid")),
        ):
            body = {"agent": agent, "cwd": str(tmp_path), "systemPrompt": prompt}
            assert await server.refused("POST", "/api/sessions", body) == status, prompt
        assert (await server.call("GET", "/api/sessions"))["sessions"] == []


async def test_a_chat_may_bring_one_for_its_session(tmp_path: Path) -> None:
    async with served(tmp_path, agents()) as server:
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        acp = {"agent": "told", "cwd": str(tmp_path), "systemPrompt": "Be brief."}
        body = {"id": "new-chat", "messages": [message], "trigger": "submit-message", "acp": acp}
        async with server.http.stream("POST", "/api/chat", json=body) as response:
            text = "".join([line async for line in response.aiter_lines()])
        assert "append: Be brief." in text
        assert (await server.call("GET", "/api/sessions/new-chat"))["systemPrompt"]
