"""Agents that run elsewhere, examined: through our own bridge, and at doors that are shut."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from support.bridges import TOKEN, bridged
from support.https import make_certificate
from support.https import serving as serving_https
from support.peers import soon, tidy_loop
from support.server_process import free_port
from support.socket_server import frame, socket_server

from dragoman.bridge.http_connections import HttpConnection
from dragoman.conformance.doctor import front_door
from dragoman.conformance.doctor.check_up import examine
from dragoman.conformance.doctor.doctor_report import Report
from dragoman.schema import v1
from dragoman.testing import ScriptedAgent
from dragoman.testing import faults as f
from dragoman.testing.demo.demo_agent import DemoAgent
from dragoman.testing.steps import say
from dragoman.transport.http_routing import Outline
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport
from dragoman.web.failures import RequestFailed
from dragoman.web.server.http_server import AsgiServer


@pytest.fixture(params=["ws", "http"])
def scheme(request: pytest.FixtureRequest) -> str:
    return request.param


def found(report: Report) -> dict[str, tuple[str, str]]:
    return {finding.check: (finding.grade, finding.text) for finding in report.findings}


def first(report: Report) -> tuple[str, str, str]:
    """The only finding of an examination that could not begin."""
    [finding] = report.findings
    return finding.check, finding.grade, finding.text


async def examined(
    agent: ScriptedAgent | DemoAgent,
    scheme: str,
    *,
    token: str | None = TOKEN,
    files: Literal["here", "there"] | None = None,
    seconds: float = 20.0,
) -> Report:
    async def start() -> Transport:
        return agent.connect()

    async with tidy_loop(), bridged(start) as web:
        url = f"{scheme}://127.0.0.1:{web.port}/acp"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await examine(RemoteAgent(url, headers, files), name="afar", seconds=seconds)


async def test_a_well_agent_behind_the_bridge_passes_every_check_that_can_be_made(
    scheme: str,
) -> None:
    report = await examined(DemoAgent(), scheme)
    checks = found(report)
    of_processes = {"complaints", "exit", "nothing left"}
    skipped = {check for check, (grade, _) in checks.items() if grade == "skip"}
    assert skipped == of_processes | ({"broken line"} if scheme == "http" else set())
    assert {checks[check][1] for check in of_processes} == {"the agent is remote"}
    assert {grade for grade, _ in checks.values()} == {"pass", "skip"}, checks
    done = {"reach", "encryption", "strangers", "handshake", "version", "prompt", "cancel"}
    assert done | {"load", "resume", "delete", "reach again"} <= set(checks)
    assert checks["strangers"][1] == "it rejects connections without our headers"
    assert report.command.startswith(f"{scheme}://127.0.0.1:")
    assert (report.protocol_version, report.result) == (1, "pass")


async def test_a_token_that_is_refused_is_told_and_never_shown(scheme: str) -> None:
    report = await examined(DemoAgent(), scheme, token="CANARY")
    check, grade, text = first(report)
    assert (check, grade) == ("reach", "fail")
    assert "it rejected the credentials in the headers (401)" in text
    assert "CANARY" not in repr(report)


async def test_nobody_at_the_address_is_told(scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:{free_port()}/acp"
    report = await examine(RemoteAgent(url), name="afar", seconds=20)
    assert first(report) == ("reach", "fail", f"could not reach {url}: connection refused")


@pytest.mark.parametrize("secure", ["wss", "https"])
async def test_a_certificate_that_is_not_trusted_is_told(secure: str, tmp_path: Path) -> None:
    with serving_https(make_certificate(tmp_path)) as server:
        url = server.url.replace("https", secure, 1)
        report = await examine(RemoteAgent(f"{url}/acp"), name="afar", seconds=20)
    check, grade, text = first(report)
    assert (check, grade) == ("reach", "fail")
    assert "its certificate is not trusted" in text


async def test_an_agent_that_answers_nothing_is_not_waited_for(scheme: str) -> None:
    deaf = ScriptedAgent(answers={"initialize": f.NEVER})
    report = await examined(deaf, scheme, seconds=0.5)
    assert first(report) == (
        "reach",
        "fail",
        "a response to initialize did not come within 0.5 s",
    )


async def test_an_agent_that_dies_in_its_turn_is_told(scheme: str) -> None:
    report = await examined(ScriptedAgent([say("well…"), f.crash(7)]), scheme)
    checks = found(report)
    assert checks["session"][0] == "pass"
    assert checks["prompt"][0] == "fail"
    assert "the connection to" in checks["prompt"][1]
    assert checks["unknown method"] == ("skip", "the agent has exited")
    assert report.result == "fail"


@pytest.mark.parametrize(("files", "is_scratch"), [("here", True), ("there", False), (None, False)])
async def test_a_scratch_folder_is_only_for_an_agent_that_sees_it(
    files: Literal["here", "there"] | None, is_scratch: bool
) -> None:
    agent = ScriptedAgent([say("ready")])
    await examined(agent, "ws", files=files)
    [cwd] = {params["cwd"] for method, params in agent.received if method == "session/new"}
    assert ("dragoman-doctor-" in cwd) == is_scratch
    assert is_scratch or cwd == "/tmp"


async def test_a_choice_that_an_agent_may_remember_for_all_its_sessions_is_left_alone() -> None:
    model = v1.SessionConfigSelect(
        id="model",
        name="Model",
        category="model",
        current_value="small",
        options=[
            v1.SessionConfigSelectOption(value=name, name=name) for name in ("small", "large")
        ],
    )
    agent = ScriptedAgent([say("ready")], config_options=[model])
    checks = found(await examined(agent, "ws"))
    assert checks["modes"][0] == "skip"
    assert "session/set_config_option" not in {method for method, _ in agent.received}


async def test_a_session_that_the_http_server_itself_refuses_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take = HttpConnection.take

    async def strict(
        connection: HttpConnection, frame: bytes, message: Outline, session: str | None
    ) -> None:
        if session == "conformance-no-such-session":
            raise RequestFailed(404, "unknown_session", "there is no such session")
        await take(connection, frame, message, session)

    monkeypatch.setattr(HttpConnection, "take", strict)
    checks = found(await examined(ScriptedAgent([say("ready")]), "http"))
    assert checks["unknown session"][0] == "pass"
    assert "fail" not in {grade for grade, _ in checks.values()}


# ── the door ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "grade"),
    [
        ("wss://agents.example/acp", "pass"),
        ("https://agents.example/acp", "pass"),
        ("ws://localhost:1/acp", "pass"),
        ("http://[::1]:1/acp", "pass"),
        ("http://127.0.0.2/acp", "pass"),
        ("ws://agents.example/acp", "warn"),
        ("http://192.168.0.7/acp", "warn"),
    ],
)
def test_what_goes_over_a_network_in_the_clear_is_a_warning(url: str, grade: str) -> None:
    assert front_door.encryption(RemoteAgent(url)).grade == grade


class OpenDoor:
    """Lets in whoever has a key, and answers everybody else with a status."""

    def __init__(self, status: int = 200) -> None:
        self._status = status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        said = await request.body()
        key = json.loads(said)["id"] if b'"initialize"' in said else None
        if request.method == "GET":
            response = Response(b": hello\n\n", media_type="text/event-stream")
        elif self._status != 200 and "x-key" not in request.headers:
            response = Response(status_code=self._status)
        else:
            answer = {"jsonrpc": "2.0", "id": key, "result": {"protocolVersion": 1}}
            body = b"" if key is None else json.dumps(answer).encode()
            response = Response(body, headers={"Acp-Connection-Id": "c1"})
        await response(scope, receive, send)


@asynccontextmanager
async def door(status: int = 200) -> AsyncGenerator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = AsgiServer(OpenDoor(status), asyncio.Event())
    serving = asyncio.create_task(server.serve([listener]))
    await server.ready.wait()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/acp"
    finally:
        server.end()
        await serving


@pytest.mark.parametrize(
    ("status", "headers", "grade", "words"),
    [
        (200, {}, "warn", "it requires no credentials"),
        (200, {"X-Key": "k"}, "warn", "even without our headers"),
        (403, {"X-Key": "k"}, "pass", "rejects connections without our headers"),
        (401, {"X-Key": "k"}, "pass", "rejects connections without our headers"),
        (404, {"X-Key": "k"}, "skip", "access without our headers: could not reach"),
        (503, {"X-Key": "k"}, "skip", "it is unavailable (503)"),
    ],
)
async def test_a_door_that_is_open_to_strangers_is_a_warning(
    status: int, headers: dict[str, str], grade: str, words: str
) -> None:
    async with tidy_loop(), door(status) as url:
        outcome = await front_door.strangers(RemoteAgent(url, headers), 5.0)
    assert (outcome.grade, words in outcome.text) == (grade, True), outcome.text


@pytest.mark.parametrize(
    ("close", "grade", "words"),
    [
        (
            frame((1008).to_bytes(2) + b"who are you?", 0x8),
            "pass",
            "rejects connections without our headers",
        ),
        (frame((1011).to_bytes(2) + b"it crashed", 0x8), "skip", "failed (it crashed)"),
        (frame((1000).to_bytes(2), 0x8), "skip", "closed it"),
        (None, "skip", "it was cut"),
    ],
    ids=["policy", "a crash", "no reason", "cut"],
)
async def test_a_door_that_is_shut_again_is_known_to_be_shut_only_when_it_says_why(
    close: bytes | None, grade: str, words: str
) -> None:
    async with tidy_loop(), socket_server() as server:
        agent = RemoteAgent(server.url, {"X-Key": "k"})
        checking = asyncio.create_task(front_door.strangers(agent, 5.0))
        stranger = await server.connection()
        assert "X-Key" not in server.requests[0].headers
        if close is None:
            stranger.writer.transport.abort()
        else:
            stranger.writer.write(close)
        outcome = await soon(checking)
    assert (outcome.grade, words in outcome.text) == (grade, True), outcome.text
