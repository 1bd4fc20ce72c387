"""A WebSocket that goes wrong: at the door, on the way, and in the middle of a frame."""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from support.clients import until
from support.cost import resident_bytes
from support.https import make_certificate
from support.peers import ignore, refuse, settled, soon, tidy_loop
from support.socket_server import SocketSide, by_websocket, frame, head, socket_server
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from dragoman.errors import ConnectionLost, FrameTooLarge, RemoteLost, StartError, Unreachable
from dragoman.rpc import Peer
from dragoman.transport.reconnection import ReconnectingRoute, RouteTimeouts
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport


async def lost(transport: Transport) -> ConnectionLost | StartError:
    while await soon(transport.receive()):
        pass
    return await soon(transport.failure(spoke=True, printed=""))


async def refused(agent: RemoteAgent, timeouts: RouteTimeouts | None = None) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        await soon(ReconnectingRoute(agent, timeouts=timeouts).connect())
    return caught.value


# ── at the door ───────────────────────────────────────────────────────────────────────────────


async def test_headers_and_the_token_behind_the_address_are_sent() -> None:
    async with tidy_loop(), socket_server() as server:
        agent = RemoteAgent(f"{server.url}?a=b#token=t0ken", {"X-Team": "blue"})
        transport = await ReconnectingRoute(agent).connect()
        await transport.aclose()
    sent = server.requests[0]
    assert sent.path == "/acp?a=b"
    assert sent.headers["Authorization"] == "Bearer t0ken"
    assert sent.headers["X-Team"] == "blue"


async def test_cookies_come_back_on_the_next_connection() -> None:
    def with_cookie(protocol: ServerProtocol, request: Request) -> Response:
        response = protocol.accept(request)
        response.headers["Set-Cookie"] = "node=seven; Path=/"
        response.headers["Set-Cookie"] = "elsewhere=1; Domain=example.com"
        return response

    async with tidy_loop(), socket_server(with_cookie) as server:
        route = ReconnectingRoute(RemoteAgent(server.url, {"Cookie": "mine=1"}))
        for _ in range(2):
            await (await route.connect()).aclose()
    cookies = [request.headers.get("Cookie") for request in server.requests]
    assert cookies == ["mine=1", "mine=1; node=seven"]


@pytest.mark.parametrize(
    ("status", "again", "words"),
    [
        (401, False, "rejected the credentials in the headers (401)"),
        (404, False, "no agent at this path (404)"),
        (503, True, "is unavailable (503)"),
        (421, False, "does not accept this host name (421)"),
        (200, False, "HTTP status 200"),
    ],
)
async def test_a_refusal_says_what_to_do(status: int, again: bool, words: str) -> None:
    def refuse(protocol: ServerProtocol, request: Request) -> Response:
        return protocol.reject(status, "no, CANARY")

    async with tidy_loop(), socket_server(refuse) as server:
        error = await refused(RemoteAgent(server.url, {"X-Key": "CANARY"}))
    assert (error.again, error.place) == (again, server.url)
    assert words in str(error)
    assert "CANARY" not in str(error)


def refusing(status: int, body: bytes) -> Callable[[ServerProtocol, Request], Response]:
    headers = {"Content-Length": str(len(body)), "Connection": "close"}
    return lambda protocol, request: Response(status, "No", Headers(headers), body)


async def test_a_refusal_is_told_with_its_reason() -> None:
    body = b'{"error":{"code":"too_many","message":"there are 3 connections already"}}'
    async with tidy_loop(), socket_server(refusing(503, body)) as server:
        error = await refused(RemoteAgent(server.url))
    assert error.again
    assert error.reason == "it is unavailable (503): there are 3 connections already"


@asynccontextmanager
async def answering(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncGenerator[RemoteAgent]:
    """A server by hand, for one request; it has ended when this is left."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with suppress(ConnectionError):
            await answer(reader, writer)
        writer.close()
        over.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield RemoteAgent(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await soon(over.wait())


async def test_a_reason_that_comes_in_pieces_is_put_together() -> None:
    async def refuse_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = b'{"error":{"message":"no such file"}}'
        writer.write(b"HTTP/1.1 409 Conflict\r\ncontent-length: %d\r\n\r\n" % len(body))
        for start in range(0, len(body), 10):
            await settled()
            writer.write(body[start : start + 10])
        await reader.read()  # it leaves the connection open, which is not waited for

    async with tidy_loop(), answering(refuse_slowly) as agent:
        error = await refused(agent)
    assert error.reason == "it replied with HTTP status 409: no such file"


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_reason_that_does_not_come_is_done_without(leaves: bool) -> None:
    timeouts = RouteTimeouts(reason=600 if leaves else 0.05)

    async def refuse_half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 409 Conflict\r\ncontent-length: 90\r\n\r\n{"error":')
        if not leaves:
            await reader.read()

    async with tidy_loop(), answering(refuse_half) as agent:
        error = await refused(agent, timeouts)
    assert error.reason == "it replied with HTTP status 409"


async def test_a_large_reason_is_not_read() -> None:
    body = b'{"error":{"message":"much"},"x":"%b"}' % (b"y" * 5000)
    async with tidy_loop(), socket_server(refusing(409, body)) as server:
        error = await refused(RemoteAgent(server.url))
    assert error.reason == "it replied with HTTP status 409"


async def test_a_redirect_to_another_host_is_not_followed() -> None:
    async with tidy_loop(), socket_server() as other:

        def redirect(protocol: ServerProtocol, request: Request) -> Response:
            address = other.url.replace("127.0.0.1", "localhost") + "?key=CANARY"
            return Response(302, "Found", Headers(Location=address))

        async with socket_server(redirect) as server:
            error = await refused(RemoteAgent(server.url, {"Authorization": "Bearer CANARY"}))
    assert "it redirects to ws://localhost" in str(error)
    assert "CANARY" not in str(error)
    assert other.requests == []


async def test_a_wrong_certificate_is_not_trusted_and_nothing_is_sent(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    async with tidy_loop(), socket_server(certificate=certificate) as server:
        error = await refused(RemoteAgent(server.url, {"X-Key": "CANARY"}))
    assert "its certificate is not trusted (self" in str(error)
    assert (error.again, server.requests) == (False, [])


async def test_a_certificate_of_a_named_authority_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with tidy_loop(), socket_server(certificate=certificate) as server:
        transport = await soon(ReconnectingRoute(RemoteAgent(server.url)).connect())
        side = await server.connection()
        side.send(b"{}\n")
        assert await soon(transport.receive()) == b"{}\n"
        await transport.aclose()


async def test_nobody_at_the_address_may_come_back() -> None:
    error = await refused(RemoteAgent("ws://127.0.0.1:1/acp"))
    assert error.again
    assert str(error) == "could not reach ws://127.0.0.1:1/acp: connection refused"


async def test_a_host_that_nobody_knows_is_told() -> None:
    error = await refused(RemoteAgent("ws://nobody.invalid/acp"))
    assert "unknown host (" in str(error)


async def test_an_address_that_cannot_be_used_is_not_shown() -> None:
    error = await refused(RemoteAgent("ws://CANARY@127.0.0.1:1/acp?key=CANARY"))
    assert str(error).startswith("could not reach ws://127.0.0.1:1/acp: ")
    assert "CANARY" not in str(error)


async def test_a_door_that_is_shut_at_once_may_open_again() -> None:
    async def shut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(shut, "127.0.0.1", 0)
    async with server:
        error = await refused(RemoteAgent(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    assert error.again
    assert error.reason == "it closed the connection at once"


async def test_what_is_not_http_is_told() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        error = await refused(RemoteAgent(f"ws://127.0.0.1:{port}"))
    assert "WebSocket handshake is invalid" in str(error)


async def test_no_header_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with socket_server() as server:
        agent = RemoteAgent(f"{server.url}#token=CANARY", {"X-Key": "CANARY"})
        await (await ReconnectingRoute(agent).connect()).aclose()
    ours = [record for record in caplog.records if record.name != "websockets.server"]
    assert "CANARY" not in "".join(record.getMessage() for record in ours)
    assert "CANARY" not in repr(agent)


@asynccontextmanager
async def proxy(status: bytes) -> AsyncGenerator[tuple[int, list[bytes]]]:
    """Passes on what comes behind CONNECT, or refuses."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 %b whatever\r\n\r\n" % status)
        if status == b"200":
            host, port = asked[0].split(b" ")[1].decode().split(":")
            there = await asyncio.open_connection(host, int(port))
            await asyncio.gather(_pass_on(reader, there[1]), _pass_on(there[0], writer))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], asked


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with socket_server() as server, proxy(b"200") as (port, asked):
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")
        transport = await soon(ReconnectingRoute(RemoteAgent(server.url)).connect())
        (await server.connection()).send(b"{}\n")
        assert await soon(transport.receive()) == b"{}\n"
        await transport.aclose()
    assert asked[0].startswith(b"CONNECT 127.0.0.1:")
    assert b"Proxy-Authorization: Basic" in asked[0]


@pytest.mark.parametrize(
    ("agent", "address"),
    [("ws://host.example/acp", "http://x:CANARY@"), ("ws://CANARY@host.example/acp", "")],
    ids=["proxy", "agent"],
)
async def test_an_address_that_cannot_be_read_is_in_no_traceback(
    agent: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.setenv("no_proxy", "")
    error = await refused(RemoteAgent(agent))
    assert "CANARY" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://x:CANARY@127.0.0.1:{}", "its proxy refused the connection (407)"),
        ("socks5://x:CANARY@127.0.0.1:{}", "use an http:// proxy, not socks5://"),
    ],
)
async def test_a_proxy_that_is_no_way_through_is_told(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy(b"407") as (port, _):
        monkeypatch.setenv("http_proxy", address.format(port))
        monkeypatch.setenv("no_proxy", "")
        error = await refused(RemoteAgent("ws://127.0.0.1:9/acp"))
    assert words in str(error)
    assert "CANARY" not in str(error)


# ── on the way ────────────────────────────────────────────────────────────────────────────────


async def test_cut_in_the_middle_of_a_frame() -> None:
    async with tidy_loop(), by_websocket() as (ours, theirs):
        theirs.writer.write(frame(b'{"whole":1}') + head(1000) + b'{"half":')
        await theirs.writer.drain()
        await theirs.cut()
        received = b""
        while data := await soon(ours.receive()):
            received += data
        assert received == b'{"whole":1}\n{"half":'
        error = await ours.failure(spoke=True, printed="")
    assert isinstance(error, RemoteLost)
    assert error.reason == "it was cut"


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (frame(b"\x03\xe9bye", 0x8), "the other side is going away (bye)"),
        (
            frame(b"\x03\xe9\x1b]0;x\x07\xe2\x80\xae", 0x8),
            "the other side is going away (\ufffd]0;x\ufffd\ufffd)",
        ),
        (frame(b"\x0f\xa0", 0x8), "the other side closed it with code 4000"),
        (b"\x81\x80\x00\x00\x00\x00", "it broke the WebSocket protocol: a server must not mask"),
    ],
    ids=["going away", "escapes", "odd code", "masked"],
)
async def test_an_end_has_its_reason(sent: bytes, reason: str) -> None:
    async with tidy_loop(), by_websocket() as (ours, theirs):
        theirs.writer.write(sent)
        error = await lost(ours)
    assert isinstance(error, RemoteLost)
    assert error.reason.startswith(reason)


async def test_pings_are_answered() -> None:
    async with tidy_loop(), by_websocket() as (_, theirs):
        theirs.writer.write(frame(b"1", 0x9) + frame(b"2", 0x9))
        data = await soon(theirs.reader.readexactly(7))
        assert data[0] == 0x8A
        assert bytes([data[6] ^ data[2]]) == b"2"


async def test_silence_is_answered_with_a_ping_and_then_given_up() -> None:
    async with tidy_loop(), by_websocket(beat=0.05) as (ours, theirs):
        error = await lost(ours)
        assert (await soon(theirs.reader.readexactly(1)))[0] == 0x89
    assert isinstance(error, RemoteLost)
    assert error.reason.startswith("it sent nothing for")


async def test_a_side_that_answers_pings_is_not_given_up() -> None:
    async with tidy_loop(), by_websocket(beat=0.3) as (ours, theirs):
        answering = asyncio.create_task(theirs.receive())
        # Without an answer there would be one, and then the end.
        await until(lambda: answering.done() or theirs.pings >= 3)
        theirs.send(b"{}\n")
        assert await soon(ours.receive()) == b"{}\n"
        answering.cancel()


async def test_a_side_that_takes_a_large_message_slowly_is_not_given_up() -> None:
    async with tidy_loop(), by_websocket(beat=0.3) as (ours, theirs):
        sock = theirs.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        ours.send(b'{"x":"' + b"y" * (48 << 20) + b'"}\n')
        reading = asyncio.create_task(_read_slowly(theirs))
        receiving = asyncio.create_task(ours.receive())
        await asyncio.wait({receiving}, timeout=3)
        was_kept, waits = not receiving.done(), ours.pending
        reading.cancel()
        error = None if was_kept else await ours.failure(spoke=True, printed="")
        receiving.cancel()
    assert was_kept, error
    assert waits > 0  # else it was not slow


async def _read_slowly(theirs: SocketSide) -> None:
    for _ in range(10_000):
        await theirs.reader.read(64 * 1024)
        await asyncio.sleep(0.01)


async def test_a_side_that_stops_taking_is_given_up() -> None:
    async with tidy_loop(), by_websocket(beat=0.2) as (ours, _):
        ours.send(b'{"x":"' + b"y" * (32 << 20) + b'"}\n')
        error = await lost(ours)
        await ours.aclose()
    assert isinstance(error, RemoteLost)
    assert error.reason.startswith("it sent nothing for")


async def test_what_a_slow_reader_does_not_take_stays_with_the_other_side() -> None:
    async with tidy_loop(), by_websocket() as (ours, theirs):
        line = b'"' + b"x" * 65_000 + b'"\n'
        sent = await _until_held_back(theirs, line)
        received = 0
        while received < sent * len(line):
            received += len(await soon(ours.receive()))
        assert sent * len(line) < 32 << 20


async def _until_held_back(theirs: SocketSide, line: bytes) -> int:
    """How many lines the kernel and our buffers take."""
    sent = 0
    try:
        while sent * len(line) < 64 << 20:
            theirs.send(line)
            sent += 1
            async with asyncio.timeout(0.5):
                await theirs.writer.drain()
    except TimeoutError:
        pass
    return sent


async def test_a_frame_beyond_64_mib_ends_the_connection_with_bounded_memory() -> None:
    async with tidy_loop(), by_websocket() as (ours, theirs):
        peer = Peer(ours, on_notification=ignore, on_request=refuse)
        before = resident_bytes()
        async with peer:
            sending = asyncio.create_task(_send_much(theirs, 1 << 40))
            async with asyncio.timeout(50):
                error = await peer.wait_ended()
            grown = resident_bytes() - before
        await sending
    assert isinstance(error, FrameTooLarge)
    assert error.limit == 64 << 20
    assert grown < 160 << 20


async def _send_much(theirs: SocketSide, size: int) -> None:
    """A frame that says it is so large; ends when nobody listens any more."""
    theirs.writer.write(head(size))
    piece = b"x" * (1 << 20)
    with suppress(OSError):
        while True:
            theirs.writer.write(piece)
            await theirs.writer.drain()


async def test_a_frame_of_nearly_64_mib_passes() -> None:
    payload = b'{"jsonrpc":"2.0","method":"big","params":["%b"]}' % (b"x" * (63 << 20))
    sizes: list[int] = []
    arrived = asyncio.Event()

    def take(method: str, params: msgspec.Raw) -> None:
        sizes.append(len(bytes(params)))
        arrived.set()

    async with (
        tidy_loop(),
        by_websocket() as (ours, theirs),
        Peer(ours, on_notification=take, on_request=refuse),
        asyncio.timeout(50),
    ):
        theirs.send(payload + b"\n")
        await arrived.wait()
    assert sizes == [(63 << 20) + 4]


async def test_a_goodbye_that_nobody_answers_is_not_waited_for() -> None:
    async with tidy_loop(), by_websocket() as (ours, theirs):
        await soon(ours.aclose())
        assert (await soon(theirs.reader.readexactly(1)))[0] == 0x88
