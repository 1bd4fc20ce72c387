"""Every frame we send in version 2 is valid by its schema: each method, answer and content."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from support.clients import gathered, started, until
from support.raw_agent import RawAgent
from support.v2_agent import Judge, second_agent, state

from dragoman import (
    Audio,
    Client,
    HostCapabilities,
    Image,
    Policy,
    Resource,
    ResourceLink,
    Session,
    Text,
)
from dragoman.client.mcp import HttpServer, InProcessServer, StdioServer
from dragoman.host.forms.elicitation import ElicitationAnswer
from dragoman.schema import v2
from dragoman.session.content import Content, UnknownContent

SERVERS = [
    StdioServer(name="one", command="/bin/one", args=("-x",), env={"A": "b"}),
    HttpServer(name="two", url="https://two", headers={"X": "y"}),
]
CONTENT: list[Content] = [
    Text("hello", annotations={"audience": ["user"], "priority": 0.5}, meta={"k": 1}),
    Image("aQ==", "image/png", "file:///i.png"),
    Audio("aQ==", "audio/wav"),
    ResourceLink("file:///a", "a", "text/plain", title="A", description="an a", size=3),
    Resource("file:///b", content="b"),
    Resource("file:///c", blob="aQ==", mime_type="x/y", resource_meta={"k": 1}),
    UnknownContent("_odd", '{"type":"_odd","x":1}'),
]
OPTION = {"type": "boolean", "configId": "fast", "name": "Fast", "currentValue": False}
ANSWERS: dict[str, Any] = {
    "auth__status": {"state": "authenticated"},
    "providers__list": {"providers": []},
    "session__new": {"sessionId": "s1", "configOptions": [OPTION]},
    "session__list": {"sessions": []},
    "session__status": {"status": "open"},
    "session__set_title": {"title": "T"},
    "session__set_config_option": {"configOptions": [OPTION]},
}


async def _fail(method: str, params: Any) -> Any:
    raise ValueError(method)


async def _answer(method: str, params: Any) -> Any:
    return {"tools": []}


async def test_every_frame_we_send_is_valid(tmp_path: Path) -> None:
    judge, agent = Judge(), second_agent(**ANSWERS)
    own = [InProcessServer(name="three", id="x", handle=_answer)]
    own.append(InProcessServer(name="four", id="y", handle=_fail))
    offers = HostCapabilities(terminal_sign_in=True, meta={"k": 1})
    async with started(agent, protocol=2, tap=judge, capabilities=offers) as client:
        session = await client.new_session(
            tmp_path,
            additional_directories=[tmp_path],
            mcp_servers=[*SERVERS, *own],
            system_prompt="Be brief",
            meta={"k": 1},
        )
        await _control(client, session)
        await _converse(agent, session)
        await _serve(agent, session)
        await _keep(client, tmp_path)
    assert judge.wrong == []
    assert set(v2.REQUESTS_TO_AGENT) - judge.methods == set()
    assert judge.methods - set(v2.REQUESTS_TO_AGENT) == {"session/cancel"}
    assert judge.answered == set(v2.REQUESTS_TO_CLIENT)


async def _control(client: Client, session: Session) -> None:
    await client.authenticate("login")
    await client.auth_status()
    await client.logout()
    await client.list_providers()
    await client.set_provider("p", api_type="openai", base_url="https://x", headers={"A": "b"})
    await client.disable_provider("p")
    await session.set_config_option("fast", True)
    await session.set_title("T")


async def _converse(agent: RawAgent, session: Session) -> None:
    turn = session.prompt(CONTENT, meta={"k": 1})
    await agent.expect("session/prompt")
    state(agent, "running")
    can: Any = {"cancel": {}}
    agent.update("tool_call_update", toolCallId="c", capabilities=can)
    agent.update("terminal_update", terminalId="t", capabilities=can)
    await until(lambda: session.state.terminals)
    await session.cancel_tool_call("c")
    await session.cancel_terminal("t")
    cancelling = asyncio.create_task(session.cancel())
    await agent.expect("session/cancel")
    state(agent, "idle", stopReason="cancelled")
    await cancelling
    await gathered(turn)


async def _serve(agent: RawAgent, session: Session) -> None:
    """What the agent asks, with each kind of answer."""
    options = [{"optionId": "no", "name": "No", "kind": "reject_once"}]
    params: Any = {"sessionId": "s1", "title": "May I?", "options": options}
    await agent.ask("session/request_permission", params, 1)
    await agent.ask("session/request_permission", params | {"options": []}, 2)
    await agent.ask("session/request_permission", {"sessionId": "s1"}, 3)
    for number, server in enumerate("xyz", 4):
        message = {"serverId": server, "requestId": "r", "method": "tools/list"}
        await agent.ask("mcp/message", message, number)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    form = {"sessionId": "s1", "mode": "form", "message": "?", "requestedSchema": schema}
    await agent.ask("elicitation/create", form, 8)
    assert session.pending == []
    asking = asyncio.create_task(agent.ask("elicitation/create", form, 9))
    await until(lambda: session.pending)
    (pending,) = session.pending
    await session.answer_elicitation(pending.id, ElicitationAnswer("accept", {"a": "b"}))
    await asking


async def _keep(client: Client, folder: Path) -> None:
    fork = await client.fork_session("s1", folder, mcp_servers=SERVERS, system_prompt="x")
    await client.load_session("old", folder, mcp_servers=SERVERS, system_prompt="x")
    await client.resume_session("old", folder)
    assert [info async for info in client.list_sessions(folder)] == []
    await client.archive_session("old")
    await client.unarchive_session("old")
    await client.session_status("old")
    await fork.close()
    await client.delete_session("s1")


async def test_what_a_policy_refuses_is_answered_validly_too(tmp_path: Path) -> None:
    judge, agent = Judge(), second_agent()
    async with started(agent, protocol=2, tap=judge, policy=Policy()) as client:
        await client.new_session(tmp_path)
        subject = {"type": "command", "command": "rm -rf /", "cwd": "/"}
        options = [{"optionId": "no", "name": "No", "kind": "reject_once"}]
        params: Any = {"sessionId": "s1", "title": "?", "subject": subject, "options": options}
        answer = await agent.ask("session/request_permission", params)
        assert answer["result"]["outcome"]["optionId"] == "no"
    assert judge.wrong == []
