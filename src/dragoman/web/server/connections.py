"""The connections of a server, and which to close when there are too many.

A client that has shown the token is always served. Others can open connections too. When there is
no room, one of those is closed, so that a client with the token gets in. Connections with a
complete request keep waiting for their response; among the others, neither silent connections nor
half requests crowd out the rest. uvicorn's HTTP protocol gets timeouts for stalled connections, and
our headers on its errors.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeAlias, cast

import h11
import msgspec
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from dragoman.process import descriptors
from dragoman.web.failures import ErrorBody, Problem
from dragoman.web.routing.route import JSON
from dragoman.web.server.guard import ADMIT, secured
from dragoman.web.streams.stream_response import ABORT, STALL_SECONDS

logger = logging.getLogger("dragoman.web")

HEAD_SECONDS = 10.0
"""For the head of a request, from its connection or from the head's first byte on."""
IDLE_SECONDS = 30
"""Between two requests."""
_AT_THE_DOOR = 32
"""So many strangers are heard however many connections are in use."""
_ANSWER_SECONDS = 0.5
"""A stranger who has asked is not cut off for so long: the answer may be that it has the token."""
_QUIET_SECONDS = 60.0

_Transports: TypeAlias = dict[asyncio.Transport, None]


class Connections:
    """At most `most`, by default half of the descriptors: the rest is for the store, agents and
    terminals. `head_seconds` is for a request's head; a reader that takes nothing of its response
    for `stall_seconds` is disconnected."""

    def __init__(
        self,
        most: int | None = None,
        *,
        head_seconds: float = HEAD_SECONDS,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self.most = descriptors.limit() // 2 if most is None else most
        self.head_seconds = head_seconds
        self.stall_seconds = stall_seconds
        self._silent: _Transports = {}
        self._half: _Transports = {}
        """Strangers with a part of a request's head."""
        self._asking: dict[asyncio.Transport, float] = {}
        """Strangers with a whole one that is not answered yet, and since when."""
        self._idle: _Transports = {}
        self._busy: _Transports = {}
        self._told_at: float | None = None

    def came(self, transport: asyncio.Transport) -> None:
        self._silent[transport] = None
        while self._strangers + len(self._idle) + len(self._busy) > self.most:
            self._tell(f"{self.most} connections are open: closing the oldest unused ones")
            least = self._least()
            if least is None:
                break
            self._cut_off(least)

    def began(self, transport: asyncio.Transport) -> None:
        """A part of a head has come."""
        if self._silent.pop(transport, transport) is None:
            self._half[transport] = None

    def asked(self, transport: asyncio.Transport) -> None:
        """A whole head has come."""
        self.began(transport)
        if self._half.pop(transport, transport) is None:
            self._asking[transport] = asyncio.get_running_loop().time()

    @property
    def _strangers(self) -> int:
        return len(self._silent) + len(self._half) + len(self._asking)

    def _least(self) -> asyncio.Transport | None:
        """Whom to cut off for one who has just come and is silent yet."""
        if self._strangers <= min(_AT_THE_DOOR, self.most):
            return next(iter(self._idle), None)
        if self._waits_long() or len(self._asking) > _AT_THE_DOOR:
            return next(iter(self._asking))
        most = max(self._half, self._silent, key=len)
        return next(iter(most)) if self._half or len(self._silent) > 1 else None

    def _waits_long(self) -> bool:
        first = next(iter(self._asking.values()), None)
        return first is not None and asyncio.get_running_loop().time() - first > _ANSWER_SECONDS

    def no_descriptors(self) -> None:
        """Not even for the next client, which may have the token: strangers make room."""
        self._tell("no free file descriptor for a new connection: closing those without a token")
        for transport in (*self._silent, *self._half):
            self._cut_off(transport)
        while self._waits_long():
            self._cut_off(next(iter(self._asking)))

    def admit(self, transport: asyncio.Transport) -> bool:
        """It has shown the token; False when too many others have, and are being served."""
        if len(self._busy) >= self.most:
            return False
        self.left(transport)
        self._busy[transport] = None
        return True

    def answered(self, transport: asyncio.Transport) -> None:
        if self._busy.pop(transport, transport) is None:
            self._idle[transport] = None
        elif self._asking.pop(transport, None) is not None:
            self._silent[transport] = None

    def left(self, transport: asyncio.Transport) -> None:
        for each in (self._silent, self._half, self._asking, self._idle, self._busy):
            each.pop(transport, None)

    def _cut_off(self, transport: asyncio.Transport) -> None:
        self.left(transport)
        transport.abort()

    def _tell(self, sentence: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._told_at is None or now - self._told_at > _QUIET_SECONDS:
            self._told_at = now
            logger.warning("%s", sentence)


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
        self._head_timer = _cancelled(self._head_timer)

    def _stop_watching(self) -> None:
        self._reader_timer = _cancelled(self._reader_timer)

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


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
