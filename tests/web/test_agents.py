"""Agents and rules over HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from support.raw_agent import RawAgent
from support.serving import SECONDS, Served, served

from dragoman.cli.parsers import parsed
from dragoman.cli.run.agent_setup import given_rules
from dragoman.errors import AuthRequired
from dragoman.schema import v1
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say, write_file


async def test_agents_are_listed_with_their_state(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        agents = (await web.call("GET", "/api/agents"))["agents"]
        demo = next(agent for agent in agents if agent["name"] == "demo")
        assert (demo["state"], demo["isDefault"]) == ("built in", True)
        assert all("args" not in agent and "env" not in agent for agent in agents)


async def test_a_session_that_only_the_agent_knows_is_imported_once(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        await web.done(session_id, "remember me")
        theirs = (await web.detail(session_id))["agentSessionId"]
        path = "/api/agents/scripted/sessions"
        [known] = (await web.call("GET", path))["sessions"]
        assert (known["id"], known["knownAs"]) == (theirs, session_id)
        await web.call("DELETE", f"/api/sessions/{session_id}?local=true")
        [known] = (await web.call("GET", path))["sessions"]
        assert known["knownAs"] is None
        taken = await web.call("POST", path, {"sessionId": theirs})
        assert taken["agentSessionId"] == theirs
        found = await web.detail(taken["id"])
        assert found["entries"][0]["pieces"] == ["remember me"]
        again = await web.call("POST", path, {"sessionId": theirs})
        assert again["id"] == taken["id"]
        nothing = {"sessionId": "nothing"}
        assert await web.refused("POST", path, nothing) == (404, "unknown_session")


async def test_imports_of_one_session_at_the_same_time_make_one(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    known = [agent.new_session(str(tmp_path), []).id for _ in range(2)]
    async with served(tmp_path, {"scripted": agent}) as web:
        asked = [{"sessionId": each, "cwd": str(tmp_path)} for each in known * 5]
        path = "/api/agents/scripted/sessions"
        taken = await asyncio.gather(*(web.call("POST", path, body) for body in asked))
        made = {(each["agentSessionId"], each["id"]) for each in taken}
        assert sorted(theirs for theirs, _ in made) == sorted(known)
        listed = (await web.call("GET", "/api/sessions"))["sessions"]
        assert {(each["agentSessionId"], each["id"]) for each in listed} == made


async def test_an_imported_session_has_the_title_of_the_agent_s_list(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    known = agent.new_session(str(tmp_path), [])
    known.title = "Parser, second try"
    async with served(tmp_path, {"scripted": agent}) as web:
        body = {"sessionId": known.id, "cwd": str(tmp_path)}
        taken = await web.call("POST", "/api/agents/scripted/sessions", body)
        assert taken["title"] == "Parser, second try"


async def test_an_agent_that_lists_nothing_says_so(tmp_path: Path) -> None:
    agent = ScriptedAgent(capabilities=v1.AgentCapabilities())
    async with served(tmp_path, {"scripted": agent}) as web:
        path = "/api/agents/scripted/sessions"
        assert await web.refused("GET", path) == (409, "unsupported")
        unknown = "/api/agents/nobody/sessions"
        assert await web.refused("GET", unknown) == (404, "unknown_agent")


async def test_signing_in(tmp_path: Path) -> None:
    method = v1.AuthMethodAgent(id="key", name="A key")
    agent = ScriptedAgent(auth_methods=[method])
    async with served(tmp_path, {"scripted": agent}) as web:
        path = "/api/agents/scripted/auth"
        listed = await web.call("POST", path)
        assert [each["id"] for each in listed["methods"]] == ["key"]
        assert listed["signedIn"] is False
        assert (await web.call("POST", path, {"methodId": "key"}))["signedIn"] is True
        assert (await web.call("POST", path))["signedIn"] is True
        assert await web.refused("POST", path, {"methodId": "none"}) == (400, "invalid")
        assert "authenticate" in [name for name, _ in agent.received]


async def asked(web: Served, path: str) -> dict[str, Any]:
    """What the agent asks, as soon as it does."""
    async with asyncio.timeout(SECONDS):
        while True:
            if found := (await web.call("GET", path))["questions"]:
                return found[0]
            await asyncio.sleep(0.01)


async def test_what_an_agent_asks_while_signing_in_is_answered_over_http(tmp_path: Path) -> None:
    code = {"mode": "url", "message": "Enter ABCD", "url": "https://x/device", "elicitationId": "e"}
    agent = RawAgent(welcome={"authMethods": [{"id": "device", "name": "Device code"}]})
    told = agent.asks_before("authenticate", code, {})
    async with served(tmp_path, {"raw": agent}) as web:
        path = "/api/agents/raw/questions"
        assert await web.call("GET", path) == {"questions": []}
        signing_in = asyncio.create_task(
            web.call("POST", "/api/agents/raw/auth", {"methodId": "device"})
        )
        question = await asked(web, path)
        assert (question["message"], question["url"]) == ("Enter ABCD", "https://x/device")
        await web.call("POST", f"{path}/{question['id']}", {"action": "accept"})
        assert (await signing_in)["signedIn"] is True
        gone = await web.refused("POST", f"{path}/{question['id']}", {"action": "accept"})
        assert gone == (404, "unknown_request")
    assert told[0]["result"] == {"action": "accept"}


async def test_what_an_agent_asks_in_session_new_is_on_the_session_s_record(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    form = {"mode": "form", "message": "Trust this folder?", "requestedSchema": schema}
    agent = RawAgent()
    agent.asks_before("session/new", form, {"sessionId": "s1"})
    async with served(tmp_path, {"raw": agent}) as web:
        path = "/api/agents/raw/questions"
        making = asyncio.create_task(web.call("POST", "/api/sessions", {"agent": "raw"}))
        question = await asked(web, path)
        at = f"{path}/{question['id']}"
        assert await web.refused("POST", at, {"action": "accept"}) == (400, "invalid")
        await web.call("POST", at, {"action": "accept", "content": {"ok": True}})
        made = await making
        stored = await web.server.hub.store.events(made["id"])
        assert [json.loads(each.body)["type"] for each in stored][:3] == [
            "session_opened",
            "elicitation_requested",
            "elicitation_settled",
        ]


# ── model providers ───────────────────────────────────────────────────────────────────────────

MAIN = {"providerId": "main", "supported": ["openai"], "required": False}
AT = {"apiType": "openai", "baseUrl": "https://llm.example"}


async def test_model_providers_are_listed_set_and_disabled(tmp_path: Path) -> None:
    agent = RawAgent(providers__list={"providers": [MAIN | {"current": AT}]})
    async with served(tmp_path, {"raw": agent}) as web:
        path = "/api/agents/raw/providers"
        assert await web.call("GET", path) == {"providers": [MAIN | {"current": AT}]}
        await web.call("PUT", f"{path}/main", AT | {"headers": {"x-key": "k"}})
        await web.call("DELETE", f"{path}/main")
        wrong = await web.refused("PUT", f"{path}/main", {"apiType": "", "baseUrl": "x"})
        assert wrong == (400, "invalid")
        assert web.server.launcher.model_providers == {"raw": {"main": None}}
    sent = {"providerId": "main", "headers": {"x-key": "k"}} | AT
    assert agent.sent("providers/set") == [sent]
    assert agent.sent("providers/disable") == [{"providerId": "main"}]


async def test_an_agent_without_model_providers_says_so(tmp_path: Path) -> None:
    async with served(tmp_path, {"raw": RawAgent({})}) as web:
        for method, at in (("GET", ""), ("DELETE", "/main")):
            refused = await web.refused(method, f"/api/agents/raw/providers{at}")
            assert refused == (409, "unsupported")
        assert web.server.launcher.model_providers == {}


# ── sessions that the agent keeps ─────────────────────────────────────────────────────────────


async def test_the_agent_s_sessions_are_listed_by_archived_and_with_their_status(
    tmp_path: Path,
) -> None:
    listed = {"sessions": [{"sessionId": "s1", "cwd": "/x", "archived": True}]}
    agent = RawAgent(session__list=listed, session__status={"status": "saved"})
    async with served(tmp_path, {"raw": agent}) as web:
        path = "/api/agents/raw/sessions"
        [found] = (await web.call("GET", f"{path}?archived=only"))["sessions"]
        assert (found["id"], found["archived"], found["status"]) == ("s1", True, "saved")
        assert await web.refused("GET", f"{path}?archived=some") == (400, "invalid")
    assert agent.sent("session/list") == [{"archived": "only"}]
    assert agent.sent("session/status") == [{"sessionId": "s1"}]


# ── signing out ───────────────────────────────────────────────────────────────────────────────


async def test_signing_out(tmp_path: Path) -> None:
    able = v1.AgentCapabilities(auth=v1.AgentAuthCapabilities(logout=v1.LogoutCapabilities()))
    agents = {
        "able": ScriptedAgent(capabilities=able),
        "unable": ScriptedAgent(capabilities=v1.AgentCapabilities()),
    }
    async with served(tmp_path, agents) as web:
        assert (await web.call("POST", "/api/agents/able/auth"))["canLogout"] is True
        assert await web.call("DELETE", "/api/agents/able/auth") is None
        assert "logout" in [name for name, _ in agents["able"].received]
        assert (await web.call("POST", "/api/agents/unable/auth"))["canLogout"] is False
        unable = await web.refused("DELETE", "/api/agents/unable/auth")
        assert unable == (409, "unsupported")


async def test_a_sign_in_at_a_terminal_is_told_as_what_to_run(tmp_path: Path) -> None:
    method = v1.AuthMethodTerminal(
        id="login", name="Log in", args=["login", "--now"], env={"LOGIN_KEY": "CANARY"}
    )
    agent = ScriptedAgent(auth_methods=[method])
    async with served(tmp_path, {"demo": agent}) as web:
        response = await web.http.post("/api/agents/demo/auth")
        [way] = response.json()["methods"]
        assert (way["kind"], way["command"][-2:], way["env"]) == (
            "terminal",
            ["login", "--now"],
            ["LOGIN_KEY"],
        )
        assert len(way["command"]) > 2
        assert "CANARY" not in response.text


async def test_an_agent_that_wants_a_sign_in_says_which_there_are(tmp_path: Path) -> None:
    methods = [
        v1.AuthMethodAgent(id="key", name="A key"),
        v1.AuthMethodTerminal(id="login", name="Log in", args=["login"], env={"KEY": "CANARY"}),
    ]
    answers = {"session/new": AuthRequired("who are you?")}
    agent = ScriptedAgent(auth_methods=methods, answers=answers)
    async with served(tmp_path, {"scripted": agent}) as web:
        response = await web.http.post("/api/sessions", json={"cwd": str(tmp_path)})
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (409, "auth_required")
        told = error["detail"]["methods"]
        assert [(each["id"], each["kind"]) for each in told] == [
            ("key", "agent"),
            ("login", "terminal"),
        ]
        assert (told[1]["args"], told[1]["env"]) == (["login"], ["KEY"])
        assert "CANARY" not in response.text


async def test_the_doctor_examines_an_agent(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        report = await web.call("POST", "/api/agents/demo/doctor")
        assert (report["agent"], report["counts"]["fail"]) == ("demo", 0)
        assert report["outcome"] in ("pass", "warn")
        assert len(report["findings"]) > 10
        unknown = "/api/agents/nobody/doctor"
        assert await web.refused("POST", unknown) == (404, "unknown_agent")


async def test_an_agent_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        body = {"agent": "no-such-agent", "cwd": str(tmp_path)}
        assert await web.refused("POST", "/api/sessions", body) == (404, "unknown_agent")


async def test_an_always_answer_is_a_rule_that_can_be_revoked(tmp_path: Path) -> None:
    agent = ScriptedAgent([write_file(str(tmp_path / "a.txt"), "x")])
    async with served(tmp_path, {"scripted": agent}) as web:
        assert await web.call("GET", "/api/policies") == {"policies": []}
        session_id = await web.new_session()
        await web.prompt(session_id)
        [pending] = (await web.until(session_id, "waiting"))["pending"]
        always = next(o["id"] for o in pending["options"] if o["kind"] == "allow_always")
        path = f"/api/sessions/{session_id}/permissions/{pending['id']}"
        await web.call("POST", path, {"optionId": always})
        await web.until(session_id, "idle")
        [stored] = (await web.call("GET", "/api/policies"))["policies"]
        assert (stored["rule"]["effect"], stored["rule"]["scope"]) == ("allow", "project")
        await web.done(session_id)
        [stored] = (await web.call("GET", "/api/policies"))["policies"]
        assert stored["usedAt"] is not None
        await web.call("DELETE", f"/api/policies?id={stored['id']}")
        assert await web.call("GET", "/api/policies") == {"policies": []}
        gone = f"/api/policies?id={stored['id']}"
        assert await web.refused("DELETE", gone) == (404, "unknown_rule")


async def test_what_the_server_was_started_with_is_told_beside_the_stored_rules(
    tmp_path: Path,
) -> None:
    file = tmp_path / "rules.json"
    file.write_text('{"rules": [{"effect": "deny", "operation": "write", "path": "secret/**"}]}')
    async with served(tmp_path) as web:
        flags = ["--policy", str(file), "--write", "--exec"]
        web.server.given = given_rules(parsed("serve", flags))
        answer = await web.call("GET", "/api/policies")
        assert answer["policies"] == []
        assert [
            (each["effect"], each["operation"], each["source"]) for each in answer["given"]
        ] == [
            ("deny", "write", str(file)),
            ("allow", "write", "--write"),
            ("allow", "execute", "--exec"),
        ]
        web.server.given = given_rules(parsed("serve", ["--yolo"]))
        given = (await web.call("GET", "/api/policies"))["given"]
        assert {each["source"] for each in given} == {"--yolo"}
