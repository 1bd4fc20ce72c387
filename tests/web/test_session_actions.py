"""What is asked of sessions over HTTP: prompts, answers, settings, and their end."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.serving import served
from support.v2_agent import stoppable

from dragoman import Policy, RemoteError
from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import (
    ask,
    say,
    tool_call,
    wait_for_cancel,
)

CONFIG = v1.SessionConfigSelect(
    id="model",
    name="Model",
    current_value="small",
    options=[v1.SessionConfigSelectOption(value=size, name=size) for size in ("small", "big")],
)


def prompts(agent: ScriptedAgent) -> list[Any]:
    return [params["prompt"] for method, params in agent.received if method == "session/prompt"]


# ── one part of a turn ────────────────────────────────────────────────────────────────────────


async def test_one_tool_call_and_one_terminal_are_stopped(tmp_path: Path) -> None:
    agents, policy = {"scripted": ScriptedAgent(stoppable)}, Policy(yolo=True)
    async with served(tmp_path, agents, policy=policy, protocol=2) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        found = await web.once(session_id, lambda found: found["terminals"])
        [call] = [entry for entry in found["entries"] if entry["type"] == "tool_call"]
        [terminal] = found["terminals"]
        assert (call["cancellable"], terminal["cancellable"]) == (True, True)
        path = f"/api/sessions/{session_id}/cancel"
        stops = [{"toolCallId": call["id"]}, {"terminalId": terminal["id"]}]
        for stop in stops:
            assert await web.call("POST", path, stop) == {"cancelled": True}
        ended = await web.until(session_id, "idle")
        assert ended["turn"] is None
        assert ended["entries"][-1]["pieces"] == ["SIGKILL"]
        for stop in stops:
            assert await web.call("POST", path, stop) == {"cancelled": False}


async def test_what_cannot_be_stopped_alone_is_told_from_what_is_not_there(tmp_path: Path) -> None:
    agent = ScriptedAgent([tool_call("c", title="Wait"), wait_for_cancel()])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        await web.once(session_id, lambda found: len(found["entries"]) == 2)
        path = f"/api/sessions/{session_id}/cancel"
        refusals = [
            ({"toolCallId": "c"}, (409, "unsupported")),
            ({"toolCallId": "d"}, (404, "unknown_tool_call")),
            ({"terminalId": "t"}, (404, "unknown_terminal")),
            ({"subagentId": "s"}, (404, "unknown_subagent")),
        ]
        for stop, refusal in refusals:
            assert await web.refused("POST", path, stop) == refusal
        nowhere = await web.refused("POST", "/api/sessions/none/cancel", {"toolCallId": "c"})
        assert nowhere == (404, "unknown_session")
        await web.call("POST", path)


@pytest.mark.parametrize(
    "body", [{"toolCallId": "c", "terminalId": "t"}, {"toolCall": "c"}, {"toolCallId": 1}, []]
)
async def test_what_is_not_understood_does_not_stop_the_turn(tmp_path: Path, body: Any) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([wait_for_cancel()])}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        path = f"/api/sessions/{session_id}/cancel"
        assert await web.refused("POST", path, body) == (400, "invalid")
        assert (await web.detail(session_id))["status"] == "running"
        assert await web.call("POST", path) == {"cancelled": True}


# ── prompts ───────────────────────────────────────────────────────────────────────────────────


async def test_blocks_are_written_as_acp_writes_them(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("ok")])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        content = [
            {"type": "text", "text": "look"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x:y", "text": "t", "mimeType": "text/plain"}},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
        ]
        path = f"/api/sessions/{session_id}/prompt"
        assert (await web.call("POST", path, {"content": content}))["queued"] is False
        await web.until(session_id, "idle")
        assert prompts(agent)[0] == content


@pytest.mark.parametrize("verb", ["cancel", "kill", "close"])
async def test_an_empty_object_is_no_body(tmp_path: Path, verb: str) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("ok")])}) as web:
        session_id = await web.new_session()
        await web.call("POST", f"/api/sessions/{session_id}/{verb}", {})


async def test_mentions_in_a_text_become_links(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("ok")])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        await web.done(session_id, "read @notes.txt")
        assert [block["type"] for block in prompts(agent)[0]] == ["text", "resource_link"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": "   "},
        {"content": [{"type": "nonsense"}]},
        {"content": [{"type": "unknown", "kind": "x", "raw": "{}"}]},
        {"content": [{"type": "image"}]},
        {"content": [{"type": "upload", "uri": "file:///etc/passwd"}]},
        {"content": ["text"]},
        {"text": 5},
    ],
)
async def test_what_is_no_prompt_is_refused(body: Any, tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        session_id = await web.new_session()
        status, _ = await web.refused("POST", f"/api/sessions/{session_id}/prompt", body)
        assert status == 400


async def test_files_that_are_too_much_together_are_refused_before_anything_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.client.sessions.prompts.MAX_JSON_BYTES", 10_000)
    async with served(tmp_path, {"scripted": ScriptedAgent([say("thanks")])}) as web:
        session_id = await web.new_session()
        kept = await web.http.post(
            "/api/uploads?name=a.txt",
            content=b"\x01" * 1_000,
            headers={"content-type": "text/plain"},
        )
        upload = {"type": "upload", "uri": kept.json()["uri"]}
        path = f"/api/sessions/{session_id}/prompt"
        before = (await web.detail(session_id))["lastSeq"]
        refused = await web.refused("POST", path, {"content": [upload, upload]})
        assert refused == (413, "too_large")
        assert (await web.detail(session_id))["lastSeq"] == before
        await web.call("POST", path, {"content": [upload]})


async def test_an_upload_travels_with_a_prompt(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("ok")])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        picture = {"content-type": "image/png"}
        response = await web.http.post(
            "/api/uploads?name=../../a%20b.png", content=b"png!", headers=picture
        )
        upload = response.json()
        assert response.status_code == 201
        assert (upload["name"], upload["mimeType"], upload["size"]) == ("a b.png", "image/png", 4)
        body = {"text": "look", "content": [{"type": "upload", "uri": upload["uri"]}]}
        await web.call("POST", f"/api/sessions/{session_id}/prompt", body)
        await web.until(session_id, "idle")
        image = prompts(agent)[0][1]
        assert (image["type"], image["mimeType"]) == ("image", "image/png")
        assert base64.b64decode(image["data"]) == b"png!"


async def test_prompts_wait_in_a_queue_that_can_be_changed(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        if turn.text == "first":
            await turn.cancelled.wait()

    agent = ScriptedAgent(script)
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}"
        await web.prompt(session_id, "first")
        second = await web.call("POST", f"{path}/prompt", {"text": "second"})
        assert second["queued"] is True
        queue = (await web.call("POST", f"{path}/queue", {"text": "third"}))["queue"]
        assert [each["content"][0]["text"] for each in queue] == ["second", "third"]
        edited = {"id": second["turn"], "text": "2nd"}
        queue = (await web.call("POST", f"{path}/queue", edited))["queue"]
        assert queue == (await web.call("GET", f"{path}/queue"))["queue"]
        assert (await web.detail(session_id))["queue"] == queue
        third = queue[1]["id"]
        queue = (await web.call("DELETE", f"{path}/queue?id={third}"))["queue"]
        assert [each["content"][0]["text"] for each in queue] == ["2nd"]
        gone = f"{path}/queue?id={third}"
        assert await web.refused("DELETE", gone) == (409, "settled")
        assert await web.call("POST", f"{path}/cancel") == {"cancelled": True}
        await until(lambda: len(prompts(agent)) == 2)
        assert prompts(agent)[1][0]["text"] == "2nd"


# ── answers ───────────────────────────────────────────────────────────────────────────────────


async def test_a_permission_is_answered_once(tmp_path: Path) -> None:
    agent = ScriptedAgent([ask("call", title="Delete it", kind="delete")])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        found = await web.until(session_id, "waiting")
        [pending] = found["pending"]
        assert (pending["kind"], pending["title"]) == ("permission", "Delete it")
        path = f"/api/sessions/{session_id}/permissions/{pending['id']}"
        assert await web.refused("POST", path, {"optionId": "nonsense"}) == (400, "invalid")
        assert await web.refused("POST", path, {"option": "x"}) == (400, "invalid")
        option = pending["options"][0]["id"]
        await web.call("POST", path, {"optionId": option})
        found = await web.until(session_id, "idle")
        assert option in found["entries"][-1]["pieces"][0]
        assert await web.refused("POST", path, {"optionId": option}) == (409, "settled")
        for kind, body in (
            ("permissions", {"optionId": option}),
            ("elicitations", {"action": "cancel"}),
        ):
            unknown = f"/api/sessions/{session_id}/{kind}/never-asked"
            assert await web.refused("POST", unknown, body) == (404, "unknown_request")


async def test_a_request_is_answered_as_what_it_is(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        form = turn.elicit("Your name?", {"type": "object", "properties": {}})
        await asyncio.gather(turn.request_permission("call", kind="delete"), form)

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        found = await web.once(session_id, lambda found: len(found["pending"]) == 2)
        ids = {pending["kind"]: pending["id"] for pending in found["pending"]}
        for path, body, sentence in (
            (
                f"elicitations/{ids['permission']}",
                {"action": "cancel"},
                f"there is no elicitation {ids['permission']}",
            ),
            (
                f"permissions/{ids['elicitation']}",
                {"optionId": "allow"},
                f"there is no permission {ids['elicitation']}",
            ),
        ):
            response = await web.http.post(f"/api/sessions/{session_id}/{path}", json=body)
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (404, "unknown_request")
            assert error["message"] == sentence
        assert len((await web.detail(session_id))["pending"]) == 2


async def test_an_elicitation_is_answered(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        turn.say(str(await turn.elicit("Your name?", schema)))

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        [pending] = (await web.until(session_id, "waiting"))["pending"]
        assert (pending["kind"], pending["message"]) == ("elicitation", "Your name?")
        path = f"/api/sessions/{session_id}/elicitations/{pending['id']}"
        assert await web.refused("POST", path, {"action": "x"}) == (400, "invalid")
        await web.call("POST", path, {"action": "accept", "content": {"name": "hidden-name"}})
        found = await web.until(session_id, "idle")
        assert "hidden-name" in found["entries"][-1]["pieces"][0]
        frames = (await web.call("GET", f"/api/sessions/{session_id}/frames"))["frames"]
        replies = [frame for frame in frames if frame["direction"] == "sent"]
        assert not [frame for frame in replies if "hidden-name" in frame["text"]]


ITEMS = {"type": "string", "enum": ["a", "b"]}


async def test_a_form_is_refused_with_what_is_wrong_in_each_field(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        fields = {
            "name": {"type": "string", "pattern": "^[a-z-]+$"},
            "parts": {"type": "array", "minItems": 1, "items": ITEMS},
        }
        schema = {"type": "object", "properties": fields, "required": ["name", "parts"]}
        turn.say((await turn.elicit("What?", schema))["content"]["name"])

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        [pending] = (await web.until(session_id, "waiting"))["pending"]
        path = f"/api/sessions/{session_id}/elicitations/{pending['id']}"
        parts: list[str] = []
        body = {"action": "accept", "content": {"name": "Bad Name!", "parts": parts}}
        response = await web.http.post(path, json=body)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, "invalid")
        assert error["detail"]["fields"] == {
            "name": "expected to match ^[a-z-]+$",
            "parts": "expected at least 1 item",
        }
        assert (await web.detail(session_id))["status"] == "waiting"
        await web.call(
            "POST", path, {"action": "accept", "content": {"name": "ok", "parts": ["a"]}}
        )
        assert (await web.until(session_id, "idle"))["entries"][-1]["pieces"] == ["ok"]


# ── settings, and the end ─────────────────────────────────────────────────────────────────────


async def test_modes_and_options_are_set(tmp_path: Path) -> None:
    modes = [v1.SessionMode(id="ask", name="Ask"), v1.SessionMode(id="code", name="Code")]
    agent = ScriptedAgent(modes=modes, config_options=[CONFIG])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}"
        await web.call("POST", f"{path}/mode", {"modeId": "code"})
        await web.call("POST", f"{path}/config", {"configId": "model", "value": "big"})
        found = await web.detail(session_id)
        assert found["modes"]["current"] == "code"
        assert found["configOptions"][0]["value"] == "big"
        assert await web.refused("POST", f"{path}/mode", {"modeId": "x"}) == (400, "invalid")
        bad = {"configId": "model", "value": "x"}
        assert await web.refused("POST", f"{path}/config", bad) == (400, "invalid")


async def test_an_agent_without_modes_says_so(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}/mode"
        assert await web.refused("POST", path, {"modeId": "x"}) == (409, "unsupported")


async def test_cancel_says_whether_there_was_a_turn(tmp_path: Path) -> None:
    agent = ScriptedAgent([wait_for_cancel()])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}/cancel"
        assert await web.call("POST", path) == {"cancelled": False}
        turn = await web.prompt(session_id)
        assert await web.call("POST", path) == {"cancelled": True}
        shown = await web.detail(session_id)
        assert (shown["status"], shown["stopped"]) == ("idle", {turn: "cancelled"})


async def test_an_agent_that_was_killed_is_started_again_for_the_next_prompt(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as web:
        session_id = await web.new_session(agent="demo", config={"model": "demo-swift"})
        await web.call("POST", f"/api/sessions/{session_id}/kill")
        await web.prompt(session_id, "/help")
        found = await web.until(session_id, "idle")
        assert found["entries"][-1]["type"] == "agent"


async def test_after_a_kill_modes_and_titles_can_be_set_too(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        session_id = await web.new_session(agent="demo")
        path = f"/api/sessions/{session_id}"
        await web.call("POST", f"{path}/kill")
        assert (await web.call("PATCH", path, {"title": "Mine"}))["title"] == "Mine"
        modes = (await web.detail(session_id))["modes"]["available"]
        await web.call("POST", f"{path}/mode", {"modeId": modes[-1]["id"]})
        assert (await web.detail(session_id))["modes"]["current"] == modes[-1]["id"]


# ── a limit that the agent reports ────────────────────────────────────────────────────────────


class Limited:
    """Reports a limit for its first prompt."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def __call__(self, turn: AgentTurn) -> None:
        self.prompts.append(turn.text)
        if len(self.prompts) == 1:
            raise RemoteError("You've hit your usage limit, try again in 5 hours")
        turn.say("done")


@pytest.mark.parametrize("action", ["continue", "drop", "hand_over"])
async def test_a_parked_prompt_is_settled(tmp_path: Path, action: str) -> None:
    limited = Limited()
    agents = {"scripted": ScriptedAgent(limited), "other": ScriptedAgent(limited)}
    async with served(tmp_path, agents, on_limit="park") as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        found = await web.until(session_id, "parked")
        assert found["parked"]["kind"] == "plan"
        assert found["parked"]["resumesAt"] > found["parked"].get("endsAt", 0) - 1
        path = f"/api/sessions/{session_id}/parked"
        assert await web.refused("POST", path, {"action": "hand_over"}) == (400, "invalid")
        body = {"action": action} | ({"agent": "other"} if action == "hand_over" else {})
        reply = await web.call("POST", path, body)
        after = await web.until(reply.get("session", session_id), "idle")
        assert ("session" in reply, "turn" in reply) == (
            action == "hand_over",
            action == "continue",
        )
        assert limited.prompts == (["go"] if action == "drop" else ["go", "go"])
        assert after["parked"] is None
        assert (await web.detail(session_id))["parked"] is None
        assert (await web.refused("POST", path, {"action": "drop"}))[0] == 409


async def test_another_agent_continues_a_session(tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(turn: AgentTurn) -> None:
        heard.append(turn.text)
        turn.say("done")

    agents = {"scripted": ScriptedAgent(hear), "other": ScriptedAgent(hear)}
    async with served(tmp_path, agents) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}/handoff"
        assert await web.refused("POST", path, {"agent": "other"}) == (409, "nothing")
        await web.prompt(session_id)
        await web.until(session_id, "idle")
        reply = await web.call("POST", path, {"agent": "other", "text": "finish it"})
        after = await web.until(reply["session"], "idle")
        assert after["agent"] == "other"
        assert "> go" in heard[1]
        assert heard[1].endswith("finish it")
        assert await web.refused("POST", path, {"agent": "nobody"}) == (404, "unknown_agent")
        assert (await web.refused("POST", path, {"agent": 5}))[0] == 400
        missing = "/api/sessions/s-none/handoff"
        assert (await web.refused("POST", missing, {"agent": "other"}))[0] == 404
