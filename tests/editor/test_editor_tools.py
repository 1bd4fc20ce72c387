"""MCP servers that an editor serves over ACP: agents use them, with MCP over ACP and without."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import until
from support.editors import Office, office
from support.peers import soon

from dragoman import Client, Session
from dragoman.client.mcp import InProcessServer
from dragoman.errors import InvalidParams
from dragoman.schema import v1
from dragoman.session.state import AgentEntry
from dragoman.testing import AgentTurn, ScriptedAgent

PAIRS = [(1, 1), (1, 2), (2, 1), (2, 2)]


class Tools:
    """The server of an editor; it notifies before it answers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any] | None]] = []
        self.server = InProcessServer(name="tools", id="calc", handle=self.handle)

    async def handle(self, method: str, params: dict[str, Any] | None) -> Any:
        self.calls.append((method, params))
        if method == "tools/call":
            self.server.notify("notifications/progress", {"progress": 1})
            return {"content": [{"type": "text", "text": "quicksilver"}]}
        raise InvalidParams("no such method", {"method": method})


async def uses(turn: AgentTurn) -> None:
    """Calls a method of the server with which the session began, and says what it got."""
    [began] = [params for method, params in turn.agent.received if method == "session/new"]
    server = msgspec.to_builtins(began)["mcpServers"][0]
    request = {"serverId": server["serverId"], "requestId": "r1", "method": turn.text}
    turn.say(msgspec.json.encode(await turn.call("mcp/message", request)).decode())


@asynccontextmanager
async def tools(here: Office, cwd: Path, version: int) -> AsyncGenerator[tuple[Client, Session]]:
    async with here.editor(protocol=version) as editor:
        assert editor.capabilities.mcp_acp
        yield editor, await editor.new_session(cwd, mcp_servers=[Tools().server])


def said(session: Session) -> str:
    return "".join(each.text for each in session.state.entries if isinstance(each, AgentEntry))


@pytest.mark.parametrize(("editor", "agent"), PAIRS)
async def test_an_agent_uses_a_server_of_the_editor(
    tmp_path: Path, editor: int, agent: int
) -> None:
    scripted = ScriptedAgent(uses)
    async with (
        office(tmp_path, scripted, protocol=agent) as here,
        tools(here, tmp_path, editor) as (_, session),
    ):
        await soon(session.prompt("tools/call"))
        assert "quicksilver" in said(session)
        told = [params for method, params in scripted.received if method == "mcp/message"]
        [progress] = map(msgspec.to_builtins, told)
        assert (progress["method"], progress["requestId"]) == ("notifications/progress", "r1")


async def test_what_the_server_refuses_the_agent_is_told(tmp_path: Path) -> None:
    async with (
        office(tmp_path, ScriptedAgent(uses)) as here,
        tools(here, tmp_path, 1) as (
            _,
            session,
        ),
    ):
        await soon(session.prompt("tools/none"))
        assert '"code":-32602' in said(session)
        assert "no such method" in said(session)


async def test_without_the_editor_its_server_fails_and_nothing_else(tmp_path: Path) -> None:
    async with office(tmp_path, ScriptedAgent(uses)) as here:
        async with tools(here, tmp_path, 1) as (_, session):
            await soon(session.prompt("tools/call"))
        live = here.hub.live[session.id]
        turn = await live.prompt("tools/call")
        await soon(turn)
        await until(lambda: live.idle)
        answers = [each.text for each in live.state.entries if isinstance(each, AgentEntry)]
        assert '"error"' in answers[-1]


async def test_an_agent_without_mcp_over_acp_gets_a_program_instead(tmp_path: Path) -> None:
    plain = v1.AgentCapabilities(mcp_capabilities=v1.McpCapabilities())
    agent = ScriptedAgent([], capabilities=plain)
    async with office(tmp_path, agent) as here, tools(here, tmp_path, 1):
        [began] = [params for method, params in agent.received if method == "session/new"]
        [server] = msgspec.to_builtins(began)["mcpServers"]
        assert server["name"] == "tools"
        assert server["command"]
