"""Connections that say nothing, or not all of it: they are not waited for, and whoever has the
token gets in however many there are."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from support.clients import until
from support.descriptor_shortage import no_descriptors
from support.raw_http import request
from support.server_process import PreparedProcess, ServerProcess
from support.serving import STREAM, TOKEN, client

from dragoman.web.routing.route import Route, Table
from dragoman.web.server.connections import Connections
from dragoman.web.server.guard import ROUTE, AllowedHosts, Guard
from dragoman.web.server.http_server import AsgiServer

HALF_A_HEAD = b"GET / HTTP/1.1\r\n"


# ── a real server ─────────────────────────────────────────────────────────────────────────────


@contextmanager
def _half_heads(port: int, count: int) -> Generator[None]:
    """So many connections with the first line of a request; some may be cut off meanwhile."""
    held: list[socket.socket] = []
    try:
        for _ in range(count):
            held.append(socket.create_connection(("127.0.0.1", port), 30))
            held[-1].sendall(HALF_A_HEAD)
        yield
    finally:
        for connection in held:
            connection.close()


def _running(server: ServerProcess, told: Path) -> str:
    """A session in a turn that ends once there is that file."""
    with server.http as http:
        body = {"agent": "until_told", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=body).json()["id"]
        http.post(f"/api/sessions/{session_id}/prompt", json={"text": str(told)})
    return session_id


@pytest.mark.parametrize(
    ("limit", "count"),
    [(128, 300), pytest.param(1_024, 1_500, marks=pytest.mark.soak)],
)
def test_silent_connections_neither_lock_the_owner_out_nor_end_a_turn(
    tmp_path: Path, limit: int, count: int
) -> None:
    told = tmp_path / "told"
    with closing(PreparedProcess(tmp_path, f"ulimit -n {limit}")) as server:
        session_id = _running(server, told)
        path = f"/api/sessions/{session_id}/events"
        with _half_heads(server.port, count):
            for _ in range(20):  # each with a connection of its own
                with server.http as http:
                    assert http.get(f"/api/sessions/{session_id}").json()["status"] == "running"
            with server.http as http, http.stream("GET", path, headers=STREAM) as response:
                told.touch()
                ended = next(line for line in response.iter_lines() if '"turn_ended"' in line)
        assert '"end_turn"' in ended
        with server.http as http:
            assert http.get(f"/api/sessions/{session_id}").json()["status"] == "idle"
        log = server.errors.read_text()
        assert "taken over" not in log
        assert "Too many open files" not in log


def _crowded(server: ServerProcess) -> str:
    """The agent's error when it is refused another terminal, while its others stay open."""
    with server.http as http:
        body = {"agent": "crowding", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=body).json()["id"]
        http.post(f"/api/sessions/{session_id}/prompt", json={"text": "go"})
        path = f"/api/sessions/{session_id}/events"
        with http.stream("GET", path, headers=STREAM) as response:
            refusals = ("could not start", "terminals per session is reached")
            lines = response.iter_lines()
            return next(line for line in lines if any(each in line for each in refusals))


def test_terminals_leave_descriptors_for_the_owner_and_new_agents(tmp_path: Path) -> None:
    with closing(PreparedProcess(tmp_path, "ulimit -n 256", "--exec")) as server:
        told = [_crowded(server) for _ in range(3)]
        assert all("file descriptors" in line for line in told), told
        # Half of them are for connections. Counted first: a server that has none does not answer.
        assert 256 - len(os.listdir(f"/proc/{server.process.pid}/fd")) >= 128
        with _half_heads(server.port, 300):
            for _ in range(10):  # each with a connection of its own
                with server.http as http:
                    assert http.get("/api/sessions").is_success
            told = tmp_path / "told"
            told.touch()
            _running(server, told)
        log = server.errors.read_text()
        assert "no free file descriptor" not in log
        assert "Too many open files" not in log


# ── one in this process, with limits of its own ───────────────────────────────────────────────


async def _never(**given: object) -> None:
    """The app answers by itself."""


ROUTES = [
    Route(method="GET", path="/owned", handler=_never, summary=""),
    Route(method="GET", path="/slow", handler=_never, summary=""),
    Route(method="GET", path="/large", handler=_never, summary="", public=True),
]


@dataclass
class Visitor:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def say(self, said: bytes) -> None:
        self.writer.write(said)

    async def hear(self, expected: bytes = b"yes") -> bytes:
        return await self.reader.readuntil(expected)

    async def is_cut_off(self) -> None:
        with suppress(ConnectionResetError):
            while await self.reader.read(65536):
                pass


@dataclass
class House:
    """`going_on` lets the slow requests have their answers."""

    port: int
    running: AsgiServer
    going_on: asyncio.Event = field(default_factory=asyncio.Event)
    visitors: list[Visitor] = field(default_factory=list[Visitor])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope[ROUTE].path
        if path == "/slow":
            await self.going_on.wait()
        body = bytes(16_000_000) if path == "/large" else b"yes"
        await Response(body)(scope, receive, send)

    @property
    def connections(self) -> int:
        return len(self.running.server_state.connections)

    async def connect(self, said: bytes = b"") -> Visitor:
        """Someone who says this, and stays."""
        visitor = Visitor(*await asyncio.open_connection("127.0.0.1", self.port))
        self.visitors.append(visitor)
        visitor.say(said)
        return visitor

    def request(self, path: str, token: str = TOKEN) -> bytes:
        headers = {"host": f"127.0.0.1:{self.port}", "authorization": f"Bearer {token}"}
        return request("GET", path, headers)


@asynccontextmanager
async def house(connections: Connections) -> AsyncGenerator[House]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await found(scope, receive, send)

    guard = Guard(app, Table(ROUTES), token=TOKEN, hosts=AllowedHosts("127.0.0.1", port))
    running = AsgiServer(guard, asyncio.Event(), connections=connections)
    found = House(port, running)
    serving = asyncio.create_task(running.serve([listener]))
    await running.ready.wait()
    try:
        yield found
    finally:
        found.going_on.set()
        for visitor in found.visitors:
            visitor.writer.close()
        running.end()
        await serving


@pytest.mark.parametrize(
    "said", [b"", b"G", HALF_A_HEAD, HALF_A_HEAD + b"host: x\r\n", b"\x16\x03\x01\x02\x00"]
)
async def test_a_connection_without_a_whole_head_is_ended(said: bytes) -> None:
    async with house(Connections(100, head_seconds=0.1)) as web:
        await (await web.connect(said)).is_cut_off()
        await until(lambda: web.connections == 0)


async def test_a_head_that_comes_in_drops_has_no_more_time() -> None:
    async with house(Connections(100, head_seconds=0.1)) as web:
        visitor = await web.connect()
        cut = asyncio.create_task(visitor.is_cut_off())
        while not cut.done():
            visitor.say(b"a")
            await asyncio.wait([cut], timeout=0.01)


async def test_the_next_head_on_a_connection_has_no_more_time_than_the_first() -> None:
    async with house(Connections(100, head_seconds=0.1)) as web:
        visitor = await web.connect(web.request("/owned"))
        await visitor.hear()
        visitor.say(HALF_A_HEAD)
        await visitor.is_cut_off()


async def test_an_answer_may_take_longer_than_a_head() -> None:
    async with house(Connections(100, head_seconds=0.1)) as web:
        slow = await web.connect(web.request("/slow"))
        await (await web.connect(HALF_A_HEAD)).is_cut_off()  # which came later
        web.going_on.set()
        assert (await slow.hear()).startswith(b"HTTP/1.1 200")


async def test_the_oldest_strangers_go_when_there_is_no_room() -> None:
    async with house(Connections(50)) as web, client(web.port) as http:
        strangers = [await web.connect(HALF_A_HEAD) for _ in range(200)]
        for _ in range(10):
            assert (await http.get("/owned", headers={"connection": "close"})).text == "yes"
        await until(lambda: web.connections <= 50)
        for oldest in strangers[:140]:
            await oldest.is_cut_off()
        assert not strangers[-1].reader.at_eof()


async def test_a_burst_of_strangers_takes_few_descriptors_beyond_the_cap() -> None:
    async with house(Connections(50)) as web:
        with ExitStack() as held:
            # All of them wait before the server hears of the first: few enough for any backlog.
            for _ in range(120):
                stranger = held.enter_context(socket.socket())
                stranger.connect(("127.0.0.1", web.port))
            before = most = _open_descriptors()
            heard = asyncio.create_task(_answer_to_the_owner(web))
            while not heard.done():
                await asyncio.sleep(0)
                most = max(most, _open_descriptors())
    assert 50 <= most - before <= 80


async def _answer_to_the_owner(web: House) -> bytes:
    return await (await web.connect(web.request("/owned"))).hear()


def _open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


async def test_strangers_with_whole_heads_hold_no_places() -> None:
    """Those with a wrong token are listened to for a moment, for the body they may send."""
    async with house(Connections(50)) as web, client(web.port) as http:
        headers = {"host": f"127.0.0.1:{web.port}", "content-length": "5"}
        said = request("POST", "/owned", headers)
        for _ in range(200):
            await web.connect(said)
        assert (await http.get("/owned")).text == "yes"


async def test_a_connection_that_was_used_with_the_token_outlasts_strangers() -> None:
    async with house(Connections(50)) as web:
        owner = await web.connect()
        for _ in range(3):
            owner.say(web.request("/owned"))
            await owner.hear()
            for _ in range(120):
                await web.connect(HALF_A_HEAD)


class Line(asyncio.Transport):
    """A connection of which only its end is looked at."""

    is_cut = False

    def abort(self) -> None:
        self.is_cut = True


def crowded() -> Connections:
    """With all places but a few in use."""
    connections = Connections(40)
    for _ in range(38):
        connections.came(line := Line())
        assert connections.admit(line)
    return connections


@pytest.mark.parametrize("said", ["nothing", "half", "all"])
async def test_whoever_has_asked_gets_an_answer_however_many_come_later(said: str) -> None:
    connections = crowded()
    connections.came(owner := Line())
    connections.asked(owner)
    for _ in range(500):
        connections.came(line := Line())
        if said != "nothing":
            connections.began(line)
        if said == "all":
            connections.asked(line)
            connections.answered(line)
    assert not owner.is_cut
    assert connections.admit(owner)


@pytest.mark.parametrize("before", [True, False])
async def test_half_a_head_is_not_worth_more_than_silence(before: bool) -> None:
    connections = crowded()
    for _ in range(120):
        connections.came(line := Line())
        if before:
            connections.began(line)
    connections.came(owner := Line())
    for _ in range(10):
        connections.came(Line())
    assert not owner.is_cut


async def test_strangers_who_ask_are_bounded_too() -> None:
    connections = crowded()
    lines = [Line() for _ in range(500)]
    for line in lines:
        connections.came(line)
        connections.asked(line)
    assert sum(not line.is_cut for line in lines) < 40


async def test_too_many_requests_with_the_token_are_refused_in_words() -> None:
    async with house(Connections(4)) as web, client(web.port) as http:
        slow = [await web.connect(web.request("/slow")) for _ in range(4)]
        response = await http.get("/owned")
        while response.is_success:  # not all of the others have been heard yet
            response = await http.get("/owned")
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "too_many_connections"
        web.going_on.set()
        for each in slow:
            assert (await each.hear()).startswith(b"HTTP/1.1 200")
        assert (await http.get("/owned")).text == "yes"


async def test_strangers_make_room_when_there_is_no_descriptor_for_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with house(Connections(1_000)) as web:
        strangers = [await web.connect(HALF_A_HEAD) for _ in range(20)]
        with socket.socket() as waiting:
            waiting.setblocking(False)
            with no_descriptors():
                with suppress(BlockingIOError):
                    waiting.connect(("127.0.0.1", web.port))
                for each in strangers:
                    await each.is_cut_off()
            assert (await (await web.connect(web.request("/owned"))).hear()).endswith(b"yes")
    assert len([each for each in caplog.records if "descriptor" in each.message]) == 1


async def test_an_answer_that_nobody_reads_is_not_kept() -> None:
    async with house(Connections(100, stall_seconds=0.2)) as web:
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.connect(("127.0.0.1", web.port))
            silent.sendall(web.request("/large"))
            await until(lambda: web.connections == 1)
            await until(lambda: web.connections == 0)
