"""`_meta` of whatever comes in can be read, and whatever goes out can have one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import next_of, opened, started, until
from support.peers import soon
from support.raw_agent import RawAgent, notification, text_block

from dragoman import InProcessServer, Session
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.session import events as e

OURS = {"trace": "1"}
THEIRS = {"vendor": {"x": 1}}
MODES = {"currentModeId": "a", "availableModes": [{"id": i, "name": i} for i in "ab"]}
CHOICE = {
    "type": "select",
    "id": "model",
    "name": "Model",
    "currentValue": "s",
    "options": [{"value": "s", "name": "S"}, {"value": "l", "name": "L"}],
}


async def test_whatever_goes_out_can_have_one(tmp_path: Path) -> None:
    welcome = {"authMethods": [{"id": "key", "name": "Key"}]}
    agent = RawAgent(
        welcome=welcome,
        session__new={"sessionId": "s1", "modes": MODES, "configOptions": [CHOICE]},
        session__set_config_option={"configOptions": [CHOICE | {"currentValue": "l"}]},
        session__list={"sessions": []},
        providers__list={"providers": []},
    )
    async with opened(agent, tmp_path) as (client, session):
        await client.authenticate("key", meta=OURS)
        await session.set_mode("b", meta=OURS)
        await session.set_config_option("model", "l", meta=OURS)
        assert [info async for info in client.list_sessions(meta=OURS)] == []
        await client.list_providers(meta=OURS)
        await client.set_provider("p", "openai", "https://x", meta=OURS)
        await client.disable_provider("p", meta=OURS)
    for method in (
        "authenticate",
        "session/set_mode",
        "session/set_config_option",
        "session/list",
        "providers/list",
        "providers/set",
        "providers/disable",
    ):
        assert agent.sent(method)[0]["_meta"] == OURS, method


async def test_that_of_answers_can_be_read(tmp_path: Path) -> None:
    way = {"id": "key", "name": "Key", "_meta": THEIRS}
    agent = RawAgent(
        welcome={"_meta": THEIRS, "authMethods": [way]},
        session__new={"sessionId": "s1", "_meta": THEIRS},
    )
    async with opened(agent, tmp_path) as (client, session):
        assert (client.meta, client.auth_methods[0].meta, session.meta) == (THEIRS,) * 3


class Person:
    def __init__(self) -> None:
        self.metas: list[Any] = []

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        self.metas.append(request.meta)
        return ElicitationAnswer("decline")

    async def request_permission(self, request: Any) -> str | None:
        self.metas.append(request.meta)
        return None


async def test_that_of_questions_reaches_the_provider_and_the_record(tmp_path: Path) -> None:
    agent, person = RawAgent(), Person()
    heard: list[e.Event] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append(event)

    async with opened(
        agent,
        tmp_path,
        permissions=person,
        elicitation=person,
        listen=listen,
    ):
        form = {"sessionId": "s1", "mode": "form", "message": "?", "_meta": THEIRS}
        await agent.ask("elicitation/create", form, 1)
        options = [{"optionId": "n", "name": "No", "kind": "reject_once"}]
        asked = {"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": options}
        await agent.ask("session/request_permission", asked | {"_meta": THEIRS}, 2)
    assert person.metas == [THEIRS, THEIRS]
    questions = (e.ElicitationRequested, e.PermissionRequested)
    assert [each.meta for each in heard if isinstance(each, questions)] == [THEIRS, THEIRS]


async def test_that_of_a_notification_is_the_event_s_beside_its_own(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("go")
        update = notification("agent_message_chunk", content=text_block("hi"), _meta={"own": 1})
        update["params"]["_meta"] = THEIRS
        agent.send(update)
        assert (await next_of(turn, e.AgentMessage)).meta == THEIRS | {"own": 1}


async def test_an_option_of_an_unknown_kind_is_kept_and_cannot_be_set(tmp_path: Path) -> None:
    slider = {"type": "slider", "id": "heat", "name": "Heat", "currentValue": 0.7, "max": 1}
    odd = {"type": "slider", "name": "without an id"}
    agent = RawAgent(session__new={"sessionId": "s1", "configOptions": [CHOICE, slider, odd]})
    async with opened(agent, tmp_path) as (_, session):
        model, heat = session.state.config_options
        assert (model.kind, heat.kind, heat.name, heat.value) == (None, "slider", "Heat", "0.7")
        with pytest.raises(ValueError, match="cannot be set from here: it is a slider"):
            await session.set_config_option("heat", "0.8")
    assert agent.sent("session/set_config_option") == []


# ── MCP over ACP ──────────────────────────────────────────────────────────────────────────────


async def test_a_server_of_ours_can_notify_while_it_answers(tmp_path: Path) -> None:
    async def handle(method: str, params: Any) -> Any:
        server.notify("notifications/progress", {"progress": 1})
        await asyncio.sleep(0)
        server.notify("notifications/progress", {"progress": 2})
        return {"done": True}

    server = InProcessServer(name="ours", id="ours", handle=handle)
    agent = RawAgent()
    async with started(agent) as client:
        await client.new_session(tmp_path, mcp_servers=[server])
        message = {"serverId": "ours", "requestId": "r7", "method": "tools/call"}
        answer = await soon(agent.ask("mcp/message", message))
        assert answer["result"] == {"result": {"done": True}}
        await until(lambda: len(agent.sent("mcp/message")) == 2)
        told = agent.sent("mcp/message")
    assert [each["params"]["progress"] for each in told] == [1, 2]
    assert {(each["serverId"], each["requestId"]) for each in told} == {("ours", "r7")}
    with pytest.raises(RuntimeError, match="while handling a request"):
        server.notify("notifications/progress")
