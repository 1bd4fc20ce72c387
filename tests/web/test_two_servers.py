"""Two servers over one store: whoever is asked, a session is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.serving import STREAM, also_served, sent_events, served

from dragoman import Policy
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import ask, say, write_file


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


async def test_a_form_of_one_is_refused_field_by_field_by_the_other(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        fields = {"name": {"type": "string", "pattern": "^[a-z-]+$"}, "age": {"type": "integer"}}
        answer = await turn.elicit("What?", {"type": "object", "properties": fields})
        turn.say(answer["content"]["name"])

    agents = {"scripted": ScriptedAgent(script)}
    async with (
        served(tmp_path, agents, on_disk=True) as one,
        also_served(tmp_path, agents, on_disk=True) as other,
    ):
        session_id = await one.new_session()
        await one.prompt(session_id)
        [pending] = (await other.until(session_id, "waiting"))["pending"]
        path = f"/api/sessions/{session_id}/elicitations/{pending['id']}"
        wrong = {"action": "accept", "content": {"name": "Bad Name!", "age": "old"}}
        response = await other.http.post(path, json=wrong)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, "invalid")
        assert error["detail"]["fields"] == {
            "name": "expected to match ^[a-z-]+$",
            "age": "expected a whole number",
        }
        await other.call("POST", path, {"action": "accept", "content": {"name": "ok", "age": 7}})
        assert (await other.until(session_id, "idle"))["entries"][-1]["pieces"] == ["ok"]


async def test_a_revert_through_the_other_says_which_files_it_would_lose(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    agents = {"scripted": ScriptedAgent([write_file(str(file), "written\n")])}
    async with (
        served(tmp_path, agents, policy=Policy(write=True), on_disk=True) as one,
        also_served(tmp_path, agents, on_disk=True) as other,
    ):
        session_id = await one.new_session()
        await one.done(session_id)
        file.write_text("by somebody else\n")
        response = await other.http.post(f"/api/sessions/{session_id}/revert")
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (409, "conflict")
        assert list(error["detail"]["reasons"]) == [str(file)]


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
