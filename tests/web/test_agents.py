"""Agents and rules over HTTP."""

from __future__ import annotations

from pathlib import Path

from support.serving import served

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
        assert await web.refused("POST", path, {"methodId": "none"}) == (400, "invalid")
        assert "authenticate" in [name for name, _ in agent.received]


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
