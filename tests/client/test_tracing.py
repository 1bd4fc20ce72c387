"""The caller's trace context reaches the agent in `_meta`; sessions are listed by `archived`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hub.test_two_windows import two_windows
from support.clients import opened, started, until
from support.hubs import TestLauncher, stored
from support.peers import soon
from support.raw_agent import RawAgent
from support.serving import served
from support.v2_agent import CAPABILITIES, second_agent

from dragoman import Unsupported, tracing
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session.facts import SteerWay
from dragoman.testing import AgentTurn, ScriptedAgent

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_sessions_and_prompts_carry_it(tmp_path: Path) -> None:
    agent = RawAgent(session__prompt={"stopReason": "end_turn"})
    async with started(agent) as client:
        with tracing(PARENT, "vendor=1"):
            session = await client.new_session(tmp_path, meta={"x": 1})
            turn = session.prompt("go")
        await turn
        await session.prompt("again")
    trace = {"traceparent": PARENT, "tracestate": "vendor=1"}
    assert agent.sent("session/new")[0]["_meta"] == trace | {"x": 1}
    first, second = agent.sent("session/prompt")
    assert first["_meta"] == trace
    assert "_meta" not in second


@pytest.mark.parametrize("way", ["steering", "run", "prompt", "queue"])
async def test_so_do_steers_whichever_way_they_go(tmp_path: Path, way: SteerWay) -> None:
    agent, method = steerable(way)
    async with opened(agent, tmp_path, protocol=2 if way == "prompt" else 1) as (_, session):
        session.prompt("go").discard()
        prompt = await agent.expect("session/prompt")
        if way == "run":
            agent.update("session_info_update", _meta={"goose": {"activeRunId": "r"}})
        agent.say("at work", messageId="m")
        await until(lambda: len(session.state.entries) == 2)
        with tracing(PARENT):
            steering = asyncio.create_task(session.steer("rather blue", meta={"x": 1}))
        if way == "queue":
            assert (await soon(steering)).way == "queue"
            agent.reply(prompt["id"], {"stopReason": "end_turn"})
        sent = await agent.expect(method)
        told = sent["params"]["_meta"]
        assert {key: told[key] for key in ("traceparent", "x")} == {"traceparent": PARENT, "x": 1}
        steering.cancel()


def steerable(way: SteerWay) -> tuple[RawAgent, str]:
    """An agent that takes steers in this way alone, and leaves them open; and its method."""
    match way:
        case "steering":
            agent = RawAgent(welcome={"_meta": {"steering": {"supported": True}}})
            agent.answers["_session/steering"] = None
            return agent, "_session/steering"
        case "run":
            agent = RawAgent()
            agent.answers["_goose/unstable/session/steer"] = None
            return agent, "_goose/unstable/session/steer"
        case "prompt":
            queueing = {"_meta": {"claudeCode": {"promptQueueing": True}}}
            return second_agent(CAPABILITIES | queueing, session__prompt=None), "session/prompt"
        case _:
            return RawAgent(), "session/prompt"


@pytest.mark.parametrize(
    "wrong", [None, "", "x", PARENT.upper(), "00-" + "0" * 32 + PARENT[35:], "ff" + PARENT[2:]]
)
async def test_what_is_not_valid_is_ignored(tmp_path: Path, wrong: str | None) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        with tracing(wrong, "vendor=1"):
            await client.new_session(tmp_path)
    assert "_meta" not in agent.sent("session/new")[0]


async def test_a_command_from_another_process_brings_it_along(tmp_path: Path) -> None:
    agent = RawAgent(session__prompt={"stopReason": "end_turn"})
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": agent})) as hub:
        live = await hub.create("it", str(tmp_path))
        sent = c.decode_command(c.encode_command(c.Prompt("go", {"traceparent": PARENT})))
        await hub.send(live.id, sent)
        await agent.expect("session/prompt")
    assert agent.sent("session/prompt")[0]["_meta"] == {"traceparent": PARENT}


async def test_a_steer_from_another_window_brings_it_along(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def until_ended(turn: AgentTurn) -> None:
        await ended.wait()

    agent = ScriptedAgent(until_ended)
    async with two_windows(tmp_path, agent) as (owner, other):
        live = await owner.create("it", str(tmp_path))
        await owner.send(live.id, c.Prompt("one"))
        with tracing(PARENT, "vendor=1"):
            reply = await soon(other.send(live.id, c.SteerTurn("two")))
        assert reply["way"] == "queue"
        ended.set()
        await until(lambda: live.idle)
    prompts = [params for method, params in agent.received if method == "session/prompt"]
    told = [each.get("_meta") for each in prompts]
    assert told == [None, {"traceparent": PARENT, "tracestate": "vendor=1"}]


async def test_archived_sessions_are_listed_as_asked(tmp_path: Path) -> None:
    listing: dict[str, Any] = {"sessionCapabilities": {"list": {}, "archive": {}}}
    agent = RawAgent(listing, session__list={"sessions": []})
    async with started(agent) as client:
        assert [each async for each in client.list_sessions(archived="only")] == []
        assert [each async for each in client.list_sessions()] == []
    assert agent.sent("session/list") == [{"archived": "only"}, {}]
    plain = RawAgent({"sessionCapabilities": {"list": {}}}, session__list={"sessions": []})
    async with started(plain) as client:
        with pytest.raises(Unsupported):
            [each async for each in client.list_sessions(archived="only")]


async def test_a_request_over_http_brings_it_along(tmp_path: Path) -> None:
    agent = RawAgent(session__prompt={"stopReason": "end_turn"})
    trace = {"traceparent": PARENT, "tracestate": "vendor=1"}
    async with served(tmp_path, {"raw": agent}) as web:
        body = {"agent": "raw", "cwd": str(tmp_path)}
        session_id = (await web.call("POST", "/api/sessions", body, headers=trace))["id"]
        path = f"/api/sessions/{session_id}/prompt"
        await web.call("POST", path, {"text": "go"}, headers=trace)
        await web.until(session_id, "idle")
        await web.done(session_id, "again")
    assert agent.sent("session/new")[0]["_meta"] == trace
    first, second = agent.sent("session/prompt")
    assert first["_meta"] == trace
    assert "_meta" not in second
