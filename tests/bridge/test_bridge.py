"""The bridge: who is let in, one agent for each who is, and how it ends for them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from support.bridges import HELLO, TOKEN, WELCOME, InMemory, bridged
from support.clients import until
from support.peers import settled, soon, tidy_loop
from support.raw_http import raw, request

from dragoman.bridge.http_connections import BridgeLimits
from dragoman.errors import CommandNotFound, ConnectionLost, RemoteLost, StartError, Unreachable
from dragoman.transport.reconnection import ReconnectingRoute
from dragoman.transport.stdio import AgentCommand, StdioTransport
from dragoman.transport.target import RemoteAgent, way_to
from dragoman.transport.transport import Transport
from dragoman.web.routing.route import Route as WebRoute
from dragoman.web.routing.route import Table
from dragoman.web.server.guard import AllowedHosts, Guard
from dragoman.web.server.http_server import AsgiServer

FRIEND = "https://front.example"
UPGRADE = {
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}
ECHO = "import os\nwhile data := os.read(0, 65536): os.write(1, data)"


def python(code: str) -> AgentCommand:
    return AgentCommand(sys.executable, ("-I", "-S", "-c", code))


def runs(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


async def lost(transport: Transport) -> ConnectionLost | StartError:
    while await soon(transport.receive()):
        pass
    return await transport.failure(spoke=True, printed="")


# ── who is let in ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changed", "path", "status"),
    [
        ({}, "/acp", 101),
        ({"origin": FRIEND}, "/acp", 101),
        ({"authorization": None}, "/acp", 401),
        ({"authorization": "Bearer wrong"}, "/acp", 401),
        ({"authorization": None}, f"/acp?token={TOKEN}", 401),
        ({"authorization": None, "sec-websocket-protocol": TOKEN}, "/acp", 401),
        ({"origin": "https://evil.example"}, "/acp", 403),
        ({"origin": "null"}, "/acp", 403),
        ({"sec-fetch-site": "cross-site"}, "/acp", 403),
        ({"host": "evil.example"}, "/acp", 421),
        ({}, "/", 404),
        ({}, "/acp/", 404),
        ({}, "/%61cp%2f", 400),
    ],
)
async def test_a_socket_is_opened_only_for_whom_the_guard_lets_in(
    changed: dict[str, str | None], path: str, status: int
) -> None:
    memory = InMemory()
    async with bridged(memory.start, origins=(FRIEND,)) as web:
        good = {"host": f"127.0.0.1:{web.port}", "authorization": f"Bearer {TOKEN}"}
        headers = {name: value for name, value in (good | UPGRADE | changed).items() if value}
        answer = await raw(web.port, request("GET", path, headers))
    assert answer.status == status
    assert ("acp-connection-id" in answer.headers) == (status == 101)


async def test_a_path_that_is_no_socket_is_not_opened_as_one() -> None:
    came: list[Scope] = []

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        came.append(scope)

    async def never(**given: object) -> None:
        pass

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    routes = [WebRoute(method="GET", path="/plain", handler=never, summary="", public=True)]
    guard = Guard(behind, Table(routes), token=TOKEN, hosts=AllowedHosts("127.0.0.1", port))
    server = AsgiServer(guard, asyncio.Event(), sockets=True)
    serving = asyncio.create_task(server.serve([listener]))
    headers = {"host": f"127.0.0.1:{port}"} | UPGRADE
    answer = await raw(port, request("GET", "/plain", headers))
    server.end()
    await serving
    assert (answer.status, answer.code, came) == (404, "not_found", [])


@pytest.mark.parametrize(
    ("method", "headers", "body", "status"),
    [
        ("POST", {"authorization": ""}, HELLO, 401),
        ("POST", {"content-type": "text/plain"}, HELLO, 415),
        ("POST", {}, b"[]", 501),
        ("POST", {}, b"{", 400),
        ("POST", {}, b"42", 400),
        ("POST", {}, b'{"jsonrpc":"2.0","method":"x"}', 400),
        ("POST", {"acp-connection-id": "no"}, b'{"jsonrpc":"2.0","method":"x"}', 404),
        ("POST", {"acp-connection-id": "x"}, HELLO, 404),
        ("POST", {}, b'{"jsonrpc":"2.0","method":"initialize"}', 400),
        ("GET", {}, b"", 406),
        ("GET", {"accept": "text/event-stream"}, b"", 400),
        ("GET", {"accept": "text/event-stream", "acp-connection-id": "no"}, b"", 404),
        ("DELETE", {}, b"", 400),
        ("DELETE", {"acp-connection-id": "no"}, b"", 404),
        ("PUT", {}, b"", 405),
    ],
)
async def test_what_is_no_proper_request_has_its_status(
    method: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    async with bridged(InMemory().start) as web:
        kind = {"content-type": "application/json"} if body else {}
        sent = {"authorization": f"Bearer {TOKEN}"} | kind | headers
        async with httpx.AsyncClient(trust_env=False, verify=False) as http:
            url = f"http://127.0.0.1:{web.port}/acp"
            response = await http.request(method, url, headers=sent, content=body or None)
    assert response.status_code == status
    assert response.json()["error"]["message"]


@pytest.mark.own_time
async def test_a_body_that_comes_slowly_but_steadily_is_taken() -> None:
    async def slowly() -> AsyncGenerator[bytes]:
        for letter in b'{"a":1}':
            await asyncio.sleep(0.25)
            yield bytes([letter])

    async with bridged(InMemory().start, limits=BridgeLimits(body=1.0)) as web:
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        async with httpx.AsyncClient(
            trust_env=False, verify=False, headers=headers | {"content-length": "7"}
        ) as http:
            response = await http.post(f"http://127.0.0.1:{web.port}/acp", content=slowly())
    assert response.json()["error"]["message"] == "Acp-Connection-Id is missing"


async def test_a_stream_has_one_reader_and_a_session_is_named_twice() -> None:
    memory = InMemory()
    async with tidy_loop(), bridged(memory.start) as web:
        ours = await ReconnectingRoute(web.agent("http")).connect()
        ours.send(HELLO + b"\n")
        agent = await memory.agent()
        agent.send(WELCOME + b"\n")
        await soon(ours.receive())
        connection: Any = ours
        common = {"authorization": f"Bearer {TOKEN}"}
        common["acp-connection-id"] = connection._connection_id
        prompt = {"method": "session/prompt", "params": {"sessionId": "s1"}}
        async with httpx.AsyncClient(trust_env=False, verify=False, headers=common) as http:
            url = f"http://127.0.0.1:{web.port}/acp"
            second = await http.get(url, headers={"accept": "text/event-stream"})
            unnamed = await http.post(url, json=prompt)
            other = await http.post(url, json=prompt, headers={"acp-session-id": "s2"})
        await ours.aclose()
    assert (second.status_code, unnamed.status_code, other.status_code) == (409, 400, 400)


# ── one agent each ────────────────────────────────────────────────────────────────────────────


async def test_each_connection_has_a_process_that_ends_with_it() -> None:
    pids: list[int] = []

    async def start() -> Transport:
        transport = await StdioTransport.start(python(ECHO))
        pids.append(transport.pid)
        return transport

    async with tidy_loop(), bridged(start) as web:
        ends = [await ReconnectingRoute(web.agent("ws")).connect() for _ in range(3)]
        for number, end in enumerate(ends):
            end.send(b'{"n":%d}\n' % number)
        assert [await soon(end.receive()) for end in ends] == [b'{"n":%d}\n' % n for n in range(3)]
        assert len(set(pids)) == 3
        await ends[1].aclose()
        await until(lambda: not runs(pids[1]))
        assert runs(pids[0])
        for end in ends:
            await end.aclose()
    assert not any(map(runs, pids))


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_beyond_the_limit_nobody_is_let_in_until_somebody_leaves(scheme: str) -> None:
    memory = InMemory()

    async def connect(agent: RemoteAgent) -> tuple[Transport, Transport]:
        transport = await ReconnectingRoute(agent).connect()
        transport.send(HELLO + b"\n")
        theirs = await memory.agent()
        theirs.send(WELCOME + b"\n")
        await soon(transport.receive())
        return transport, theirs

    async with tidy_loop(), bridged(memory.start, limit=1) as web:
        first, behind = await connect(web.agent(scheme))
        error = await refusal(web.agent(scheme))
        assert isinstance(error, Unreachable)
        assert error.again
        assert error.reason == "it is unavailable (503): the limit of 1 connections is reached"
        await first.aclose()
        while await soon(behind.receive()):
            pass
        await settled()  # its place is free right behind its end
        again, _ = await connect(web.agent(scheme))
        await again.aclose()


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_an_agent_that_cannot_be_started_is_told_on_both_sides(
    scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def start() -> Transport:
        raise CommandNotFound("nobody")

    async with tidy_loop(), bridged(start) as web:
        error = await refusal(web.agent(scheme))
    assert isinstance(error, Unreachable)
    why = str(CommandNotFound("nobody"))
    assert error.reason == f"it replied with HTTP status 409: {why}"
    assert warnings(caplog) == [f"no agent was started: {why}"]


async def test_what_is_logged_of_a_failed_start_is_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def start() -> Transport:
        raise StartError("agent", "first\nsecond" + "x" * 1000)

    async with tidy_loop(), bridged(start) as web:
        await refusal(web.agent("ws"))
    [line] = warnings(caplog)
    assert "first\u240asecond" in line
    assert len(line) < 400


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [each for each in caplog.records if each.name == "dragoman.bridge"]
    return [each.getMessage() for each in found if each.levelno == logging.WARNING]


async def refusal(agent: RemoteAgent) -> ConnectionLost | StartError:
    try:
        transport = await ReconnectingRoute(agent).connect()
    except Unreachable as error:
        return error
    transport.send(HELLO + b"\n")
    try:
        return await lost(transport)
    finally:
        await transport.aclose()


async def test_an_agent_that_exits_says_how_but_not_what_it_printed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    code = "import os, sys; os.write(2, b'CANARY'); os.read(0, 1); sys.exit(3)"
    start = partial(StdioTransport.start, python(code))
    async with tidy_loop(), bridged(start) as web:
        transport = await ReconnectingRoute(web.agent("ws")).connect()
        transport.send(HELLO + b"\n")
        error = await lost(transport)
        await transport.aclose()
    assert isinstance(error, RemoteLost)
    assert error.reason == "the other side failed (the agent exited with code 3)"
    assert warnings(caplog) == ["a connection was closed: the agent exited with code 3"]


async def test_an_agent_that_exits_before_it_speaks_is_an_answer_over_http(
    caplog: pytest.LogCaptureFixture,
) -> None:
    start = partial(StdioTransport.start, python("raise SystemExit(3)"))
    async with tidy_loop(), bridged(start) as web:
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        async with httpx.AsyncClient(trust_env=False, verify=False, headers=headers) as http:
            answer = await http.post(f"http://127.0.0.1:{web.port}/acp", content=HELLO)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"] == "the agent exited with code 3"
    assert warnings(caplog) == ["a connection was closed: the agent exited with code 3"]


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_a_client_that_leaves_is_no_warning(
    scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    answering = f"import os; os.read(0, 65536); print({WELCOME.decode()!r}, flush=True)"
    start = partial(StdioTransport.start, python(f"{answering}; os.read(0, 1)"))
    async with tidy_loop(), bridged(start) as web:
        transport = await ReconnectingRoute(web.agent(scheme)).connect()
        transport.send(HELLO + b"\n")
        assert await soon(transport.receive())
        await transport.aclose()
    assert warnings(caplog) == []


@pytest.mark.parametrize(
    ("proxy", "agent", "told"),
    [
        ("sys.exit(3)", ECHO, "a proxy in front of the agent ended"),
        (ECHO, "sys.exit(3)", "the agent exited with code 3"),
        (ECHO, "print('x' * 5000)", "it ended"),
    ],
)
async def test_who_of_a_chain_ended_is_said_but_not_its_name(
    proxy: str, agent: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.transport.proxy_chain.MAX_FRAME_BYTES", 1000)
    hello = 'import sys; print(\'{"jsonrpc":"2.0","method":"x"}\', flush=True);'
    ends = [python(code if code == ECHO else hello + code) for code in (agent, proxy)]
    async with tidy_loop(), bridged(way_to(ends[0], ends[1:])) as web:
        transport = await ReconnectingRoute(web.agent("ws")).connect()
        error = await lost(transport)
        await transport.aclose()
    assert isinstance(error, RemoteLost)
    assert error.reason == f"the other side failed ({told})"


async def test_banners_and_broken_lines_of_an_agent_stay_here() -> None:
    memory = InMemory()
    async with tidy_loop(), bridged(memory.start) as web:
        transport = await ReconnectingRoute(web.agent("ws")).connect()
        agent = await memory.agent()
        agent.send(b'Welcome!\n\n  {"a":1}\r\nwarning: x\n{"b":2}\n')
        received = b""
        while received.count(b"\n") < 2:
            received += await soon(transport.receive())
        await transport.aclose()
    assert received == b'{"a":1}\n{"b":2}\n'


async def test_a_connection_that_nobody_reads_from_is_ended() -> None:
    memory = InMemory()
    async with tidy_loop(), bridged(memory.start, limits=BridgeLimits(unread=0.1)) as web:
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        async with httpx.AsyncClient(trust_env=False, verify=False, headers=headers) as http:
            url = f"http://127.0.0.1:{web.port}/acp"
            posting = asyncio.create_task(http.post(url, content=HELLO))
            agent = await memory.agent()
            agent.send(WELCOME + b"\n")
            assert (await posting).content == WELCOME
            while await soon(agent.receive()):
                pass


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_the_end_of_the_bridge_is_the_end_of_its_agents(scheme: str) -> None:
    memory = InMemory()
    async with tidy_loop():
        async with bridged(memory.start) as web:
            transport = await ReconnectingRoute(web.agent(scheme)).connect()
            transport.send(HELLO + b"\n")
            agent = await memory.agent()
            agent.send(WELCOME + b"\n")
            await soon(transport.receive())
        error = await lost(transport)
        await transport.aclose()
        while await soon(agent.receive()):
            pass
    assert isinstance(error, RemoteLost)
