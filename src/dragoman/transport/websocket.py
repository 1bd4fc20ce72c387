"""A remote agent over WebSocket, directly or through an HTTP CONNECT proxy.

`websockets` makes and checks the handshake; frames are our own, see `websocket_frames`. Nothing
here looks inside the messages.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
from collections import deque
from contextlib import suppress
from email.message import Message
from typing import Any, Final
from urllib.request import Request

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus, InvalidURI
from websockets.http11 import Response
from websockets.proxy import Proxy, get_proxy, parse_proxy, prepare_connect_request
from websockets.uri import WebSocketURI, parse_uri

from dragoman.errors import ConnectionClosed, ConnectionLost, RemoteLost, StartError, Unreachable
from dragoman.transport import reconnection
from dragoman.transport import websocket_frames as frames
from dragoman.transport.websocket_frames import BadFrame, Incoming
from dragoman.wire.framing import Framer

_MUCH_AHEAD = 64 * 1024
"""Beyond this nothing more is read until what is there was taken."""
_LITTLE_QUEUED = 64 * 1024
_LITTLE_UNSENT = 256 * 1024
_READ_SIZE = 64 * 1024
_LARGEST_HEAD = 64 * 1024

_NORMAL, _GOING_AWAY, _BROKEN, _POLICY = 1000, 1001, 1002, 1008
_MEANINGS: Final = {
    _GOING_AWAY: "the other side is going away",
    1005: "the other side closed it",
    _POLICY: "the other side rejected it",
    1009: "a message was too large for the other side",
    1011: "the other side failed",
    1012: "the other side is restarting",
    1013: "the other side is busy",
}

# The library logs every header, and so would show credentials.
_quiet = logging.getLogger("dragoman.websocket.handshake")
_quiet.setLevel(logging.CRITICAL + 1)


async def connect(route: reconnection.ReconnectingRoute) -> WebSocketTransport:
    """Open a WebSocket. Raises Unreachable."""
    place = route.agent.place
    try:
        async with asyncio.timeout(reconnection.CONNECT_SECONDS):
            return await _connect(route, parse_uri(route.agent.endpoint))
    except InvalidURI as error:  # which has the whole address in its words
        raise Unreachable(place, f"its address cannot be used ({error.msg})") from None
    except InvalidHandshake as error:
        raise Unreachable(place, f"its WebSocket handshake is invalid ({error})") from error
    except EOFError as error:
        raise Unreachable(place, "it closed the connection at once", again=True) from error
    except (OSError, TimeoutError) as error:
        raise reconnection.unreachable(place, error) from error


async def _connect(route: reconnection.ReconnectingRoute, uri: WebSocketURI) -> WebSocketTransport:
    handshake = ClientProtocol(uri, logger=_quiet)
    transport = WebSocketTransport(route.agent.place, handshake, route.timeouts)
    await _dial(uri, await tunnel(uri, route.agent.place), transport)
    try:
        response = await transport.shake_hands(_request_headers(route))
        _keep_cookies(route, response)
        return transport
    except InvalidStatus as error:
        _keep_cookies(route, error.response)
        location = next(iter(error.response.headers.get_all("Location")), None)
        body = await transport.reason()
        raise reconnection.refusal(
            route.agent, error.response.status_code, location, body
        ) from error
    finally:
        if not transport.is_open:
            transport.abort()


async def _dial(
    uri: WebSocketURI, sock: socket.socket | None, protocol: asyncio.BufferedProtocol
) -> None:
    create = asyncio.get_running_loop().create_connection
    context = ssl.create_default_context() if uri.secure else None
    name = uri.host if uri.secure else None
    if sock is None:
        await create(lambda: protocol, uri.host, uri.port, ssl=context, server_hostname=name)
    else:
        await create(lambda: protocol, sock=sock, ssl=context, server_hostname=name)


def _request_headers(route: reconnection.ReconnectingRoute) -> dict[str, str]:
    """The headers to send, with the cookies that were set there."""
    request = _as_http(route)
    route.cookies.add_cookie_header(request)
    cookies = request.get_header("Cookie")
    headers = route.agent.sent_headers
    own = next((name for name in headers if name.lower() == "cookie"), None)
    if cookies is None:
        return headers
    if own is None:
        return headers | {"Cookie": cookies}
    return headers | {own: f"{headers[own]}; {cookies}"}


def _keep_cookies(route: reconnection.ReconnectingRoute, response: Response) -> None:
    answer: Any = _Answer(response)
    route.cookies.extract_cookies(answer, _as_http(route))


def _as_http(route: reconnection.ReconnectingRoute) -> Request:
    return Request(route.agent.endpoint.replace("ws", "http", 1))


class _Answer:
    """A response as a cookie jar reads it."""

    def __init__(self, response: Response) -> None:
        self._headers = Message()
        for value in response.headers.get_all("Set-Cookie"):
            self._headers["Set-Cookie"] = value

    def info(self) -> Message:
        return self._headers


class WebSocketTransport(asyncio.BufferedProtocol):
    """The connection; make one with `connect`."""

    def __init__(
        self, place: str, handshake: ClientProtocol, timeouts: reconnection.RouteTimeouts
    ) -> None:
        self.is_open = False
        self._place = place
        self._timeouts = timeouts
        self._handshake = handshake
        self._loop = asyncio.get_running_loop()
        self._shaken: asyncio.Future[Response] = self._loop.create_future()
        self._buffer = memoryview(bytearray(_READ_SIZE))
        self._head = bytearray()
        self._reason_bytes = 0
        self._incoming = Incoming()
        self._outgoing = Framer()
        self._ahead: deque[bytes] = deque()
        self._ahead_bytes = 0
        self._is_paused = False
        self._is_closing = False
        self._reason = ""
        self._is_refused = False
        self._is_over = asyncio.Event()
        self._readable: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._is_quiet = False
        self._written = 0
        self._backlog = 0
        self._gone = 0
        self._beat: asyncio.TimerHandle | None = None

    # ── the handshake ─────────────────────────────────────────────────────────────────────────

    async def shake_hands(self, headers: dict[str, str]) -> Response:
        """Raises InvalidHandshake, EOFError when the other side leaves."""
        request = self._handshake.connect()
        for name, value in headers.items():
            if name in request.headers:
                del request.headers[name]
            request.headers[name] = value
        self._handshake.send_request(request)
        self._write(b"".join(self._handshake.data_to_send()))
        return await self._shaken

    def _answered(self, data: bytes) -> None:
        """The head of the answer; what follows it are frames, or why we are not let in."""
        if self._shaken.done():
            self._take(data)
            return
        self._head += data
        end = self._head.find(b"\r\n\r\n") + 4
        if end < 4:
            if len(self._head) > _LARGEST_HEAD:
                self._fail_handshake(InvalidHandshake("its response header is too long"))
            return
        head, rest = bytes(self._head[:end]), bytes(self._head[end:])
        self._handshake.receive_data(_without_body(head))
        match self._handshake.events_received():
            case [Response() as response] if self._handshake.handshake_exc is None:
                self._open(response, rest)
            case _:
                error = self._handshake.handshake_exc
                if isinstance(error, InvalidStatus):
                    self._refused(error, _small_body(head), rest)
                else:
                    self._fail_handshake(error or InvalidHandshake("its response is not HTTP"))

    def _open(self, response: Response, rest: bytes) -> None:
        self.is_open = True
        self._head.clear()
        self._beat = self._loop.call_later(self._timeouts.beat, self._beaten)
        self._shaken.set_result(response)
        if rest:
            self._arrived(rest)

    def _refused(self, error: InvalidStatus, size: int, rest: bytes) -> None:
        """The connection stays until what explains it was read."""
        self._reason_bytes = size
        if rest:
            self._take(rest)
        self._shaken.set_exception(error)

    async def reason(self) -> bytes:
        """The body of a refusal; less than that when it is large, or does not come soon."""
        body = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.reason):
                while len(body) < self._reason_bytes and (data := await self.receive()):
                    body += data
        return body[: self._reason_bytes]

    def _fail_handshake(self, error: Exception) -> None:
        if not self._shaken.done():
            self._shaken.set_exception(error)
        self.abort()

    # ── what asyncio tells ────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_LITTLE_QUEUED)
        _hold_little(transport.get_extra_info("socket"))

    def get_buffer(self, sizehint: int) -> memoryview:
        """One for all reads: what asyncio makes for each by itself is mapped and unmapped."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._arrived(bytes(self._buffer[:nbytes]))

    def _arrived(self, data: bytes) -> None:
        if not self.is_open:
            self._answered(data)
            return
        self._is_quiet = False
        try:
            lines = self._incoming.feed(data)
        except BadFrame as error:
            self._give_up(_BROKEN, f"it broke the WebSocket protocol: {error}")
            return
        if lines and not self._is_closing:
            self._take(lines)
        if self._incoming.pings:
            self._answer_pings()
        if self._incoming.closed is not None:
            self._closed(*self._incoming.closed)

    def _take(self, lines: bytes) -> None:
        self._ahead.append(lines)
        self._ahead_bytes += len(lines)
        if self._ahead_bytes > _MUCH_AHEAD and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def _answer_pings(self) -> None:
        """The newest counts for all, so that a flood of them is not answered by another."""
        self._write(frames.pong(self._incoming.pings[-1]))
        self._incoming.pings.clear()

    def _closed(self, code: int, reason: str) -> None:
        said = _MEANINGS.get(code, f"the other side closed it with code {code}")
        self._is_refused = code == _POLICY and not self._reason
        self._end(f"{said} ({reconnection.plain_words(reason)})" if reason else said)
        if not self._is_closing:
            self._write(frames.close(_NORMAL))
        self._transport.close()

    def eof_received(self) -> None:
        self._end("it was cut")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._shaken.done():
            self._shaken.set_exception(exc or EOFError())
        self._end("it was cut")
        self._is_over.set()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    # ── is anyone there? ──────────────────────────────────────────────────────────────────────

    def _beaten(self) -> None:
        has_moved = self._has_moved()
        if self._is_quiet and not self._is_paused and not has_moved:
            self._give_up(_GOING_AWAY, f"it sent nothing for {2 * self._timeouts.beat:g} s")
            return
        # What we do not read may well be there.
        self._is_quiet = not self._is_paused
        self._write(frames.ping())
        self._beat = self._loop.call_later(self._timeouts.beat, self._beaten)

    def _has_moved(self) -> bool:
        """Whether some of what waited at the last beat has gone out: our ping is after it."""
        backlog = self._transport.get_write_buffer_size()
        gone = self._written - backlog
        has_moved = self._backlog > 0 and gone > self._gone
        self._backlog, self._gone = backlog, gone
        return has_moved

    def _write(self, data: bytes) -> None:
        self._written += len(data)
        self._transport.write(data)

    # ── the transport's face ──────────────────────────────────────────────────────────────────

    async def receive(self) -> bytes:
        while not self._ahead and not self._reason:
            self._readable = self._loop.create_future()
            await self._readable
        if not self._ahead:
            return b""
        data = self._ahead.popleft()
        self._ahead_bytes -= len(data)
        if self._is_paused and self._ahead_bytes <= _MUCH_AHEAD:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def send(self, data: bytes) -> None:
        if not self._reason:
            for frame in self._outgoing.feed(data):
                self._write(frames.text(frame))

    async def drain(self) -> None:
        await self._room.wait()

    @property
    def pending(self) -> int:
        return 0 if self._reason else self._transport.get_write_buffer_size()

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionLost | StartError:
        if self._is_closing:
            return ConnectionClosed()
        return RemoteLost(self._place, self._reason, refused=self._is_refused)

    async def aclose(self) -> None:
        """Say goodbye and wait for the answer, but not for long; when cancelled, not at all."""
        was_open, self._is_closing = not self._reason, True
        self._ahead.clear()
        self._end("it is closed")
        try:
            if was_open:
                self._write(frames.close(_NORMAL))
                self._resume()
            async with asyncio.timeout(self._timeouts.close):
                await self._is_over.wait()
        except TimeoutError:
            pass
        finally:
            self.abort()

    def abort(self) -> None:
        self._end("it is closed")
        self._transport.abort()

    # ── the end ───────────────────────────────────────────────────────────────────────────────

    def _give_up(self, code: int, reason: str) -> None:
        self._end(reason)
        self._write(frames.close(code))
        self._transport.close()

    def _end(self, reason: str) -> None:
        """The first reason counts."""
        self._reason = self._reason or reason
        if self._beat is not None:
            self._beat.cancel()
        self._room.set()
        self._wake()

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def _wake(self) -> None:
        if self._readable is not None and not self._readable.done():
            self._readable.set_result(None)


def _hold_little(sock: socket.socket) -> None:
    """Have the system take only what it can soon send, so that what is slow is not taken for what
    is gone: megabytes would else wait where nobody sees them move."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _LITTLE_UNSENT)


def _small_body(head: bytes) -> int:
    """How many bytes follow, when it is said and they are few: a page is not waited for."""
    found = re.search(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*\r\n", head, re.IGNORECASE)
    size = 0 if found is None else int(found[1])
    return size if size <= reconnection.REASON_BYTES else 0


def _without_body(head: bytes) -> bytes:
    """The library would wait for a body, and take it however large it is."""
    lines = head.split(b"\r\n")
    dropped = (b"content-length:", b"transfer-encoding:")
    kept = [line for line in lines if not line.lower().startswith(dropped)]
    return b"\r\n".join([*kept[:-2], b"Content-Length: 0", b"", b""])


_LARGEST_PROXY_HEAD = 64 * 1024


async def tunnel(uri: WebSocketURI, place: str) -> socket.socket | None:
    """A socket that leads there, or None where no proxy is set for it.

    Raises Unreachable for a proxy that cannot be used or does not let us through, OSError.
    """
    address = get_proxy(uri)
    if address is None:
        return None
    try:
        proxy = parse_proxy(address)
    except InvalidProxy:  # which has the whole address in its words, and that may hold a password
        raise Unreachable(place, "its proxy's address cannot be parsed") from None
    if proxy.scheme != "http":
        reason = f"a WebSocket can only use an http:// proxy, not {proxy.scheme}://"
        raise Unreachable(place, f"{reason}; set one, or exclude this host with NO_PROXY")
    sock = await _connected(proxy)
    try:
        await _ask(sock, prepare_connect_request(proxy, uri), place)
    except BaseException:
        sock.close()
        raise
    return sock


async def _connected(proxy: Proxy) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
    error: OSError | None = None
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
            return sock
        except OSError as failed:
            sock.close()
            error = failed
        except BaseException:
            sock.close()
            raise
    raise error or OSError("the proxy has no address")


async def _ask(sock: socket.socket, request: bytes, place: str) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, request)
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < _LARGEST_PROXY_HEAD:
        # One byte at a time: what comes behind the head is not for us.
        data = await loop.sock_recv(sock, 1)
        if not data:
            break
        head += data
    status = head.split(b" ", 2)[1:2]
    if status != [b"200"]:
        said = status[0].decode("latin-1") if status else "nothing"
        raise Unreachable(place, f"its proxy refused the connection ({said})")
