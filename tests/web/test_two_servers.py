"""Two servers over one store: whoever is asked, a session is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.serving import STREAM, also_served, sent_events, served

from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import ask, say


async def test_a_session_of_one_is_watched_and_steered_through_the_other(tmp_path: Path) -> None:
    agents = {"scripted": ScriptedAgent([say("hello"), ask("call", title="May I", kind="delete")])}
    async with (
        served(tmp_path, agents, on_disk=True) as one,
        also_served(tmp_path, agents, on_disk=True) as other,
    ):
        session_id = await one.new_session()
        found = await other.detail(session_id)
        assert (found["owner"]["here"], found["status"]) == (False, "idle")
        path = f"/api/sessions/{session_id}"
        async with other.http.stream("GET", f"{path}/events", headers=STREAM) as response:
            await other.prompt(session_id)
            [pending] = (await other.until(session_id, "waiting"))["pending"]
            answer = {"optionId": pending["options"][0]["id"]}
            await other.call("POST", f"{path}/permissions/{pending['id']}", answer)
            told: list[Any] = []
            async for sent in sent_events(response):
                told.append(sent.json)
                if told[-1]["type"] == "turn_ended":
                    break
        assert told == (await one.call("GET", f"{path}/events"))["events"]
        assert (await other.call("PATCH", path, {"title": "Both"}))["title"] == "Both"
        assert (await one.detail(session_id))["title"] == "Both"
        assert await other.refused("DELETE", path) == (409, "session_owned")
        await one.call("POST", f"{path}/close")
        await other.call("DELETE", path)
        assert await one.refused("GET", path) == (404, "unknown_session")


async def test_a_chat_goes_on_through_the_other_server(tmp_path: Path) -> None:
    agents = {"scripted": ScriptedAgent([say("hello")])}
    async with (
        served(tmp_path, agents, on_disk=True) as one,
        also_served(tmp_path, agents, on_disk=True) as other,
    ):
        session_id = await one.new_session()
        parts = [{"type": "text", "text": "go"}]
        body = {"id": session_id, "messages": [{"id": "1", "role": "user", "parts": parts}]}
        response = await other.http.post("/api/chat", json=body)
        assert '"delta":"hello"' in response.text
        assert response.text.endswith("data: [DONE]\n\n")
