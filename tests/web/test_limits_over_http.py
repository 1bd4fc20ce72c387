"""Limits of one session, given when it begins over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.serving import served

from dragoman.agents.settings.project_settings import read_project_settings
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import ask, tool_call, usage, wait_for_cancel

AGENTS = {"it": ScriptedAgent([tool_call("a", "A"), usage(1, 10, 0.4)])}


def new(cwd: Path, *limits: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"agent": "it", "cwd": str(cwd), "limits": limits, **more}


async def test_a_session_has_the_limits_that_it_was_given(tmp_path: Path) -> None:
    async with served(tmp_path, AGENTS) as server:
        body = new(tmp_path, {"turns": 1}, {"toolCalls": 9, "per": "day", "then": "ask"})
        session_id = (await server.call("POST", "/api/sessions", body))["id"]
        await server.prompt(session_id)
        await server.until(session_id, "idle")
        found = await server.call("GET", f"/api/sessions/{session_id}/limits")
        shown = [(each["limit"]["measure"], each["used"]) for each in found["limits"]]
        assert shown == [("turns", 1), ("tool_calls", 1)]
        await server.prompt(session_id)
        await server.until(session_id, "idle")
        entries = (await server.detail(session_id))["entries"]
        assert any("the session's limit allows 1 turn" in str(each) for each in entries)


async def test_what_a_trusted_project_says_applies_to_a_servers_sessions_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "state"))
    (settings := tmp_path / "project" / ".dragoman" / "settings.json").parent.mkdir(parents=True)
    terms = {"limits": [{"turns": 1}], "on_limit": "park", "question_timeout": "0.1s"}
    settings.write_text(json.dumps({"agent": "demo", "system_prompt": "Be brief."} | terms))
    project = tmp_path / "project"
    async with served(
        tmp_path, {**AGENTS, "demo": ScriptedAgent([ask("a", kind="execute")])}
    ) as server:
        created = await server.call("POST", "/api/sessions", {"cwd": str(project)})
        assert created["agent"] == "it"
        assert caplog.text.count(f"{settings} is not trusted") >= 1
        found = read_project_settings(str(project))
        assert found is not None
        found.trust()

        created = await server.call("POST", "/api/sessions", {"cwd": str(project)})
        assert created["agent"] == "demo"
        (bound,) = (await server.call("GET", f"/api/sessions/{created['id']}/limits"))["limits"]
        assert bound["limit"]["source"] == "limits[0].turns of this project's settings"
        assert server.server.hub.live[created["id"]].session.parking.on_limit == "park"
        await server.prompt(created["id"])
        await server.until(created["id"], "idle")
        entries = str((await server.detail(created["id"]))["entries"])
        assert "the system prompt was not sent" in entries
        assert "'reject'" in entries, "nobody answered, and it does not wait for ever"

        elsewhere = await server.call("POST", "/api/sessions", {"cwd": str(tmp_path)})
        assert elsewhere["agent"] == "it"
        found = await server.call("GET", f"/api/sessions/{elsewhere['id']}/limits")
        assert found["limits"] == []


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ({"cost": -1}, "limits[0].cost: expected a number above 0, not -1"),
        ({"toolCalls": 0}, "limits[0].toolCalls: expected a number above 0, not 0"),
        ({"time": "5x"}, "limits[0].time: expected a time such as"),
        (
            {"cost": 1, "currency": "eur"},
            "currency: expected a currency such as \"EUR\", not 'eur'",
        ),
        ({}, "limits[0]: expected one of cost, tokens, time, toolCalls, turns"),
        ({"turns": 1, "per": "turn"}, "limits[0].turns: expected a limit of more than a turn"),
        ({"turns": 1, "per": "week"}, "$.limits[0].per"),
        ({"turns": 1, "then": "park"}, "$.limits[0].then"),
        ({"miles": 1}, "miles"),
    ],
)
async def test_a_bad_limit_begins_nothing(tmp_path: Path, limit: dict[str, Any], says: str) -> None:
    async with served(tmp_path, AGENTS) as server:
        answer = await server.http.post("/api/sessions", json=new(tmp_path, limit))
        assert answer.status_code == 400
        message = answer.json()["error"]["message"]
        assert says in message
        assert "\n" not in message
        assert (await server.call("GET", "/api/sessions"))["sessions"] == []


async def test_the_question_of_a_limit_is_answered_like_any_form(tmp_path: Path) -> None:
    agents = {"it": ScriptedAgent([tool_call("a", "A"), tool_call("b", "B"), wait_for_cancel()])}
    async with served(tmp_path, agents) as server:
        body = new(tmp_path, {"toolCalls": 1, "then": "ask"})
        session_id = (await server.call("POST", "/api/sessions", body))["id"]
        await server.prompt(session_id)
        (pending,) = (await server.once(session_id, lambda shown: shown["pending"]))["pending"]
        assert pending["limit"]["source"] == "the session's limit"
        path = f"/api/sessions/{session_id}/elicitations/{pending['id']}"
        await server.call("POST", path, {"action": "accept", "content": {"more": 5}})
        found = await server.call("GET", f"/api/sessions/{session_id}/limits")
        assert found["limits"][0]["limit"]["most"] == 6
        await server.call("POST", f"/api/sessions/{session_id}/cancel", {})
        detail = await server.until(session_id, "idle")
        assert detail["pending"] == []


async def test_what_the_provider_refuses_may_park_in_one_session(tmp_path: Path) -> None:
    async with served(tmp_path, AGENTS) as server:
        body = new(tmp_path, onLimit="park")
        session_id = (await server.call("POST", "/api/sessions", body))["id"]
        live = server.server.hub.live[session_id]
        assert live.session.parking.on_limit == "park"
        body = new(tmp_path, onLimit="wait")
        assert await server.refused("POST", "/api/sessions", body) == (400, "invalid")
