"""Chats of the AI SDK against a running server, with its own engine in Node."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from support.ai_sdk_judge import FOLDER, node
from support.chat_bodies import chat_body, message
from support.clients import until
from support.serving import TOKEN, Served, served

from dragoman import Policy
from dragoman.agents.settings.settings_file import AgentSettings, Settings
from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import ask, say, wait_for_cancel

PROGRAM = Path(__file__).parent / "programs" / "chat.mjs"
YES, NO = {"approved": True}, {"approved": False}


async def engine(web: Served, release: int, **scenario: Any) -> dict[str, Any]:
    """What the SDK's chat engine comes to."""
    query = f"?sdk={release}" if scenario.pop("told", False) else ""
    body = {
        "sdk": str(FOLDER / "node_modules"),
        "ai": release,
        "api": f"{web.origin}/api/chat{query}",
        "token": TOKEN,
        **scenario,
    }
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(node(), PROGRAM, stdin=pipe, stdout=pipe)
    out, _ = await process.communicate(json.dumps(body).encode())
    return json.loads(out)


def states(ended: dict[str, Any]) -> list[str]:
    """Of the tools that were asked about."""
    parts = ended["messages"][-1]["parts"]
    return [part["state"] for part in parts if "approval" in part]


# ── with the SDK's own engine ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("release", [6, 7])
async def test_an_approval_goes_round_with_an_unmodified_client(
    release: int, told: bool, tmp_path: Path
) -> None:
    async with served(tmp_path) as web:
        prompt = "Add a line to the notes"
        ended = await engine(
            web, release, told=told, chatId="chat-1", prompt=prompt, answers=[YES, YES]
        )
        assert (ended["status"], ended["error"], ended["requests"]) == ("ready", None, 3)
        assert states(ended) == ["output-available", "output-available"]
        user, assistant = ended["messages"]
        assert user["role"] == "user"
        assert assistant["metadata"]["acp"]["stopReason"] == "end_turn"
        assert assistant["metadata"]["acp"]["sessionId"] == "chat-1"
        assert (tmp_path / "dragoman-demo.txt").read_text() == f"You asked: {prompt}\n"
        stored = (await web.call("GET", "/api/chat/chat-1/messages"))["messages"]
        assert [message["role"] for message in stored] == ["user", "assistant"]
        assert stored[1]["id"] == assistant["id"]


@pytest.mark.parametrize("release", [6, 7])
async def test_a_refusal_goes_round_too(release: int, tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        ended = await engine(web, release, chatId="chat-1", prompt="Notes", answers=[NO, NO])
        assert (ended["status"], ended["error"]) == ("ready", None)
        assert states(ended) == ["output-denied", "output-denied"]
        assert not (tmp_path / "dragoman-demo.txt").exists()


@pytest.mark.parametrize("release", [6, 7])
async def test_another_page_resumes_and_answers(release: int, tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        session_id = await web.new_session()
        await web.prompt(session_id, "Notes")
        await web.until(session_id, "waiting")
        ended = await engine(web, release, chatId=session_id, resume=True, answers=[YES, YES])
        assert (ended["status"], ended["error"]) == ("ready", None)
        assert states(ended) == ["output-available", "output-available"]
        assert (tmp_path / "dragoman-demo.txt").exists()


@pytest.mark.parametrize("release", [6, 7])
async def test_a_tool_that_outlasts_two_questions_is_there_once(
    release: int, tmp_path: Path
) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.tool_call("long", "Long", status="in_progress")
        for name in ("first", "second"):
            await turn.request_permission(name, title=name, kind="delete")
            turn.tool_call_update(name, status="completed")
        turn.tool_call_update("long", title="Renamed", raw_input={"x": 1})
        turn.tool_call_update("long", status="completed", raw_output="done")

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        ended = await engine(web, release, chatId="chat-1", prompt="go", answers=[YES, YES])
        assert (ended["status"], ended["error"], ended["requests"]) == ("ready", None, 3)
        parts = ended["messages"][-1]["parts"]
        tools = [part["toolCallId"] for part in parts if "toolCallId" in part]
        assert sorted(tools) == ["first", "long", "second"]


async def test_a_chat_is_the_same_in_both_versions_of_the_protocol(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.think("Hm.")
        turn.say("I will look.")
        turn.tool_call("read", "Read a", kind="read", status="in_progress")
        turn.tool_call_update("read", status="completed", raw_output="contents")
        chosen = await turn.request_permission("edit", title="Edit a", kind="edit")
        turn.tool_call_update("edit", status="completed", raw_output=chosen)
        turn.plan(("Read", "completed"), ("Write", "in_progress"))
        turn.say("Done.")

    parts: list[Any] = []
    versions: tuple[Literal[1, 2], ...] = (1, 2)
    for version in versions:
        agents = {"scripted": ScriptedAgent(script)}
        async with served(tmp_path, agents, protocol=version) as web:
            ended = await engine(web, 7, chatId="chat-1", prompt="go", answers=[YES])
            running = (await web.detail("chat-1"))["runningAgent"]
            assert running["protocolVersion"] == version
            assert (ended["status"], ended["error"]) == ("ready", None)
            parts.append(_without_ids(ended["messages"][-1]["parts"]))
            stored = (await web.call("GET", "/api/chat/chat-1/messages"))["messages"]
            assert stored[-1]["id"] == ended["messages"][-1]["id"]
    assert parts[0] == parts[1]
    assert {part["type"] for part in parts[0]} >= {"text", "reasoning", "dynamic-tool"}


def _without_ids(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of version 2 are the agent's, those of version 1 ours; a request has a new one."""
    left_out = ("id", "providerMetadata", "approval", "callProviderMetadata")
    kept = [{key: value for key, value in part.items() if key not in left_out} for part in parts]
    for part in kept:
        for name in ("requestId", "planId"):
            part.get("data", {}).pop(name, None)
    return kept


async def test_with_everything_allowed_there_is_one_request(tmp_path: Path) -> None:
    async with served(tmp_path, policy=Policy(yolo=True)) as web:
        ended = await engine(web, 7, chatId="chat-1", prompt="Notes")
        assert (ended["status"], ended["error"], ended["requests"]) == ("ready", None, 1)
        kinds = {part["type"] for part in ended["messages"][-1]["parts"]}
        assert kinds >= {"text", "reasoning", "dynamic-tool", "data-acp-plan"}


# ── the requests themselves ───────────────────────────────────────────────────────────────────


async def test_the_stream_is_what_the_sdk_expects(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        response = await web.http.post("/api/chat", json=chat_body("chat-1"))
        assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert response.headers["content-type"].startswith("text/event-stream")
        assert '"type":"start"' in response.text.split("\n")[0]
        assert response.text.endswith("data: [DONE]\n\n")


async def test_the_agent_and_the_folder_can_be_chosen(tmp_path: Path) -> None:
    agents = {"one": ScriptedAgent([say("1")]), "two": ScriptedAgent([say("2")])}
    (tmp_path / "sub").mkdir()
    async with served(tmp_path, agents) as web:
        acp = {"agent": "two", "cwd": str(tmp_path / "sub")}
        await web.http.post("/api/chat", json=chat_body("chat-1", acp=acp))
        found = await web.detail("chat-1")
        assert (found["agent"], found["cwd"]) == ("two", str(tmp_path / "sub"))


async def test_nothing_runs_so_there_is_nothing_to_resume(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        assert (await web.http.get("/api/chat/nothing/stream")).status_code == 204
        await web.http.post("/api/chat", json=chat_body("chat-1"))
        assert (await web.http.get("/api/chat/chat-1/stream")).status_code == 204


async def test_stop_cancels_and_the_stream_says_so(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello"), wait_for_cancel()])
    async with served(tmp_path, {"scripted": agent}) as web:
        chatting = asyncio.create_task(web.http.post("/api/chat", json=chat_body("chat-1")))
        await until(lambda: "session/prompt" in [method for method, _ in agent.received])
        assert await web.call("POST", "/api/chat/chat-1/stop") == {"cancelled": True}
        assert '"type":"abort"' in (await chatting).text


async def test_the_stream_of_a_chat_that_is_deleted_is_closed(tmp_path: Path) -> None:
    agent = ScriptedAgent([ask("call"), say("world")])
    async with served(tmp_path, {"scripted": agent}) as web:
        await web.http.post("/api/chat", json=chat_body("chat-1"))
        waits = asyncio.create_task(web.http.post("/api/chat", json=chat_body("chat-1", "next")))
        await until(lambda: web.server.hub.live["chat-1"].session.queued)
        await web.call("DELETE", "/api/sessions/chat-1")
        assert (await waits).text.endswith("data: [DONE]\n\n")


async def queued_behind_a_turn(web: Served) -> tuple[str, asyncio.Task[httpx.Response]]:
    """A session, and the stream of a prompt that waits there for a turn that does not end."""
    session_id = await web.new_session()
    await web.prompt(session_id, "first")
    second = asyncio.create_task(web.http.post("/api/chat", json=chat_body(session_id, "second")))
    await until(lambda: web.server.hub.live[session_id].session.queued)
    return session_id, second


def chunks(response: httpx.Response) -> list[dict[str, Any]]:
    """What the stream tells; it must have told its end."""
    *told, done = (line[6:] for line in response.text.splitlines() if line.startswith("data: "))
    assert done == "[DONE]"
    return [json.loads(each) for each in told]


async def test_a_prompt_that_waits_when_the_agent_dies_is_on_record_as_a_turn_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "dragoman.web.streams.chat_stream.BEAT_SECONDS", 1_000.0
    )  # it must not wait for one
    agent = ScriptedAgent([say("hello"), wait_for_cancel()])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id, waits = await queued_behind_a_turn(web)
        await web.call("POST", f"/api/sessions/{session_id}/kill")
        told = chunks(await waits)
        assert [chunk["type"] for chunk in told] == ["start", "message-metadata", "error"]
        assert told[-1]["errorText"].startswith("the prompt was not sent: ")
        found = await web.detail(session_id)
        assert found["queue"] == []
        assert found["lastTurn"]["error"] == told[-1]["errorText"]
        stored = (await web.call("GET", f"/api/chat/{session_id}/messages"))["messages"]
        said = [each["parts"][0]["text"] for each in stored if each["role"] == "user"]
        assert said == ["first", "second"]


async def test_the_stream_of_a_prompt_that_is_dropped_is_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.web.streams.chat_stream.BEAT_SECONDS", 1_000.0)
    agent = ScriptedAgent([say("hello"), wait_for_cancel()])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id, waits = await queued_behind_a_turn(web)
        [queued] = (await web.detail(session_id))["queue"]
        await web.call("DELETE", f"/api/sessions/{session_id}/queue?id={queued['id']}")
        assert [chunk["type"] for chunk in chunks(await waits)] == ["start", "abort"]


async def test_a_server_that_stops_says_so_in_its_streams(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.tool_call("long", "Long", status="in_progress")
        turn.say("half an ans")
        await turn.cancelled.wait()

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id, waits = await queued_behind_a_turn(web)
        async with web.http.stream("GET", f"/api/chat/{session_id}/stream") as response:
            lines = response.aiter_lines()
            while "half an ans" not in await anext(lines):
                pass
            web.running.end()
            rest = [line.removeprefix("data: ") async for line in lines if line]
        assert rest.pop() == "[DONE]"
        kinds = [json.loads(line)["type"] for line in rest]
        assert kinds == ["text-end", "tool-output-error", "finish-step", "error"]
        assert json.loads(rest[-1])["errorText"] == "the server was stopped"
        assert [chunk["type"] for chunk in chunks(await waits)] == ["start", "error"]


async def test_a_page_that_leaves_and_comes_back_is_told_all_of_it(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello "), wait_for_cancel(), say("world")])
    async with served(tmp_path, {"scripted": agent}) as web:
        body = chat_body("chat-1")
        async with web.http.stream("POST", "/api/chat", json=body) as response:
            async for line in response.aiter_lines():
                if "hello" in line:
                    break
        path = "/api/chat/chat-1/messages"
        before = (await web.call("GET", path))["messages"]
        assert [each["role"] for each in before] == ["user"]
        whole = (await web.call("GET", f"{path}?active=true"))["messages"]
        assert [each["role"] for each in whole] == ["user", "assistant"]
        async with web.http.stream("GET", "/api/chat/chat-1/stream") as response:
            lines = response.aiter_lines()
            assert '"type":"start"' in await anext(lines)
            await web.call("POST", "/api/chat/chat-1/stop")
            text = "\n".join([line async for line in lines])
        assert "hello" in text
        assert text.endswith("data: [DONE]\n")


async def test_a_second_prompt_waits_for_its_turn(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        turn.say(f"answer to {turn.text}")
        if turn.text == "first":
            await asyncio.sleep(0.2)

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        await web.new_session()
        session_id = await web.new_session()
        both = await asyncio.gather(
            web.http.post("/api/chat", json=chat_body(session_id, "first")),
            web.http.post("/api/chat", json=chat_body(session_id, "second")),
        )
        assert "answer to first" in both[0].text
        assert "answer to second" in both[1].text
        assert "answer to first" not in both[1].text


async def test_a_file_that_the_agent_does_not_take_is_kept_and_linked(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("thanks")], capabilities=v1.AgentCapabilities())
    file = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain,hello"}
    body = chat_body("chat-1")
    body["messages"][0]["parts"].append({**file, "filename": "note.txt"})
    async with served(tmp_path, {"scripted": agent}) as web:
        assert (await web.http.post("/api/chat", json=body)).status_code == 200
        prompt = next(params for method, params in agent.received if method == "session/prompt")
        uri: str = prompt["prompt"][1]["uri"]
    path = uri.removeprefix("file://")
    assert path.startswith(str(tmp_path / "uploads"))
    assert _content_and_mode(path) == ("hello", 0o600)


async def test_files_of_a_chat_are_deleted_with_it(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("thanks")], capabilities=v1.AgentCapabilities())
    file = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain,hello"}
    body = chat_body("chat-1")
    body["messages"][0]["parts"] += [{**file, "filename": f"{name}.txt"} for name in "ab"]
    async with served(tmp_path, {"scripted": agent}) as web:
        assert (await web.http.post("/api/chat", json=body)).status_code == 200
        [folder] = (tmp_path / "uploads").iterdir()
        assert len(list(folder.glob("*.txt"))) == 2
        assert len((folder / ".sessions").read_text().splitlines()) == 1
        await web.call("DELETE", "/api/sessions/chat-1")
        assert not folder.exists()


def _content_and_mode(path: str) -> tuple[str, int]:
    return Path(path).read_text(), os.stat(path).st_mode & 0o777


# ── what is refused ───────────────────────────────────────────────────────────────────────────

ANSWER: dict[str, Any] = {"id": "1", "role": "assistant", "parts": []}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid"),
        ({"id": "../etc/passwd", "messages": [message("x")]}, "invalid"),
        ({"id": "chat-1", "messages": []}, "invalid"),
        ({"id": "chat-1", "messages": [ANSWER]}, "unknown_session"),
        ({"id": "chat-1", "messages": [message(" ")]}, "invalid"),
        ({"id": "chat-1", "messages": [ANSWER | {"role": "user"}]}, "invalid"),
        ({"id": "chat-1", "messages": [message("x") | {"role": "system"}]}, "invalid"),
        ({"id": "chat-1", "messages": [message("x") | {"parts": [{"type": "zzz"}]}]}, "invalid"),
        (chat_body("chat-1", acp={"cwd": "not/absolute"}), "invalid"),
        (chat_body("chat-1", acp={"agent": "nobody"}), "unknown_agent"),
    ],
)
async def test_what_is_no_chat_is_refused(body: Any, code: str, tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        status, found = await web.refused("POST", "/api/chat", body)
        assert 400 <= status < 500
        assert found == code
        assert (await web.call("GET", "/api/sessions"))["sessions"] == []


# ── release 5 ─────────────────────────────────────────────────────────────────────────────────

KNOWN_TO_5 = {
    "start": {"messageId", "messageMetadata"},
    "finish": {"messageMetadata"},
    "message-metadata": {"messageMetadata"},
    "start-step": set[str](),
    "finish-step": set[str](),
    "text-start": {"id"},
    "text-delta": {"id", "delta"},
    "text-end": {"id"},
    "tool-input-start": {"toolCallId", "toolName", "providerExecuted", "dynamic"},
    "tool-input-available": {"toolCallId", "toolName", "input", "providerExecuted", "dynamic"},
    "tool-output-available": {"toolCallId", "output", "providerExecuted", "dynamic", "preliminary"},
    "tool-output-error": {"toolCallId", "errorText", "providerExecuted", "dynamic"},
}
"""What its client takes of what is sent here: it throws at anything else, fields included."""


def chunks_of(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    return [json.loads(line) for line in lines if line.startswith("{")]


def check_for_5(chunks: list[dict[str, Any]]) -> None:
    for chunk in chunks:
        if not chunk["type"].startswith("data-"):
            assert chunk.keys() - {"type"} <= KNOWN_TO_5[chunk["type"]], chunk


@pytest.mark.parametrize("option", ["allow", "reject"])
async def test_the_engine_of_release_5_asks_and_answers_by_data_parts(
    option: str, tmp_path: Path
) -> None:
    steps = [say("first"), ask("call", kind="delete", title="Delete it"), say("done")]
    async with served(tmp_path, {"scripted": ScriptedAgent(steps)}) as web:
        ended = await engine(web, 5, told=True, chatId="chat-1", prompt="go", choices=[option])
        assert (ended["status"], ended["error"], ended["requests"]) == ("ready", None, 2)
        _, assistant = ended["messages"]
        said = [part["text"] for part in assistant["parts"] if part["type"] == "text"]
        assert "".join(said) == f"first{option}done"
        [tool] = [part for part in assistant["parts"] if part["type"] == "dynamic-tool"]
        assert tool["toolCallId"] == "call"


async def test_the_engine_of_release_5_takes_a_whole_turn_of_the_demo_agent(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        prompt = "Add a line to the notes"
        ended = await engine(
            web, 5, told=True, chatId="chat-1", prompt=prompt, choices=["allow"] * 2
        )
        assert (ended["status"], ended["error"], ended["requests"]) == ("ready", None, 3)
        assert (tmp_path / "dragoman-demo.txt").read_text() == f"You asked: {prompt}\n"
        assert ended["messages"][-1]["metadata"]["acp"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(("option", "status"), [("allow", "allow"), ("reject", "reject")])
async def test_a_page_of_release_5_is_asked_by_a_data_part(
    option: str, status: str, tmp_path: Path
) -> None:
    agent = ScriptedAgent([ask("call", kind="delete", title="Delete it"), say("done")])
    async with served(tmp_path, {"scripted": agent}) as web:
        asked = chunks_of(await web.http.post("/api/chat?sdk=5", json=chat_body("chat-1")))
        check_for_5(asked)
        [part] = [chunk["data"] for chunk in asked if chunk["type"] == "data-acp-permission"]
        reply = {"requestId": part["requestId"], "optionId": option}
        body = chat_body("chat-1") | {"acp": {"permission": reply}}
        response = await web.http.post("/api/chat?sdk=5", json=body)
        assert response.status_code == 200
        check_for_5(chunks_of(response))
        said = "".join(chunk.get("delta", "") for chunk in chunks_of(response))
        assert said == f"{status}done"
        late = await web.refused("POST", "/api/chat?sdk=5", body)
        assert late == (409, "settled")


async def test_a_chat_that_the_agent_forgot_starts_again_if_the_page_says_so(
    tmp_path: Path,
) -> None:
    forgetful = v1.AgentCapabilities()
    before = ScriptedAgent([say("hello")], capabilities=forgetful)
    async with served(tmp_path, {"scripted": before}, on_disk=True) as web:
        await web.http.post("/api/chat", json=chat_body("chat-1"))
    again = ScriptedAgent([say("hello again")], capabilities=forgetful)
    async with served(tmp_path, {"scripted": again}, on_disk=True) as web:
        body = chat_body("chat-1")
        assert await web.refused("POST", "/api/chat", body) == (409, "not_continued")
        told = await web.http.post("/api/chat", json=body | {"acp": {"onReset": "new"}})
        assert "hello again" in told.text
        kinds = [entry["type"] for entry in (await web.detail("chat-1"))["entries"]]
        assert kinds == ["user", "agent", "reset", "user", "agent"]


FRAGILE = """
from dragoman.schema import v1
from dragoman.testing import ScriptedAgent
from dragoman.testing.faults import crash
from dragoman.testing.scripted_turn import AgentTurn


async def play(turn: AgentTurn) -> None:
    if turn.text == "crash":
        await crash()(turn)
    turn.say("still here")


agent = ScriptedAgent(play, capabilities=v1.AgentCapabilities())
"""


async def test_a_chat_whose_agent_crashed_starts_again_if_the_page_says_so(tmp_path: Path) -> None:
    program = tmp_path / "fragile.py"
    program.write_text(FRAGILE)
    fragile = AgentSettings(name="fragile", command=ScriptedAgent.command(f"{program}:agent"))
    async with served(tmp_path) as web:
        web.server.launcher.settings = lambda: Settings(agents={"fragile": fragile})
        first = chat_body("chat-1", "crash") | {"acp": {"agent": "fragile"}}
        assert '"error"' in (await web.http.post("/api/chat", json=first)).text
        body = chat_body("chat-1", "go on")
        assert await web.refused("POST", "/api/chat", body) == (409, "not_continued")
        told = await web.http.post("/api/chat", json=body | {"acp": {"onReset": "new"}})
        assert "still here" in told.text
