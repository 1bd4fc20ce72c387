"""The bridge: an application behind the server's guard, and `dragoman bridge`, which serves it."""

from __future__ import annotations

import asyncio
import functools
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import suppress

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.bridge.agent_processes import AgentProcesses, BridgedAgent
from dragoman.bridge.http_connections import BridgeLimits, HttpConnection, HttpConnections, Mailbox
from dragoman.errors import FrameTooLarge
from dragoman.process import descriptors
from dragoman.transport.http_routing import (
    CONNECTION_ID,
    EVENT_STREAM,
    INITIALIZE,
    JSON,
    SESSION_ID,
    Outline,
    outline,
)
from dragoman.transport.transport import Start
from dragoman.web.failures import RequestFailed, failure_of, response_for
from dragoman.web.routing.route import Route, Table
from dragoman.web.server.deadline import Deadline
from dragoman.web.server.guard import ROUTE, AllowedHosts, Guard, Log
from dragoman.web.server.http_server import AsgiServer, Door, Operator, serving
from dragoman.web.streams.sse import HEADERS, HEARTBEAT
from dragoman.web.streams.stream_response import StreamedResponse, with_beats
from dragoman.wire.framing import MAX_FRAME_BYTES

logger = logging.getLogger("dragoman.bridge")

PATH = "/acp"
_LONGEST_ID = 512
_STREAM = "Open a stream of events, or a WebSocket"


class Bridge:
    """The endpoints of the bridge, for requests that the guard has let through."""

    def __init__(
        self,
        start: Start,
        *,
        limit: int,
        closing: asyncio.Event,
        limits: BridgeLimits | None = None,
    ) -> None:
        agents = AgentProcesses(start, limit)
        self._limits = limits or BridgeLimits()
        self._closing = closing
        self._sockets = Sockets(agents, closing, self._limits.stall)
        self.connections = HttpConnections(agents, closing, self._limits)
        route = functools.partial(Route, path=PATH)
        self.table = Table(
            [
                route(
                    method="POST",
                    handler=self._post,
                    summary="Send a message",
                    body=bytes,
                    body_limit=MAX_FRAME_BYTES,
                ),
                route(method="GET", handler=self._get, summary=_STREAM, socket=True),
                route(method="DELETE", handler=self._delete, summary="End a connection"),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] == "websocket":
                await self._sockets.serve(scope, receive, send)
                return
            response: ASGIApp = await scope[ROUTE].handler(Request(scope, receive))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            response = response_for(failure)
        await response(scope, receive, send)

    # ── Streamable HTTP ───────────────────────────────────────────────────────────────────────

    async def _post(self, request: Request) -> Response:
        frame = _checked(await _body(request, self._limits.body))
        message = outline(frame)
        if message.method == INITIALIZE and _header(request, CONNECTION_ID) is None:
            return await self._begin(frame, message)
        connection = self._connection(request)
        session = _header(request, SESSION_ID)
        if message.session is not None and message.session != session:
            raise RequestFailed(
                400, "invalid", f"{SESSION_ID} is missing, or names another session"
            )
        await connection.take(frame, message, session)
        return Response(status_code=202)

    async def _begin(self, frame: bytes, message: Outline) -> Response:
        if message.id is None:
            raise RequestFailed(
                400, "invalid", "a connection must start with an initialize request"
            )
        connection, welcome = await self.connections.begin(frame, message)
        return Response(welcome, headers={CONNECTION_ID: connection.id}, media_type=JSON)

    async def _get(self, request: Request) -> StreamedResponse:
        if EVENT_STREAM not in request.headers.get("accept", ""):
            raise RequestFailed(406, "not_acceptable", f"this is a stream of type {EVENT_STREAM}")
        connection = self._connection(request)
        mailbox = connection.mailbox(_header(request, SESSION_ID))
        if mailbox.is_read:
            raise RequestFailed(409, "taken", "this stream already has a reader")
        mailbox.is_read = True
        connection.reader_came()
        headers = HEADERS | {"content-type": EVENT_STREAM}
        return StreamedResponse(self._events(connection, mailbox), headers)

    async def _events(self, connection: HttpConnection, mailbox: Mailbox) -> AsyncGenerator[bytes]:
        try:
            yield HEARTBEAT  # so that the head is sent
            async for piece in with_beats(mailbox.events(), self._closing):
                yield HEARTBEAT if piece is None else piece
        finally:
            mailbox.is_read = False
            connection.reader_left()

    async def _delete(self, request: Request) -> Response:
        self._connection(request).ended.set()
        return Response(status_code=202)

    def _connection(self, request: Request) -> HttpConnection:
        connection_id = _header(request, CONNECTION_ID)
        if connection_id is None:
            raise RequestFailed(400, "invalid", f"{CONNECTION_ID} is missing")
        return self.connections.get(connection_id)


def make_app(
    bridge: Bridge, *, token: str, hosts: AllowedHosts, origins: Collection[str] = (), log: Log
) -> Guard:
    """An ASGI application; nothing of it can be reached but through the guard."""
    return Guard(bridge, bridge.table, token=token, hosts=hosts, origins=origins, log=log)


def _header(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    if value is not None and not 0 < len(value) <= _LONGEST_ID:
        raise RequestFailed(400, "invalid", f"{name} has an invalid value")
    return value


async def _body(request: Request, seconds: float) -> bytes:
    body = bytearray()
    pieces = request.stream()
    try:
        while True:
            async with asyncio.timeout(seconds):
                piece = await anext(pieces, None)
            if piece is None:
                return bytes(body)
            body += piece
    except TimeoutError:
        raise RequestFailed(408, "too_slow", "the body did not arrive in time") from None


def _checked(body: bytes) -> bytes:
    """One message. Raises Failure."""
    frame = body.strip()
    if frame.startswith(b"["):
        raise RequestFailed(501, "no_batches", "batches are not supported")
    try:
        msgspec.json.decode(frame, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RequestFailed(400, "malformed", "the body is not a message") from None
    return frame


_NORMAL, _FAILED, _STALLED = 1000, 1011, 1008
_LONGEST_REASON = 120


class Sockets:
    """`closing` ends all of them; `stall` is that of `BridgeLimits`."""

    def __init__(self, agents: AgentProcesses, closing: asyncio.Event, stall: float) -> None:
        self._agents = agents
        self._closing = closing
        self._stall = stall

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, from its acceptance to its end. Raises as `Agents.one` does before."""
        await receive()  # that it wants to connect
        async with self._agents.one() as agent:
            headers = [(CONNECTION_ID.lower().encode(), str(uuid.uuid4()).encode())]
            await send({"type": "websocket.accept", "headers": headers})
            code, reason = await self._relay(agent, receive, send)
            if code in (_FAILED, _STALLED):
                logger.warning("a connection was closed: %s", reason)
            with suppress(Exception):  # the other side may have gone first
                close = {"type": "websocket.close", "code": code, "reason": reason}
                await asyncio.wait_for(send(close), 1)

    async def _relay(self, agent: BridgedAgent, receive: Receive, send: Send) -> tuple[int, str]:
        """Both ways, until either has ended; how to close."""
        ways = [
            asyncio.create_task(_inward(agent, receive, self._stall)),
            asyncio.create_task(_outward(agent, send, self._stall)),
            asyncio.create_task(self._ending()),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _ending(self) -> tuple[int, str]:
        await self._closing.wait()
        return 1001, "the bridge is closing"


async def _inward(agent: BridgedAgent, receive: Receive, stall: float) -> tuple[int, str]:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return _NORMAL, ""
        if (text := message.get("text")) is not None:  # binary messages mean nothing here
            try:
                async with asyncio.timeout(stall):
                    await agent.send(text.encode())
            except TimeoutError:
                return _STALLED, "the agent did not read its input for too long"


async def _outward(agent: BridgedAgent, send: Send, stall: float) -> tuple[int, str]:
    try:
        async for frames in agent.frames():
            for frame in frames:
                async with asyncio.timeout(stall):
                    text = frame.decode("utf-8", "replace")
                    await send({"type": "websocket.send", "text": text})
    except FrameTooLarge as error:
        return _FAILED, str(error)
    except TimeoutError:
        return _STALLED, "nothing was read for too long"
    except OSError:
        return _NORMAL, ""  # the other side has gone
    return _FAILED, (await agent.why_ended())[:_LONGEST_REASON]


class BridgeOptions(Door, kw_only=True):
    """The options of `dragoman bridge`."""

    start: Start
    """Connects to an agent of its own for each client."""
    limit: int


def serve(
    settings: BridgeOptions, announce: Callable[[str], None], log: Callable[[str], None]
) -> None:
    """Serve until a signal arrives; `announce` receives the address, `log` one line per request.

    Raises ConfigError, and DragomanError when the address cannot be used.
    """
    descriptors.raise_limit()
    operator = Operator(announce, log)
    with Deadline(operator.note) as deadline:
        asyncio.run(_serve(settings, operator, deadline))


async def _serve(settings: BridgeOptions, operator: Operator, deadline: Deadline) -> None:
    token, listener = settings.token(), settings.listen()
    port = listener.getsockname()[1]
    closing = asyncio.Event()
    bridge = Bridge(settings.start, limit=settings.limit, closing=closing)
    app = make_app(
        bridge,
        token=token,
        hosts=AllowedHosts(settings.host, port),
        origins=settings.origins,
        log=operator.note_request,
    )
    async with serving(AsgiServer(app, closing, sockets=True), listener, deadline):
        operator.announce(f"{settings.address('ws', port)}{PATH}#token={token}")
    await bridge.connections.all_ended()
    deadline.all_is_done()
