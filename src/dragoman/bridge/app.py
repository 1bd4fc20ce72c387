"""The bridge as an application behind the server's guard: one path, for both ways to reach it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.bridge.agent_processes import AgentProcesses
from dragoman.bridge.http_connections import HttpConnection, HttpConnections, Mailbox
from dragoman.bridge.websocket_agent import Sockets
from dragoman.transport.base import Start
from dragoman.transport.http_routing import (
    CONNECTION_ID,
    EVENT_STREAM,
    INITIALIZE,
    JSON,
    SESSION_ID,
    Outline,
    outline,
)
from dragoman.web.failures import RequestFailed, failure_of, response_for
from dragoman.web.routing.route import Route, Table
from dragoman.web.server.guard import ROUTE, Guard, Log
from dragoman.web.server.host_header import AllowedHosts
from dragoman.web.streams.sse import HEADERS, HEARTBEAT
from dragoman.web.streams.stream_response import StreamedResponse, with_beats
from dragoman.wire.framing import MAX_FRAME_BYTES

logger = logging.getLogger("dragoman.bridge")

PATH = "/acp"
BODY_SECONDS = 60.0
"""For each piece of it."""
_LONGEST_ID = 512


class Bridge:
    """Everything behind the guard."""

    def __init__(self, start: Start, *, limit: int, closing: asyncio.Event) -> None:
        agents = AgentProcesses(start, limit)
        self._closing = closing
        self._sockets = Sockets(agents, closing)
        self.connections = HttpConnections(agents, closing)
        self.table = Table(
            [
                Route(
                    method="POST",
                    path=PATH,
                    handler=self._post,
                    summary="Send a message",
                    body=bytes,
                    body_limit=MAX_FRAME_BYTES,
                ),
                Route(
                    method="GET",
                    path=PATH,
                    handler=self._get,
                    summary="Open a stream of events, or a WebSocket",
                    socket=True,
                ),
                Route(
                    method="DELETE",
                    path=PATH,
                    handler=self._delete,
                    summary="End a connection",
                ),
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
        frame = _checked(await _body(request))
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


async def _body(request: Request) -> bytes:
    body = bytearray()
    pieces = request.stream()
    try:
        while True:
            async with asyncio.timeout(BODY_SECONDS):
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
