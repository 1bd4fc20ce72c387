"""Subagents over HTTP: shown with what they told, asked about by name, answered and stopped."""

from __future__ import annotations

from pathlib import Path

from support.programs.tree_agent import NAMES, agent, sentence
from support.serving import served

from dragoman.testing import AgentTurn, ScriptedAgent


async def test_every_question_of_a_tree_is_listed_with_who_asks_and_answered(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, {"scripted": agent()}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        found = await web.once(session_id, lambda each: len(each["pending"]) == len(NAMES))
        asked = {each["subagent"]: each["askedBy"] for each in found["pending"]}
        assert asked == NAMES
        while (found := await web.detail(session_id))["turn"] is not None:
            for pending in found["pending"]:
                kind = pending["kind"]
                answer = {"optionId": "allow"} if kind == "permission" else {"action": "decline"}
                if kind == "permission":
                    answer = {"optionId": pending["options"][0]["id"]}
                path = "permissions" if kind == "permission" else "elicitations"
                await web.call("POST", f"/api/sessions/{session_id}/{path}/{pending['id']}", answer)
        subagents = {each["sessionId"]: each for each in found["subagents"]}
        assert subagents.keys() == NAMES.keys()
        for key, child in subagents.items():
            said = [each for each in child["thread"]["entries"] if each["type"] == "agent"]
            assert [each["pieces"] for each in said] == [[sentence(key)]]
            assert child["state"]["state"] == "idle"


async def test_one_subagent_is_stopped_over_http(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": agent()}) as web:
        session_id = await web.new_session()
        await web.prompt(session_id)
        await web.once(session_id, lambda each: len(each["pending"]) == len(NAMES))
        path = f"/api/sessions/{session_id}/cancel"
        assert (await web.call("POST", path, {"subagentId": "reader"}))["cancelled"]
        found = await web.detail(session_id)
        assert {each["subagent"] for each in found["pending"]} == NAMES.keys() - {
            "reader",
            "reader-1",
        }
        await web.call("POST", path)


async def test_the_entries_of_a_subagent_are_told_page_by_page(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        child = turn.subagent("child", title="Child")
        for number in range(300):
            child.tool_call(f"call-{number}", f"step {number}", status="completed")
        child.done()

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id = await web.new_session()
        found = await web.done(session_id)
        [child] = found["subagents"]
        assert child["thread"]["entriesBefore"] == 100
        path = f"/api/sessions/{session_id}/subagents/child/entries"
        page = await web.call("GET", f"{path}?before=100&entries=40")
        assert (page["firstEntry"], page["entryCount"]) == (60, 300)
        assert [each["title"] for each in page["entries"]] == [f"step {n}" for n in range(60, 100)]
        last = await web.call("GET", f"{path}?entries=1")
        assert [each["title"] for each in last["entries"]] == ["step 299"]
        unknown = path.replace("child", "nobody")
        assert await web.refused("GET", unknown) == (404, "unknown_subagent")
