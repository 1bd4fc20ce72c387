"""Streamable HTTP that goes wrong, against a server that does as it is told."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from support.https import make_certificate
from support.https import serving as serving_https
from support.peers import soon, tidy_loop

from dragoman.errors import (
    ConnectionClosed,
    ConnectionLost,
    FrameTooLarge,
    RemoteLost,
    StartError,
    Unreachable,
)
from dragoman.transport.reconnection import ReconnectingRoute, RouteTimeouts
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport
from dragoman.web.server.http_server import AsgiServer

HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n'
WELCOME = b'{"jsonrpc":"2.0","id":0,"result":{}}'
PROMPT = b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s1"}}\n'


@dataclass
class Play:
    """A server by hand: it answers as a test says, and streams what a test puts."""

    answers: dict[str, Callable[[Request, bytes], Response | None]] = field(
        default_factory=dict[str, Callable[[Request, bytes], Response | None]]
    )
    """By method of HTTP; None does what is usual."""
    requests: list[tuple[str, dict[str, str], bytes]] = field(
        default_factory=list[tuple[str, dict[str, str], bytes]]
    )
    streams: dict[str | None, asyncio.Queue[bytes | None]] = field(
        default_factory=dict[str | None, asyncio.Queue[bytes | None]]
    )
    times: list[float] = field(default_factory=list[float])
    """When each request came."""
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        self.requests.append((request.method, dict(request.headers), body))
        self.times.append(time.monotonic())
        answer = self.answers.get(request.method)
        made = None if answer is None else answer(request, body)
        response: ASGIApp = made or self._usual(request, body)
        await response(scope, receive, send)

    def _usual(self, request: Request, body: bytes) -> Response:
        if request.method == "GET":
            pieces = self.pieces(self.stream(request.headers.get("acp-session-id")))
            return StreamingResponse(pieces, media_type="text/event-stream")
        if b'"initialize"' in body:
            return Response(WELCOME, headers={"Acp-Connection-Id": "c1"})
        return Response(status_code=202)

    def stream(self, session: str | None) -> asyncio.Queue[bytes | None]:
        return self.streams.setdefault(session, asyncio.Queue())

    async def pieces(self, queue: asyncio.Queue[bytes | None]) -> AsyncGenerator[bytes]:
        yield b": hello\n\n"
        while (piece := await queue.get()) is not None:
            yield piece

    def posted(self) -> list[tuple[str, str | None]]:
        """Of each message, what it is and the session it was sent for."""
        sent = [(json.loads(b), h) for method, h, b in self.requests if method == "POST"]
        return [(m.get("method", "answer"), h.get("acp-session-id")) for m, h in sent]

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.requests) < count:
                await _a_moment()


async def _a_moment() -> None:
    await asyncio.sleep(0.01)


@asynccontextmanager
async def played(
    play: Play, *, say_hello: bool = True, timeouts: RouteTimeouts | None = None
) -> AsyncGenerator[Transport]:
    listener = socket.create_server(("127.0.0.1", 0))
    play.url = f"http://127.0.0.1:{listener.getsockname()[1]}/acp"
    server = AsgiServer(play, asyncio.Event())
    serving = asyncio.create_task(server.serve([listener]))
    await server.ready.wait()
    agent = RemoteAgent(play.url, {"X-Key": "CANARY"})
    transport = await ReconnectingRoute(agent, timeouts=timeouts).connect()
    try:
        if say_hello:
            transport.send(HELLO)
            assert await soon(transport.receive()) == WELCOME + b"\n"
        yield transport
    finally:
        await transport.aclose()
        for queue in play.streams.values():
            queue.put_nowait(None)
        server.end()
        await serving


async def lost(transport: Transport) -> ConnectionLost | StartError:
    while await soon(transport.receive()):
        pass
    return await transport.failure(spoke=False, printed="")


async def test_messages_carry_their_connection_their_session_and_the_headers() -> None:
    play = Play()
    async with tidy_loop(), played(play) as transport:
        transport.send(b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":{}}\n')
        await play.until(3)
        play.stream(None).put_nowait(b'data: {"id":7,"result":{"sessionId":"s1"}}\n\n')
        assert await soon(transport.receive()) == b'{"id":7,"result":{"sessionId":"s1"}}\n'
        await play.until(4)  # the stream of the session is opened by itself
        transport.send(PROMPT)
        play.stream("s1").put_nowait(b'data: {"id":"q","method":"ask","params":{}}\n\n')
        assert b'"ask"' in await soon(transport.receive())
        transport.send(b'{"jsonrpc":"2.0","id":"q","result":{}}\n')
        await play.until(6)
    assert play.posted() == [
        ("initialize", None),
        ("session/new", None),
        ("session/prompt", "s1"),
        ("answer", "s1"),
    ]
    behind = [headers for _, headers, _ in play.requests[1:]]
    assert {headers["acp-connection-id"] for headers in behind} == {"c1"}
    assert {headers["x-key"] for _, headers, _ in play.requests} == {"CANARY"}
    assert [method for method, *_ in play.requests].count("GET") == 2
    assert play.requests[-1][0] == "DELETE"


async def test_cookies_are_kept_for_the_connection_and_the_next_one() -> None:
    def with_cookie(request: Request, body: bytes) -> Response | None:
        if b'"initialize"' not in body:
            return None
        headers = {"Acp-Connection-Id": "c1", "Set-Cookie": "node=seven; Path=/"}
        return Response(WELCOME, headers=headers)

    play = Play({"POST": with_cookie})
    async with tidy_loop(), played(play, say_hello=False):
        route = ReconnectingRoute(RemoteAgent(play.url))
        for _ in range(2):
            transport = await route.connect()
            transport.send(HELLO)
            await soon(transport.receive())
            await transport.aclose()
    cookies = [headers.get("cookie") for _, headers, _ in play.requests]
    assert cookies == [None, *["node=seven"] * 5]


async def test_cookies_without_end_are_not_kept() -> None:
    """Else each message would carry them all, and so would the memory."""
    numbers = count()

    def with_cookies(request: Request, body: bytes) -> Response | None:
        response = Response(WELCOME, headers={"Acp-Connection-Id": "c1"})
        for number in islice(numbers, 20):
            response.set_cookie(f"c{number}", "v" * 1000)
        return response

    play = Play({"POST": with_cookies})
    async with tidy_loop(), played(play) as transport:
        for number in range(4):
            transport.send(b'{"jsonrpc":"2.0","id":"%d","result":{}}\n' % number)
        await play.until(6)
    sent = [headers.get("cookie", "") for _, headers, _ in play.requests]
    assert 10_000 < len(sent[-1]) < 20_000
    assert sent[-1].startswith("c0=vvv")


async def test_a_cookie_that_is_set_again_takes_no_more_room() -> None:
    numbers = count()

    def with_cookie(request: Request, body: bytes) -> Response | None:
        response = Response(WELCOME, headers={"Acp-Connection-Id": "c1"})
        response.set_cookie("node", f"{next(numbers)}".rjust(9_000, "v"))
        return response

    play = Play({"POST": with_cookie})
    async with tidy_loop(), played(play) as transport:
        for number in range(3):
            transport.send(b'{"jsonrpc":"2.0","id":"%d","result":{}}\n' % number)
        await play.until(5)
    posted = [headers.get("cookie", "") for method, headers, _ in play.requests if method == "POST"]
    assert [each[-1:] for each in posted] == ["", "0", "1", "2"]


async def test_only_answers_to_our_requests_open_streams() -> None:
    """A server that sends answers nobody asked for must not take all our connections."""
    play = Play()
    async with tidy_loop(), played(play) as transport:
        transport.send(b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":{}}\n')
        await play.until(3)
        answers = [b'data: {"id":7,"result":{"sessionId":"s%d"}}\n\n' % each for each in range(50)]
        play.stream(None).put_nowait(b"".join(answers))
        for _ in answers:
            await soon(transport.receive())
        transport.send(PROMPT.replace(b"s1", b"s0"))
        await play.until(5)
    opened = [h.get("acp-session-id") for method, h, _ in play.requests if method == "GET"]
    assert opened == [None, "s0"]


async def test_a_session_that_no_header_can_name_is_the_end() -> None:
    play = Play()
    async with tidy_loop(), played(play) as transport:
        transport.send(b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":{}}\n')
        await play.until(3)
        play.stream(None).put_nowait('data: {"id":7,"result":{"sessionId":"é"}}\n\n'.encode())
        error = await lost(transport)
    assert isinstance(error, RemoteLost)
    assert "a session that no header can name" in str(error)


async def test_a_stream_of_a_session_not_known_yet_is_asked_for_again() -> None:
    known: list[str] = []

    def only_when_known(request: Request, body: bytes) -> Response | None:
        session = request.headers.get("acp-session-id")
        return None if session is None or session in known else Response(status_code=404)

    def learn(request: Request, body: bytes) -> None:
        if b"session/load" in body:
            known.append("s1")

    play = Play({"GET": only_when_known, "POST": learn})
    async with tidy_loop(), played(play) as transport:
        transport.send(PROMPT.replace(b"prompt", b"load"))
        play.stream("s1").put_nowait(b'data: {"method":"told"}\n\n')
        assert await soon(transport.receive()) == b'{"method":"told"}\n'


async def test_the_stream_of_an_idle_session_may_end_and_is_opened_again() -> None:
    play = Play()
    async with tidy_loop(), played(play) as transport:
        note = b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}\n'
        transport.send(note)
        await play.until(4)
        play.stream("s1").put_nowait(None)
        await play.until(5)
        transport.send(note)
        await play.until(6)
        play.stream("s1").put_nowait(b'data: {"method":"told"}\n\n')
        assert await soon(transport.receive()) == b'{"method":"told"}\n'


ACKNOWLEDGED = b'data: {"jsonrpc":"2.0","id":1,"result":{"messageId":"m"}}\n\n'


async def test_the_stream_of_an_acknowledged_prompt_is_opened_again_by_itself() -> None:
    play = Play()
    async with tidy_loop(), played(play) as transport:
        transport.send(PROMPT)
        await play.until(4)
        for told in (ACKNOWLEDGED, b'data: {"method":"one"}\n\n', b'data: {"method":"two"}\n\n'):
            play.stream("s1").put_nowait(told)
            play.stream("s1").put_nowait(None)
        received = [await soon(transport.receive()) for _ in range(3)]
    assert received[1:] == [b'{"method":"one"}\n', b'{"method":"two"}\n']


async def test_a_stream_that_tells_nothing_is_opened_again_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.transport.http._LATER", (0.05, 0.1, 0.2, 0.4))
    play = Play()
    async with tidy_loop(), played(play) as transport:
        transport.send(PROMPT)
        await play.until(4)
        play.stream("s1").put_nowait(ACKNOWLEDGED)
        await soon(transport.receive())
        for _ in range(50):
            play.stream("s1").put_nowait(None)
        await play.until(8)
    waited = [later - earlier for earlier, later in pairwise(play.times[4:8])]
    assert all(seconds >= pause for seconds, pause in zip(waited, (0.1, 0.2, 0.4), strict=True))


@pytest.mark.parametrize("status", [404, 500])
async def test_a_session_whose_stream_is_gone_is_the_end_for_whoever_asks_there(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.transport.http._LATER", (0.2, 0.2))
    play = Play()
    async with tidy_loop(), played(play) as transport:
        transport.send(PROMPT)
        await play.until(4)
        play.stream("s1").put_nowait(ACKNOWLEDGED)
        await soon(transport.receive())
        play.answers["GET"] = lambda request, body: Response(status_code=status)
        play.stream("s1").put_nowait(None)
        await play.until(5)
        transport.send(PROMPT)
        error = await lost(transport)
    assert isinstance(error, RemoteLost)


async def test_a_stream_whose_head_never_comes_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    play = Play()
    async with tidy_loop(), played(play) as transport:
        monkeypatch.setattr("dragoman.transport.http.CONNECT_SECONDS", 0.2)
        never: Any = silent
        play.answers["GET"] = lambda request, body: never
        transport.send(PROMPT)
        error = await lost(transport)
    assert isinstance(error, RemoteLost)
    assert error.reason == "it did not open an event stream"


@pytest.mark.parametrize("session", [None, "s1"], ids=["connection", "session"])
async def test_a_stream_that_ends_while_something_is_asked_is_the_end(session: str | None) -> None:
    play = Play()
    async with tidy_loop(), played(play) as transport:
        transport.send(PROMPT)
        await play.until(4)
        play.stream(session).put_nowait(b'data: {"half": ')
        play.stream(session).put_nowait(None)
        error = await lost(transport)
    assert isinstance(error, RemoteLost)
    assert error.reason.startswith("the other side closed")


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (404, RemoteLost, "has forgotten the connection"),
        (413, RemoteLost, "rejected a message with HTTP status 413"),
        (401, Unreachable, "rejected the credentials"),
    ],
)
async def test_a_message_that_is_not_taken_is_the_end(
    status: int, kind: type[Exception], words: str
) -> None:
    def refuse(request: Request, body: bytes) -> Response | None:
        return None if b'"initialize"' in body else Response(status_code=status)

    async with tidy_loop(), played(Play({"POST": refuse})) as transport:
        transport.send(PROMPT)
        error = await lost(transport)
    assert isinstance(error, kind)
    assert words in str(error)
    assert "CANARY" not in str(error)


@pytest.mark.parametrize(
    ("response", "again", "words"),
    [
        (Response(status_code=503), True, "is unavailable (503)"),
        (
            Response(b'{"error":{"message":"there are 3 connections already"}}', 503),
            True,
            "it is unavailable (503): there are 3 connections already",
        ),
        (Response(WELCOME), False, "has no Acp-Connection-Id"),
        (
            Response(status_code=307, headers={"Location": "http://evil.example/?k=CANARY"}),
            False,
            "it redirects to http://evil.example, and headers are not sent there",
        ),
        (Response(status_code=308, headers={"Location": "/x"}), False, "to another path"),
    ],
)
async def test_a_refusal_at_the_door_says_what_to_do(
    response: Response, again: bool, words: str
) -> None:
    play = Play({"POST": lambda request, body: response})
    async with tidy_loop(), played(play, say_hello=False) as transport:
        transport.send(HELLO)
        error = await lost(transport)
    assert isinstance(error, Unreachable)
    assert error.again == again
    assert words in str(error)
    assert "CANARY" not in str(error)


async def test_a_large_reason_is_not_read() -> None:
    body = b'{"error":{"message":"much"},"x":"%b"}' % (b"y" * 5000)
    play = Play({"POST": lambda request, sent: Response(body, 409)})
    async with tidy_loop(), played(play, say_hello=False) as transport:
        transport.send(HELLO)
        error = await lost(transport)
    assert isinstance(error, Unreachable)
    assert error.reason == "it replied with HTTP status 409"


async def test_a_reason_that_does_not_come_is_done_without() -> None:
    play, timeouts = Play(), RouteTimeouts(reason=0.05)
    endless = play.pieces(play.stream("reason"))
    play.answers["POST"] = lambda request, sent: StreamingResponse(endless, 409)
    async with tidy_loop(), played(play, say_hello=False, timeouts=timeouts) as transport:
        transport.send(HELLO)
        error = await lost(transport)
    assert isinstance(error, Unreachable)
    assert error.reason == "it replied with HTTP status 409"


async def test_nobody_at_the_address_may_come_back() -> None:
    transport = await ReconnectingRoute(RemoteAgent("http://127.0.0.1:1/acp")).connect()
    transport.send(HELLO)
    error = await lost(transport)
    await transport.aclose()
    assert isinstance(error, Unreachable)
    assert error.again
    assert str(error) == "could not reach http://127.0.0.1:1/acp: connection refused"


async def test_a_wrong_certificate_is_not_trusted_and_nothing_is_sent(tmp_path: Path) -> None:
    with serving_https(make_certificate(tmp_path)) as server:
        transport = await ReconnectingRoute(RemoteAgent(f"{server.url}/acp")).connect()
        transport.send(HELLO)
        error = await lost(transport)
        await transport.aclose()
    assert "its certificate is not trusted (self" in str(error)
    assert server.asked == []


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 502 no\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")
        transport = await ReconnectingRoute(RemoteAgent("http://agent.example/acp")).connect()
        transport.send(HELLO)
        error = await lost(transport)
        await transport.aclose()
    assert asked[0].startswith(b"POST http://agent.example/acp HTTP/1.1\r\n")
    assert "it is unavailable (502)" in str(error)


async def test_a_proxy_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://me:CANARY@127.0.0.1:1")
    with pytest.raises(Unreachable, match="SOCKS is not supported") as caught:
        await ReconnectingRoute(RemoteAgent("http://host.example/acp")).connect()
    assert "CANARY" not in str(caught.value)


async def test_a_frame_over_the_limit_on_one_stream_ends_them_all() -> None:
    play = Play()
    async with tidy_loop(), played(play) as transport:
        transport.send(PROMPT)
        await play.until(4)
        for _ in range(66):
            play.stream("s1").put_nowait(b"data: " + b"x" * (1 << 20))
        for _ in range(64):
            play.stream(None).put_nowait(b'data: {"a":1}\n\n')
        with pytest.raises(FrameTooLarge):
            await asyncio.wait_for(to_the_end(transport), 30)


async def to_the_end(transport: Transport) -> None:
    while await transport.receive():
        pass


async def test_no_header_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with played(Play()) as transport:
        transport.send(PROMPT)
    assert "CANARY" not in caplog.text


async def test_closing_is_not_held_up_by_a_server_that_does_not_answer() -> None:
    play = Play()
    async with tidy_loop(), played(play, timeouts=RouteTimeouts(close=0.1)) as transport:
        never: Any = StreamingResponse(play.pieces(asyncio.Queue()))
        play.answers["POST"] = play.answers["DELETE"] = lambda request, body: never
        transport.send(PROMPT)
        await soon(transport.aclose())
        assert isinstance(await transport.failure(spoke=True, printed=""), ConnectionClosed)
