"""uvicorn's HTTP protocol, with timeouts for stalled connections and our headers on its errors."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
import msgspec
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from dragoman.web.failures import ErrorBody, Problem
from dragoman.web.routing.route import JSON
from dragoman.web.server.connections import Connections
from dragoman.web.server.guard import ADMIT, secured
from dragoman.web.streams.stream_response import ABORT


class SharedState(ServerState):
    """What the connections of a server share."""

    def __init__(self, open_now: Connections) -> None:
        super().__init__()
        self.open_now = open_now


def open_now(state: ServerState) -> Connections:
    return cast("SharedState", state).open_now


def told_of(app: Any, transport: asyncio.Transport, state: ServerState) -> ASGIApp:
    """The app; each request finds in its scope how to end its connection at once, and how to say
    that its sender has the token."""

    async def told(scope: Any, receive: Any, send: Any) -> None:
        scope[ABORT] = transport.abort
        scope[ADMIT] = lambda: open_now(state).admit(transport)
        await app(scope, receive, send)

    return told


class Protocol(H11Protocol):
    """A connection; it is closed if it does not send the request headers in time."""

    _head_timer: asyncio.TimerHandle | None = None
    _reader_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.app = cast("Any", told_of(self.app, transport, self.server_state))
        self._await_head()
        open_now(self.server_state).came(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        open_now(self.server_state).left(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            open_now(self.server_state).asked(self.transport)
            self._stop_waiting()
            self._stop_watching()
            return
        open_now(self.server_state).began(self.transport)
        if self._head_timer is None:
            self._await_head()  # the next one has begun

    def on_response_complete(self) -> None:
        open_now(self.server_state).answered(self.transport)
        self._watch_reader()
        super().on_response_complete()

    def _watch_reader(self, unread: int | None = None) -> None:
        """What was answered is sent for as long as the reader takes some of it: closing would wait
        for one that takes nothing."""
        left = self.transport.get_write_buffer_size()
        if left == unread:
            self.transport.abort()
        elif left:
            seconds = open_now(self.server_state).stall_seconds
            self._reader_timer = self.loop.call_later(seconds, self._watch_reader, left)

    def _await_head(self) -> None:
        seconds = open_now(self.server_state).head_seconds
        self._head_timer = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_watching(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _unsupported_upgrade_warning(self) -> None:
        """Anyone may ask for one: the guard refuses it, and that is not worth a log line."""

    def send_400_response(self, msg: str) -> None:
        """For what is not HTTP: the guard never sees it."""
        body = msgspec.json.encode(ErrorBody(Problem("malformed", "not HTTP")))
        headers = secured(
            [
                (b"content-type", JSON.encode()),
                (b"content-length", b"%d" % len(body)),
                (b"connection", b"close"),
            ]
        )
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
