"""Steers over HTTP: to a session, and to a chat of the AI SDK."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from support.serving import served

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.scripted_agent import EVERYTHING

STEERABLE = msgspec.structs.replace(EVERYTHING, meta={"steering": {"supported": True}})


def agents(go_on: asyncio.Event) -> dict[str, ScriptedAgent]:
    async def script(turn: AgentTurn) -> None:
        turn.say("begun")
        await go_on.wait()

    answers = {"_session/steering": {"outcome": "injected"}}
    return {"scripted": ScriptedAgent(script, capabilities=STEERABLE, answers=answers)}


async def test_a_steer_answers_with_what_became_of_it(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with served(tmp_path, agents(go_on)) as server:
        session_id = await server.new_session()
        path = f"/api/sessions/{session_id}/steer"
        await server.prompt(session_id)
        await server.until(session_id, "running")
        answer = await server.call("POST", path, {"text": "rather blue"})
        steer = answer.pop("steer")
        assert answer == {"outcome": "delivered", "way": "steering"}
        events = (await server.call("GET", f"/api/sessions/{session_id}/events"))["events"]
        [told] = [each for each in events if each["type"] == "steered"]
        assert (told["queueId"], told["content"][0]["text"]) == (steer, "rather blue")
        assert await server.refused("POST", path, {}) == (400, "invalid")
        go_on.set()


async def test_a_chat_is_steered_and_its_stream_tells_it(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with served(tmp_path, agents(go_on)) as server:
        session_id = await server.new_session()
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        body = {"id": session_id, "messages": [message], "trigger": "submit-message"}
        async with server.http.stream("POST", "/api/chat", json=body) as response:
            lines = response.aiter_lines()
            async for line in lines:
                if "begun" in line:
                    break
            steer = {"text": "rather blue"}
            answer = await server.call("POST", f"/api/chat/{session_id}/steer", steer)
            assert answer["outcome"] == "delivered"
            go_on.set()
            rest = [line async for line in lines]
        [told] = [line for line in rest if "data-acp-steer" in line]
        assert '"outcome":"delivered"' in told
        assert "rather blue" in told
