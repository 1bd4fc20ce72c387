"""MCP servers: forwarded where the agent supports them, said where not, and our own served."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import opened, started
from support.raw_agent import RawAgent

from dragoman import Client, HttpServer, InProcessServer, Session, SseServer, StdioServer
from dragoman.client.capabilities import AgentCapabilities
from dragoman.client.mcp import McpServer, supported
from dragoman.errors import InvalidParams


async def no_tools(method: str, params: dict[str, Any] | None) -> Any:
    return {"tools": []}


STDIO = StdioServer(name="files", command="mcp-files", args=("--root", "/x"), env={"KEY": "v"})
BARE = StdioServer(name="bare", command="mcp")
HTTP = HttpServer(name="web", url="https://x/mcp", headers={"Authorization": "Bearer t"})
SSE = SseServer(name="old", url="https://x/sse")
OURS = InProcessServer(name="ours", id="ours-1", handle=no_tools)
SERVERS: list[McpServer] = [STDIO, BARE, HTTP, SSE, OURS]

WIRE: list[dict[str, Any]] = [
    {
        "name": "files",
        "command": "mcp-files",
        "args": ["--root", "/x"],
        "env": [{"name": "KEY", "value": "v"}],
    },
    {"name": "bare", "command": "mcp", "args": [], "env": []},
    {
        "type": "http",
        "name": "web",
        "url": "https://x/mcp",
        "headers": [{"name": "Authorization", "value": "Bearer t"}],
    },
    {"type": "sse", "name": "old", "url": "https://x/sse", "headers": []},
    {"type": "acp", "name": "ours", "serverId": "ours-1"},
]


# ── forwarding ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "ids"),
    [("new", []), ("load", ["s1"]), ("resume", ["s1"]), ("fork", ["s1"]), ("ensure", ["s1"])],
)
async def test_servers_are_forwarded_whichever_way_a_session_is_opened(
    name: str, ids: list[str], tmp_path: Path
) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        await getattr(client, f"{name}_session")(*ids, tmp_path, mcp_servers=SERVERS)
    method = "session/load" if name == "ensure" else f"session/{name}"
    assert agent.sent(method)[0]["mcpServers"] == WIRE


def test_every_agent_takes_servers_it_starts_itself() -> None:
    kept, left_out = supported(SERVERS, AgentCapabilities(), is_here=False)
    assert kept == [STDIO, BARE]
    assert left_out == [
        "MCP server 'web' left out: the agent has no HTTP transport for MCP",
        "MCP server 'old' left out: the agent has no SSE transport for MCP",
        "MCP server 'ours' left out: the agent has no MCP over ACP",
    ]


@pytest.mark.parametrize(
    ("agent", "kept"),
    [
        (AgentCapabilities(mcp_http=True), HTTP),
        (AgentCapabilities(mcp_sse=True), SSE),
        (AgentCapabilities(mcp_acp=True), OURS),
    ],
)
def test_each_transport_is_offered_by_itself(agent: AgentCapabilities, kept: McpServer) -> None:
    assert supported([HTTP, SSE, OURS], agent, is_here=False)[0] == [kept]


async def test_what_was_left_out_is_said_in_the_session(tmp_path: Path) -> None:
    agent = RawAgent({})
    async with started(agent) as client:
        session = await client.new_session(tmp_path, mcp_servers=[STDIO, HTTP])
        (notice,) = session.state.entries
        assert notice.text == "MCP server 'web' left out: the agent has no HTTP transport for MCP"
    assert agent.sent("session/new")[0]["mcpServers"] == WIRE[:1]


# ── a server of our own ───────────────────────────────────────────────────────────────────────


class Calculator:
    """An MCP server in this process."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any] | None]] = []

    async def handle(self, method: str, params: dict[str, Any] | None) -> Any:
        self.calls.append((method, params))
        if method == "tools/call":
            return {"content": [{"type": "text", "text": str(sum((params or {})["numbers"]))}]}
        if method == "tools/list":
            return {"tools": [{"name": "add"}]}
        if method == "explode":
            raise ZeroDivisionError("secret detail")
        raise InvalidParams("no such method", {"method": method})

    def server(self) -> InProcessServer:
        return InProcessServer(name="calculator", id="calc", handle=self.handle)


def message(method: str, params: Any = None, server: str = "calc") -> dict[str, Any]:
    body = {"serverId": server, "requestId": "r1", "method": method}
    return body if params is None else body | {"params": params}


async def with_calculator(client: Client, cwd: Path) -> tuple[Session, Calculator]:
    calculator = Calculator()
    return await client.new_session(cwd, mcp_servers=[calculator.server()]), calculator


async def test_an_agent_uses_our_server_through_the_connection(tmp_path: Path) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        _, calculator = await with_calculator(client, tmp_path)
        listed = await agent.ask("mcp/message", message("tools/list"), 1)
        assert listed["result"] == {"result": {"tools": [{"name": "add"}]}}
        called = await agent.ask("mcp/message", message("tools/call", {"numbers": [1, 2]}), 2)
        assert called["result"]["result"]["content"][0]["text"] == "3"
        assert calculator.calls == [("tools/list", None), ("tools/call", {"numbers": [1, 2]})]


async def test_an_agent_may_use_our_server_before_it_names_the_session(tmp_path: Path) -> None:
    """An agent that looks for tools while it makes the session must find them."""
    agent = RawAgent(session__new=None)
    calculator = Calculator()

    async def serve() -> None:
        request = await agent.expect("session/new")
        listed = await agent.ask("mcp/message", message("tools/list"))
        assert "result" in listed
        agent.reply(request["id"], {"sessionId": "s1"})

    async with started(agent) as client, asyncio.TaskGroup() as group:
        group.create_task(serve())
        await client.new_session(tmp_path, mcp_servers=[calculator.server()])
    assert calculator.calls == [("tools/list", None)]


async def test_what_our_server_raises_becomes_an_mcp_error(tmp_path: Path) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        await with_calculator(client, tmp_path)
        told = await agent.ask("mcp/message", message("unheard/of"), 1)
        assert told["result"]["error"] == {
            "code": -32602,
            "message": "no such method",
            "data": {"method": "unheard/of"},
        }
        broken = await agent.ask("mcp/message", message("explode"), 2)
        assert broken["result"]["error"] == {"code": -32603, "message": "internal error"}


async def test_an_unknown_server_is_not_found(tmp_path: Path) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        session, _ = await with_calculator(client, tmp_path)
        told = await agent.ask("mcp/message", message("tools/list", server="other"), 1)
        assert told["error"]["code"] == -32002
        await session.close()
        told = await agent.ask("mcp/message", message("tools/list"), 2)
        assert told["error"]["code"] == -32002


async def test_a_message_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path):
        told = await agent.ask("mcp/message", {"serverId": "calc"})
        assert told["error"]["code"] == -32602


async def test_older_drafts_connect_first(tmp_path: Path) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        await with_calculator(client, tmp_path)
        connected = await agent.ask("mcp/connect", {"acpId": "calc"}, 1)
        connection = connected["result"]["connectionId"]
        params = {"connectionId": connection, "method": "tools/list"}
        listed = await agent.ask("mcp/message", params, 2)
        assert listed["result"] == {"tools": [{"name": "add"}]}
        params = {"connectionId": connection, "method": "unheard/of"}
        assert (await agent.ask("mcp/message", params, 3))["error"]["code"] == -32602
        gone = await agent.ask("mcp/disconnect", {"connectionId": connection}, 4)
        assert gone["result"] == {}


async def test_what_is_no_server_never_reaches_the_agent(tmp_path: Path) -> None:
    odd: Any = {"name": "m", "command": "/bin/cat", "args": [], "env": []}
    agent = RawAgent()
    async with started(agent) as client:
        with pytest.raises(TypeError, match="expected a server such as StdioServer, not dict"):
            await client.new_session(tmp_path, mcp_servers=[odd])
    assert [message["method"] for message in agent.received] == ["initialize"]
