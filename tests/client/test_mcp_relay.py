"""Servers of this process, for agents without MCP over ACP: each test starts the program that the
agent is given, as the agent would, and speaks MCP with it."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import started, until
from support.descriptor_shortage import room
from support.raw_agent import RawAgent

from dragoman import Client, InProcessServer
from dragoman.client.relay import mcp_relay
from dragoman.errors import InvalidParams
from dragoman.process import descriptors

HELLO = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x"}}


class Words:
    """An MCP server with one tool; `held` calls wait until they are cancelled."""

    def __init__(self, server_id: str = "words") -> None:
        self.held = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.server = InProcessServer(name="words", id=server_id, handle=self.handle)

    async def handle(self, method: str, params: dict[str, Any] | None) -> Any:
        match method:
            case "tools/list":
                return {"tools": [{"name": "word", "inputSchema": {"type": "object"}}]}
            case "tools/call" if (params or {}).get("name") == "hold":
                self.held.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
            case "tools/call":
                self.server.notify("notifications/progress", {"progress": 1})
                return {"content": [{"type": "text", "text": "quicksilver"}]}
            case _:
                raise InvalidParams(f"no {method} here")


class Program:
    """What the agent started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def send(self, method: str, params: Any = None, key: Any = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        message |= {} if params is None else {"params": params}
        message |= {} if key is None else {"id": key}
        self._stdin.write(msgspec.json.encode(message) + b"\n")

    async def read(self) -> dict[str, Any]:
        return msgspec.json.decode(await self._stdout.readline())

    async def ask(self, method: str, params: Any = None, key: Any = 1) -> dict[str, Any]:
        self.send(method, params, key)
        return await self.read()

    async def rest(self) -> bytes:
        """Until its end, or some of it."""
        async with asyncio.timeout(30):
            return await self._stdout.read(1_000)

    async def end(self) -> int:
        self._stdin.close()
        return await self.process.wait()


@asynccontextmanager
async def program(told: dict[str, Any]) -> AsyncGenerator[Program]:
    process = await asyncio.create_subprocess_exec(
        told["command"], *told["args"], stdin=-1, stdout=-1, env={}
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def offered(words: Words, cwd: Path) -> AsyncGenerator[tuple[Client, dict[str, Any]]]:
    """A session with that server, and what its agent was told of it."""
    agent = RawAgent({})
    async with started(agent) as client:
        await client.new_session(cwd, mcp_servers=[words.server])
        [told] = agent.sent("session/new")[0]["mcpServers"]
        yield client, told


async def test_an_agent_starts_a_program_and_calls_a_tool_of_this_process(tmp_path: Path) -> None:
    async with offered(Words(), tmp_path) as (_, told), program(told) as mcp:
        assert told["name"] == "words"
        hello = (await mcp.ask("initialize", HELLO))["result"]
        assert hello["protocolVersion"] == "2025-03-26"
        assert hello["capabilities"] == {"tools": {}}
        assert hello["serverInfo"]["name"] == "words"
        mcp.send("notifications/initialized")
        assert (await mcp.ask("ping", key="p"))["result"] == {}
        listed = await mcp.ask("tools/list", key=2)
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["word"]
        mcp.send("tools/call", {"name": "word"}, 3)
        assert (await mcp.read())["params"] == {"progress": 1}
        assert (await mcp.read())["result"]["content"][0]["text"] == "quicksilver"
        assert await mcp.end() == 0


async def test_an_unknown_version_gets_the_newest_that_is_known(tmp_path: Path) -> None:
    async with offered(Words(), tmp_path) as (_, told), program(told) as mcp:
        hello = await mcp.ask("initialize", HELLO | {"protocolVersion": "2999-01-01"})
        assert hello["result"]["protocolVersion"] == "2025-06-18"


async def test_what_the_server_refuses_is_an_error_of_that_call_alone(tmp_path: Path) -> None:
    async with offered(Words(), tmp_path) as (_, told), program(told) as mcp:
        assert (await mcp.ask("resources/list"))["error"]["message"] == "no resources/list here"
        assert (await mcp.ask("tools/call", [1]))["error"]["code"] == -32602
        assert "result" in await mcp.ask("tools/list")


async def test_a_withdrawn_call_is_cancelled(tmp_path: Path) -> None:
    words = Words()
    async with offered(words, tmp_path) as (_, told), program(told) as mcp:
        mcp.send("tools/call", {"name": "hold"}, 7)
        await words.held.wait()
        mcp.send("notifications/cancelled", {"requestId": 7})
        await words.cancelled.wait()
        await mcp.read()
        assert "result" in await mcp.ask("tools/list", key=8)


async def test_a_server_ends_with_its_session(tmp_path: Path) -> None:
    async with offered(Words(), tmp_path) as (client, told), program(told) as mcp:
        assert "result" in await mcp.ask("tools/list")
        await client.close_session("s1")
        assert "no MCP server words" in (await mcp.ask("tools/list"))["error"]["message"]


async def test_programs_and_folder_end_with_the_client(tmp_path: Path) -> None:
    async with offered(Words(), tmp_path) as (client, told), program(told) as mcp:
        assert "result" in await mcp.ask("tools/list")
        address = Path(told["args"][-2])
        assert stat.S_IMODE(os.stat(address.parent).st_mode) == 0o700
        await client.aclose()
        assert await mcp.process.wait() == 0
        assert not address.parent.exists()
    async with program(told) as late:
        assert await late.process.wait() == 1


async def test_a_running_call_does_not_hold_up_the_end(tmp_path: Path) -> None:
    words = Words()
    async with offered(words, tmp_path) as (client, told), program(told) as mcp:
        mcp.send("tools/call", {"name": "hold"}, 1)
        await words.held.wait()
        await client.aclose()
        assert words.cancelled.is_set()


async def test_two_servers_are_told_apart(tmp_path: Path) -> None:
    agent = RawAgent({})
    one, other = Words("one"), Words("other")
    async with started(agent) as client:
        await client.new_session(tmp_path, mcp_servers=[one.server, other.server])
        told = agent.sent("session/new")[0]["mcpServers"]
        async with program(told[1]) as mcp:
            mcp.send("tools/call", {"name": "hold"}, 1)
            await other.held.wait()
            assert not one.held.is_set()


async def test_nothing_is_answered_before_a_server_is_named(tmp_path: Path) -> None:
    async with offered(Words(), tmp_path) as (_, told):
        anonymous = told | {"args": [*told["args"][:-1], '{"jsonrpc":"2.0","method":"x"}']}
        async with program(anonymous) as mcp:
            assert (await mcp.ask("tools/list"))["error"]["message"] == "no MCP server was named"


async def test_an_agent_elsewhere_is_not_given_a_program_of_this_machine(tmp_path: Path) -> None:
    agent = RawAgent({})
    async with started(agent) as client:
        client.files_are_here = False
        session = await client.new_session(tmp_path, mcp_servers=[Words().server])
        [notice] = session.state.entries
        assert notice.text == "MCP server 'words' left out: the agent has no MCP over ACP"
    assert agent.sent("session/new")[0]["mcpServers"] == []


async def test_a_socket_that_cannot_be_made_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    agent = RawAgent({})
    async with started(agent) as client:
        session = await client.new_session(tmp_path, mcp_servers=[Words().server])
        assert "MCP server 'words' left out:" in session.state.entries[0].text
    assert agent.sent("session/new")[0]["mcpServers"] == []


async def test_a_long_temporary_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    async with offered(Words(), tmp_path) as (_, told), program(told) as mcp:
        assert "result" in await mcp.ask("tools/list")
    assert list(long.iterdir()) == []


async def test_a_process_without_a_free_descriptor_accepts_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    accept, tries = loop.sock_accept, 0

    async def first_refused(listener: socket.socket) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(listener)

    monkeypatch.setattr(loop, "sock_accept", first_refused)
    async with offered(Words(), tmp_path) as (_, told), program(told) as mcp:
        assert "result" in await mcp.ask("tools/list")
    assert tries >= 2


async def test_a_process_with_one_free_descriptor_serves_the_connection_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duplicate, tries = os.dup, 0

    def first_refused(descriptor: int) -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return duplicate(descriptor)

    async with offered(Words(), tmp_path) as (_, told):
        monkeypatch.setattr(os, "dup", first_refused)
        async with program(told) as mcp:
            assert "result" in await mcp.ask("tools/list")
        async with program(told) as mcp:
            assert "result" in await mcp.ask("tools/list")
    assert tries >= 2


async def test_a_connection_is_taken_only_if_agents_have_room_for_it(tmp_path: Path) -> None:
    async with offered(Words(), tmp_path) as (_, told):
        with room(1):
            async with program(told) as mcp:
                mcp.send("tools/list", key=1)
                assert await mcp.rest() == b""
        with room(2):
            async with program(told) as mcp:
                assert "result" in await mcp.ask("tools/list")


async def test_a_connection_counts_among_what_agents_have_until_it_ends(tmp_path: Path) -> None:
    async with offered(Words(), tmp_path) as (_, told):
        with room(3):
            async with program(told) as mcp:
                assert "result" in await mcp.ask("tools/list")
                assert descriptors.has_room(1)
                assert not descriptors.has_room(2)
            await until(lambda: descriptors.has_room(3))


@pytest.fixture
def short_path(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A temporary directory for folders of sockets, whose addresses must be short."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_what_a_killed_process_left_is_removed_by_the_next(short_path: Path) -> None:
    left, young, other, used = (short_path / f"dragoman-{name}" for name in "lyou")
    listener = socket.socket(socket.AF_UNIX)
    for folder in (left, young, other, used):
        folder.mkdir()
    for folder in (left, young):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(f"{folder}/mcp")
    listener.bind(f"{used}/mcp")
    listener.listen()
    (other / "a file").touch()
    for folder in (left, other, used):
        os.utime(folder, (1, 1))
    mine = Path(mcp_relay.private_folder())
    listener.close()
    assert set(short_path.iterdir()) == {young, other, used, mine}
