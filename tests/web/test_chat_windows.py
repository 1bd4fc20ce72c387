"""Two windows of one chat: who answers, who follows, who resumes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.chat_bodies import chat_body, message
from support.serving import Served, served

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import ask, wait_for_cancel


def answer_body(chat_id: str, request_id: str, approved: bool) -> dict[str, Any]:
    """What a window sends that still shows the question, and answers it."""
    approval = {"id": request_id, "approved": approved}
    part = {"type": "dynamic-tool", "state": "approval-responded", "approval": approval}
    answered = {"id": "m2", "role": "assistant", "parts": [part]}
    return {"id": chat_id, "messages": [message("go"), answered], "trigger": "submit-message"}


async def answered_elsewhere(web: Served, option: str) -> str:
    """The id of a request that already answered in another window to answer; its turn goes on."""
    await web.http.post("/api/chat", json=chat_body("chat-1"))
    [pending] = (await web.detail("chat-1"))["pending"]
    path = f"/api/sessions/chat-1/permissions/{pending['id']}"
    await web.call("POST", path, {"optionId": option})
    return pending["id"]


@pytest.mark.parametrize(("option", "approved"), [("allow", False), ("reject", True)])
async def test_a_late_answer_that_is_not_what_happened_is_refused(
    option: str, approved: bool, tmp_path: Path
) -> None:
    agent = ScriptedAgent([ask("call", kind="delete"), wait_for_cancel()])
    async with served(tmp_path, {"scripted": agent}) as web:
        body = answer_body("chat-1", await answered_elsewhere(web, option), approved)
        assert await web.refused("POST", "/api/chat", body) == (409, "settled")
        async with web.http.stream("POST", "/api/chat?sdk=7", json=body) as corrected:
            assert corrected.status_code == 200  # release 7 can be told how it was settled
            told = await first_line(corrected, "tool-approval-response")
            assert f'"approved":{str(not approved).lower()}' in told


@pytest.mark.parametrize(("option", "approved"), [("allow", True), ("reject", False)])
async def test_a_late_answer_that_says_the_same_goes_on(
    option: str, approved: bool, tmp_path: Path
) -> None:
    agent = ScriptedAgent([ask("call", kind="delete"), wait_for_cancel()])
    async with served(tmp_path, {"scripted": agent}) as web:
        body = answer_body("chat-1", await answered_elsewhere(web, option), approved)
        async with web.http.stream("POST", "/api/chat", json=body) as late:
            assert late.status_code == 200
            await web.call("POST", "/api/chat/chat-1/stop")
            assert await first_line(late, "[DONE]")


async def test_of_two_answers_at_once_the_one_that_did_not_count_is_refused(
    tmp_path: Path,
) -> None:
    agent = ScriptedAgent([ask("call", kind="delete"), wait_for_cancel()])
    async with served(tmp_path, {"scripted": agent}) as web:
        await web.http.post("/api/chat", json=chat_body("chat-1"))
        [pending] = (await web.detail("chat-1"))["pending"]
        live = web.server.hub.live["chat-1"]
        sending = live.session.answer

        async def beaten(request_id: str, option_id: str | None, confirmed: bool = False) -> None:
            await sending(request_id, "allow")
            await sending(request_id, option_id)

        live.session.answer = beaten
        body = answer_body("chat-1", pending["id"], False)
        assert await web.refused("POST", "/api/chat", body) == (409, "settled")


async def test_with_one_answer_too_late_the_others_do_not_count(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        asking = [turn.request_permission(name, kind="delete") for name in ("one", "two")]
        await asyncio.gather(*asking)

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        found = await web.once(session_id, lambda found: len(found["pending"]) == 2)
        first, second = (pending["id"] for pending in found["pending"])
        path = f"/api/sessions/{session_id}/permissions/{first}"
        await web.call("POST", path, {"optionId": "allow"})
        body = answer_body(session_id, first, False)
        body["messages"] += answer_body(session_id, second, True)["messages"][1:]
        assert await web.refused("POST", "/api/chat", body) == (409, "settled")
        assert [each["id"] for each in (await web.detail(session_id))["pending"]] == [second]


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [("accept", "accept", 409), ("accept", "decline", 409), ("decline", "decline", 200)],
)
async def test_a_form_that_was_filled_in_elsewhere_is_not_filled_in_again(
    first: str, second: str, status: int, tmp_path: Path
) -> None:
    async def script(turn: AgentTurn) -> None:
        await turn.elicit("Your name?", {"type": "object", "properties": {}})
        turn.say("thanks")
        await turn.cancelled.wait()

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        await web.http.post("/api/chat", json=chat_body("chat-1"))
        [pending] = (await web.detail("chat-1"))["pending"]
        path = f"/api/sessions/chat-1/elicitations/{pending['id']}"
        await web.call("POST", path, {"action": first, "content": {}})
        reply = {"requestId": pending["id"], "action": second}
        body = chat_body("chat-1", acp={"elicitation": reply})
        async with web.http.stream("POST", "/api/chat", json=body) as response:
            assert response.status_code == status


async def test_with_a_form_too_late_the_other_answers_do_not_count(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        form = turn.elicit("Your name?", {"type": "object", "properties": {}})
        await asyncio.gather(form, turn.request_permission("c", kind="delete"))

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        found = await web.once(session_id, lambda found: len(found["pending"]) == 2)
        by_kind = {pending["kind"]: pending["id"] for pending in found["pending"]}
        form, asked = by_kind["elicitation"], by_kind["permission"]
        path = f"/api/sessions/{session_id}/elicitations/{form}"
        await web.call("POST", path, {"action": "accept", "content": {}})
        body = answer_body(session_id, asked, True)
        body["acp"] = {"elicitation": {"requestId": form, "action": "decline"}}
        assert await web.refused("POST", "/api/chat", body) == (409, "settled")
        assert [each["id"] for each in (await web.detail(session_id))["pending"]] == [asked]


async def first_line(response: httpx.Response, wanted: str) -> str:
    async for line in response.aiter_lines():
        if wanted in line:
            return line
    raise AssertionError(f"the stream has no {wanted}")
