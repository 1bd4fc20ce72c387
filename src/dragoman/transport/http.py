"""A remote agent over Streamable HTTP: POSTs go out, messages come in as server-sent events.

One stream is of the connection, one of each session. HTTP/2 is spoken where TLS agrees on it, else
HTTP/1.1. What of a message decides where it travels is read by `http_routes`, and nothing else.

Sans I/O.

Knows nothing of messages.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import httpx

from dragoman.errors import (
    ConnectionClosed,
    ConnectionLost,
    FrameTooLarge,
    RemoteLost,
    StartError,
    Unreachable,
)
from dragoman.transport.http_routing import (
    CONNECTION_ID,
    EVENT_STREAM,
    INITIALIZE,
    JSON,
    SESSION_ID,
    Exchanges,
    Outline,
    outline,
)
from dragoman.transport.reconnection import (
    CONNECT_SECONDS,
    REASON_BYTES,
    ReconnectingRoute,
    refusal,
    unreachable,
)
from dragoman.transport.target import is_header_value
from dragoman.wire.framing import MAX_FRAME_BYTES, Framer

_LITTLE_QUEUED = 64 * 1024
_MUCH_AHEAD = 64 * 1024
_LATER = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Pauses before asking again for the stream of a session: one that is not known there yet, or one
that ended."""
_SHORT_SECONDS = 2.0
"""Within which a stream ends at once; some end whatever is silent for a while, and that is well."""
_ACCEPTED = range(200, 300)
_CUT = "it was cut"

logger = logging.getLogger("dragoman.http")


def connect(route: ReconnectingRoute) -> HttpTransport:
    """Raises Unreachable for a proxy that cannot be used; anything else is found out later."""
    try:
        return HttpTransport(route)
    except (ImportError, ValueError):  # their words may hold the proxy's password
        reason = "the configured HTTP proxy cannot be used; SOCKS is not supported"
        raise Unreachable(route.agent.place, reason) from None


class HttpTransport:
    """The connection; the first message, which must be `initialize`, makes it."""

    def __init__(self, route: ReconnectingRoute) -> None:
        self._agent = route.agent
        self._place = route.agent.place
        self._url = route.agent.endpoint
        self._at_work = route.at_work
        self._timeouts = route.timeouts
        self._new_client = partial(new_client, route, _trust(self._url))
        self._http = self._new_client()
        self._connection_id: str | None = None
        self._outgoing = Framer()
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._sendable = asyncio.Event()
        self._sent = asyncio.Event()
        self._sent.set()
        self._room = asyncio.Event()
        self._room.set()
        self._ahead: deque[bytes] = deque()
        self._ahead_bytes = 0
        self._readable = asyncio.Event()
        self._taken = asyncio.Event()
        self._streams: dict[str | None, asyncio.Future[bool]] = {}
        """Whether each could be opened; the one without a session is the connection's."""
        self._in_vain: dict[str, int] = {}
        """How often in a row the stream of a session ended at once without having told anything."""
        self._exchanges = Exchanges()
        self._error: ConnectionLost | StartError | FrameTooLarge | None = None
        self._is_closing = False
        self._shutting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._start(self._send_all())

    # ── the transport's face ──────────────────────────────────────────────────────────────────

    async def receive(self) -> bytes:
        while not self._ahead:
            if isinstance(self._error, FrameTooLarge):
                raise self._error
            if self._error is not None or self._is_closing:
                return b""
            self._readable.clear()
            await self._readable.wait()
        data = self._ahead.popleft()
        self._ahead_bytes -= len(data)
        if self._ahead_bytes <= _MUCH_AHEAD:
            self._taken.set()
        return data

    def send(self, data: bytes) -> None:
        if self._error is not None:
            return
        for frame in self._outgoing.feed(data):
            self._queue.append(frame)
            self._queued += len(frame)
        if self._queued > _LITTLE_QUEUED:
            self._room.clear()
        if self._queue:
            self._sent.clear()
            self._sendable.set()

    async def drain(self) -> None:
        await self._room.wait()

    @property
    def pending(self) -> int:
        return self._queued

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionLost | StartError:
        if self._is_closing or self._error is None or isinstance(self._error, FrameTooLarge):
            return ConnectionClosed()
        return self._error

    async def aclose(self) -> None:
        """Send what is queued, end the connection there, and all that is open here.

        When cancelled, that continues for a moment without anyone waiting for it: an agent that is
        not told would run on.
        """
        self._is_closing = True
        self._ahead.clear()
        self._readable.set()
        if self._shutting is None:
            self._shutting = asyncio.create_task(self._shut())
        await asyncio.shield(self._shutting)

    # ── sending ───────────────────────────────────────────────────────────────────────────────

    async def _send_all(self) -> None:
        """One message at a time, so that they arrive in order."""
        with self._ending("it stopped reading what we send"):
            while True:
                await self._sendable.wait()
                while self._queue:
                    await self._send(self._queue[0])
                    if self._error is not None:
                        return
                    self._queued -= len(self._queue.popleft())
                    if self._queued <= _LITTLE_QUEUED:
                        self._room.set()
                self._sendable.clear()
                self._sent.set()

    async def _send(self, frame: bytes) -> None:
        message = outline(frame)
        session = self._exchanges.goes_to(message)
        known = True
        if self._connection_id is not None:
            if session is not None:
                known = await self._stream(session)
            self._exchanges.sent(message, session)
        await self._post(frame, message, session)
        if not known and session is not None:
            self._start(self._open_later(session))

    async def _post(self, frame: bytes, message: Outline, session: str | None) -> None:
        headers = self._headers(session) | {"Content-Type": JSON, "Accept": JSON}
        patience = ENDLESS if message.method == INITIALIZE else PATIENT
        async with self._http.stream(
            "POST", self._url, content=frame, headers=headers, timeout=patience
        ) as response:
            await self._check(response)
            body = await body_of(response)
            if self._connection_id is None and message.method == INITIALIZE:
                await self._connected(response)
        if body.startswith(b"{"):
            self._arrived(body, session)

    async def _connected(self, response: httpx.Response) -> None:
        self._connection_id = response.headers.get(CONNECTION_ID)
        if self._connection_id is None:
            raise Unreachable(self._place, f"its reply has no {CONNECTION_ID}; is it an ACP agent?")
        if not await self._stream(None):
            raise Unreachable(self._place, "it does not offer an event stream")

    def _headers(self, session: str | None) -> dict[str, str]:
        connection = {} if self._connection_id is None else {CONNECTION_ID: self._connection_id}
        if session is not None and not is_header_value(session):
            raise RemoteLost(self._place, "it named a session that no header can name")
        return connection if session is None else connection | {SESSION_ID: session}

    async def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in _ACCEPTED:
            return
        if self._connection_id is None or 300 <= status < 400 or status in (401, 403):
            location = response.headers.get("Location")
            body = await reason_of(response, self._timeouts.reason)
            raise refusal(self._agent, status, location, body)
        if status == 404:
            raise RemoteLost(self._place, "it has forgotten the connection")
        raise RemoteLost(self._place, f"it rejected a message with HTTP status {status}")

    # ── receiving ─────────────────────────────────────────────────────────────────────────────

    async def _stream(self, session: str | None) -> bool:
        """Have the stream open; False for one that is not known there yet."""
        if session not in self._streams:
            opened: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._streams[session] = opened
            self._start(self._listen(session, opened))
        return await asyncio.shield(self._streams[session])

    async def _ask_again(self, session: str, first: int = 0) -> bool:
        for pause in _LATER[first:]:
            await asyncio.sleep(pause)
            if await self._stream(session):
                return True
        return False

    async def _open_later(self, session: str) -> None:
        """The stream of a session that was not known there when something was sent to it. It may
        be opened by that, and that caller has a bound; or else it was forgotten."""
        with self._ending(_CUT):
            if not await self._ask_again(session) and self._at_work(session):
                raise self._forgotten()

    async def _reopen(self, session: str) -> None:
        """More may come on a stream that ended, though no answer is awaited there: what a turn
        tells once its prompt was acknowledged."""
        in_vain, longest = self._in_vain.get(session, -1) + 1, len(_LATER) - 1
        with self._ending(_CUT):
            if not self._is_needed(session):
                in_vain = min(in_vain, longest)
            elif in_vain > len(_LATER):
                raise RemoteLost(self._place, "a session's event stream keeps ending")
            self._in_vain[session] = in_vain
            if await self._ask_again(session, min(in_vain, longest)):
                return
            if self._is_needed(session):
                raise self._forgotten()

    def _is_needed(self, session: str) -> bool:
        return self._exchanges.awaits(session) or self._at_work(session)

    def _forgotten(self) -> RemoteLost:
        """Nobody would ever hear how what is under way there ends; the session may be resumed."""
        return RemoteLost(self._place, "it has forgotten the session")

    async def _listen(self, session: str | None, opened: asyncio.Future[bool]) -> None:
        try:
            with self._ending(_CUT):
                async with self._opened_stream(session) as response:
                    if response is not None:
                        opened.set_result(True)
                        begun = time.monotonic()
                        await self._read(response, session)
                        self._ended(session, time.monotonic() - begun)
        finally:
            del self._streams[session]
            if not opened.done():
                opened.set_result(False)

    @asynccontextmanager
    async def _opened_stream(self, session: str | None) -> AsyncGenerator[httpx.Response | None]:
        headers = self._headers(session) | {"Accept": EVENT_STREAM}
        # On a connection of its own: over HTTP/2, httpx has no second request on one until the
        # server has announced how many it takes, and some never do.
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(self._new_client())
            opening = http.stream("GET", self._url, headers=headers)
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    response = await stack.enter_async_context(opening)
            except TimeoutError:
                raise RemoteLost(self._place, "it did not open an event stream") from None
            if response.status_code == 404 and session is not None:
                yield None
                return
            await self._check(response)
            probe(response)
            yield response

    async def _read(self, response: httpx.Response, session: str | None) -> None:
        events = EventStream()
        async for data in response.aiter_raw():
            for frame in events.feed(data):
                self._arrived(frame, session)
            while self._ahead_bytes > _MUCH_AHEAD:
                self._taken.clear()
                await self._taken.wait()

    def _arrived(self, frame: bytes, session: str | None) -> None:
        message = outline(frame)
        if session is not None:
            self._in_vain.pop(session, None)
        # Each stream is a connection: one that nobody asked for opens none.
        if self._exchanges.arrived(message, session) and message.opened is not None:
            self._start(self._stream(message.opened))
        if not self._is_closing:
            self._ahead.append(frame.replace(b"\n", b" ") + b"\n")
            self._ahead_bytes += len(frame) + 1
            self._readable.set()

    def _ended(self, session: str | None, lasted: float) -> None:
        """A session's stream may end while nothing is asked there, and is opened again."""
        if session is None:
            raise RemoteLost(self._place, "the other side closed it")
        if self._exchanges.awaits(session):
            raise RemoteLost(self._place, "the other side closed a session's event stream")
        if lasted >= _SHORT_SECONDS:
            self._in_vain.pop(session, None)
        self._start(self._reopen(session))

    # ── the end ───────────────────────────────────────────────────────────────────────────────

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @contextmanager
    def _ending(self, reason: str) -> Generator[None]:
        """Whatever goes wrong inside is the end of the connection."""
        try:
            yield
        except (ConnectionLost, StartError, FrameTooLarge) as error:
            self._fail(error)
        except (httpx.HTTPError, OSError) as error:
            self._failed(error, reason)
        except Exception:
            logger.exception("a connection over HTTP failed")
            self._fail(RemoteLost(self._place, "it was closed after an internal error"))

    def _fail(self, error: ConnectionLost | StartError | FrameTooLarge) -> None:
        """The first error counts."""
        self._error = self._error or error
        self._queue.clear()
        self._queued = 0
        self._sent.set()
        self._room.set()
        self._readable.set()
        self._taken.set()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()

    def _failed(self, error: httpx.HTTPError | OSError, reason: str) -> None:
        if self._connection_id is not None:
            self._fail(RemoteLost(self._place, reason))
        elif isinstance(error, httpx.ProxyError):
            self._fail(Unreachable(self._place, "its proxy refused the connection"))
        elif isinstance(error, httpx.TimeoutException):
            self._fail(unreachable(self._place, TimeoutError()))
        else:
            self._fail(unreachable(self._place, error))

    async def _shut(self) -> None:
        with suppress(httpx.HTTPError, OSError, TimeoutError):
            async with asyncio.timeout(self._timeouts.close):
                await self._sent.wait()
        self._fail(ConnectionClosed())
        with suppress(httpx.HTTPError, OSError, TimeoutError):
            async with asyncio.timeout(self._timeouts.close):
                if self._connection_id is not None:
                    await self._http.delete(self._url, headers=self._headers(None))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._http.aclose()


_FIELD_NAME = len(b"data: ")


class EventStream:
    """Feed it what arrives; holds at most `limit` bytes of an unfinished event."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._lines = Framer(limit + _FIELD_NAME + 1)
        # Grows in place: a heap of tiny lines would take many times what they hold.
        self._data: bytearray | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that `data` completes. Raises FrameTooLarge."""
        for line in self._cut(data):
            if not line and self._data is not None:
                frame, self._data = bytes(self._data), None
                yield frame
            elif line.startswith(b"data:"):
                self._take(line[5:].removeprefix(b" "))

    def _cut(self, data: bytes) -> Iterator[bytes]:
        try:
            for line in self._lines.feed(data):
                yield line.removesuffix(b"\r")
        except FrameTooLarge:
            raise FrameTooLarge(self._limit) from None

    def _take(self, part: bytes) -> None:
        if self._data is None:
            self._data = bytearray()
        else:
            self._data += b" "
        if len(self._data) + len(part) > self._limit:
            raise FrameTooLarge(self._limit)
        self._data += part


ENDLESS = httpx.Timeout(None, connect=CONNECT_SECONDS)
"""For streams, and for the first message: its answer comes with it, and the caller has a bound."""
PATIENT = httpx.Timeout(120.0, connect=CONNECT_SECONDS)
"""For a message to be taken; a server may make us wait until we have read what it sent."""
_IDLE_SECONDS = 3.0
"""Node's server closes an idle connection after five: a message must not meet it closing."""

# At their lowest levels these log headers, and so would show credentials and cookies.
for _name in ("httpx", "httpcore", "hpack", "h2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


def _trust(url: str) -> ssl.SSLContext:
    """Whose certificates are accepted: nobody's where none are shown, since reading them takes
    longer than connecting."""
    if url.startswith("https:"):
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def new_client(route: ReconnectingRoute, context: ssl.SSLContext) -> httpx.AsyncClient:
    """Raises ImportError and ValueError for a proxy that cannot be used."""
    return httpx.AsyncClient(
        http2=True,
        headers=route.agent.sent_headers | {"Accept-Encoding": "identity"},
        cookies=route.cookies,
        verify=context,
        timeout=ENDLESS,
        limits=httpx.Limits(
            max_connections=None, max_keepalive_connections=4, keepalive_expiry=_IDLE_SECONDS
        ),
        follow_redirects=False,
    )


async def body_of(response: httpx.Response) -> bytes:
    """All of it. Raises FrameTooLarge."""
    body = bytearray()
    async for data in response.aiter_raw():
        body += data
        if len(body) > MAX_FRAME_BYTES:
            raise FrameTooLarge(MAX_FRAME_BYTES)
    return bytes(body)


async def reason_of(response: httpx.Response, seconds: float) -> bytes:
    """The body of a refusal; nothing when it is large, or does not come within `seconds`."""
    body = bytearray()
    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(seconds):
            async for data in response.aiter_raw():
                body += data
                if len(body) > REASON_BYTES:
                    return b""
            return bytes(body)
    return b""


def probe(response: httpx.Response) -> None:
    """Have the system look after a connection on which nothing may come for long."""
    sock = response.extensions["network_stream"].get_extra_info("socket")
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
