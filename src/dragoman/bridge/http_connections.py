"""Connections over Streamable HTTP: one agent each, and the mailbox of each stream.

A message of a session goes on the session's stream, anything else, and what answers the opening of
a session, on the connection's. A connection that nobody reads from for a while is ended.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import msgspec

from dragoman.bridge.agent_processes import AgentProcesses, BridgedAgent
from dragoman.errors import FrameTooLarge
from dragoman.transport.http_routing import Outline, outline
from dragoman.web.failures import RequestFailed

logger = logging.getLogger("dragoman.bridge")

_INITIALIZE_SECONDS = 60.0
_MAX_WAITING = 64 * 1024 * 1024
_ON_CONNECTION = ("session/load",)
"""Requests of a session whose reply goes to the connection's stream anyway."""


class BridgeLimits(msgspec.Struct, kw_only=True, frozen=True):
    """How much a connection may hold, and how long it waits, in seconds."""

    sessions: int = 1024
    unread: float = 60.0
    """For a reader, before a connection over HTTP is ended."""
    stall: float = 60.0
    """For a reader to take something, before it is cut off and its agent ends. The same for an
    agent that takes nothing, since meanwhile its client could not be seen leaving."""
    body: float = 60.0
    """For each piece of a request's body."""


class HttpConnection:
    """One agent, from its first message on. Make one with `Connections.begin`."""

    def __init__(self, agent: BridgedAgent, limits: BridgeLimits) -> None:
        self.id = str(uuid.uuid4())
        self._limits = limits
        self.ended = asyncio.Event()
        self._agent = agent
        self._tally = ConnectionTally(_MAX_WAITING)
        self._main = Mailbox(self._tally)
        self._sessions: dict[str, Mailbox] = {}
        self._expected: dict[bytes, str | None] = {}
        """Where the answers to requests go."""
        self._welcome: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._welcome_id: bytes | None = None
        self._why = "the agent was ended"
        self._readers = 0
        self._unread: asyncio.TimerHandle | None = None

    async def initialize(self, frame: bytes, message: Outline) -> bytes:
        """The agent's answer. Raises Failure."""
        self._welcome_id = message.id
        ending = asyncio.create_task(self.ended.wait())
        try:
            async with asyncio.timeout(_INITIALIZE_SECONDS):
                await self._agent.send(frame)
                await asyncio.wait({self._welcome, ending}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise RequestFailed(504, "agent_silent", "the agent does not respond") from None
        finally:
            ending.cancel()
        if not self._welcome.done():
            raise RequestFailed(502, "agent_failed", self._why)
        self._watch()
        return self._welcome.result()

    async def take(self, frame: bytes, message: Outline, session: str | None) -> None:
        """A message from the client."""
        if message.is_request and message.id is not None:
            is_ours = message.method in _ON_CONNECTION
            self._expected[message.id] = None if is_ours else session
        await self._agent.send(frame)

    def mailbox(self, session: str | None) -> Mailbox:
        """Raises Failure when there are too many sessions."""
        if session is None:
            return self._main
        most = self._limits.sessions
        if session not in self._sessions and len(self._sessions) >= most:
            self._forget_idle()
            if len(self._sessions) >= most:
                raise RequestFailed(
                    429, "too_many", "there are too many sessions on this connection"
                )
        return self._sessions.setdefault(session, Mailbox(self._tally))

    def _forget_idle(self) -> None:
        self._sessions = {name: box for name, box in self._sessions.items() if not box.is_idle}

    # ── is anyone reading? ────────────────────────────────────────────────────────────────────

    def reader_came(self) -> None:
        self._readers += 1
        self._watch()

    def reader_left(self) -> None:
        self._readers -= 1
        self._watch()

    def _watch(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        if not self._readers and not self.ended.is_set():
            loop = asyncio.get_running_loop()
            self._unread = loop.call_later(self._limits.unread, self.ended.set)

    # ── from the agent ────────────────────────────────────────────────────────────────────────

    async def read(self) -> None:
        """Sort what the agent says, to its end."""
        try:
            async for frames in self._agent.frames():
                for frame in frames:
                    self._sort(frame)
                await self._tally.room(self._limits.stall)
            self._why = await self._agent.why_ended()
            logger.warning("a connection was closed: %s", self._why)
        except FrameTooLarge as error:
            logger.warning("a connection was closed: %s", error)
        except TimeoutError:
            logger.warning("a connection was closed: its client read nothing for too long")
        finally:
            self.ended.set()

    def _sort(self, frame: bytes) -> None:
        message = outline(frame)
        if message.is_answer and message.id == self._welcome_id and not self._welcome.done():
            self._welcome.set_result(frame)
            return
        session = message.session
        if message.is_answer and message.id is not None:
            session = self._expected.pop(message.id, None)
        try:
            self.mailbox(session).put(frame)
        except RequestFailed as error:
            logger.warning("a message without a reader was dropped: %s", error.message)

    def close(self) -> None:
        """The streams end behind what they hold."""
        self.ended.set()
        if self._unread is not None:
            self._unread.cancel()
        for mailbox in (self._main, *self._sessions.values()):
            mailbox.end()


class HttpConnections:
    """All of them, by their ids. `closing` ends them."""

    def __init__(
        self, agents: AgentProcesses, closing: asyncio.Event, limits: BridgeLimits
    ) -> None:
        self._limits = limits
        self._agents = agents
        self._closing = closing
        self._open: dict[str, HttpConnection] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def begin(self, frame: bytes, message: Outline) -> tuple[HttpConnection, bytes]:
        """A connection and the agent's answer. Raises Failure, StartError."""
        stack = AsyncExitStack()
        agent = await stack.enter_async_context(self._agents.one())
        connection = HttpConnection(agent, self._limits)
        task = asyncio.create_task(self._run(connection, stack))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            welcome = await connection.initialize(frame, message)
        except BaseException:
            connection.ended.set()
            raise
        if not connection.ended.is_set():
            self._open[connection.id] = connection
        return connection, welcome

    async def _run(self, connection: HttpConnection, stack: AsyncExitStack) -> None:
        waits: list[asyncio.Task[Any]] = [
            asyncio.create_task(connection.read()),
            asyncio.create_task(connection.ended.wait()),
            asyncio.create_task(self._closing.wait()),
        ]
        async with stack:
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._open.pop(connection.id, None)
                connection.close()
                for wait in waits:
                    wait.cancel()
                await asyncio.gather(*waits, return_exceptions=True)

    def get(self, connection_id: str) -> HttpConnection:
        """Raises Failure for one that no longer exists."""
        found = self._open.get(connection_id)
        if found is None:
            raise RequestFailed(404, "unknown_connection", "unknown connection")
        return found

    async def all_ended(self) -> None:
        """Once `closing` is set: their agents too."""
        await asyncio.gather(*self._running, return_exceptions=True)


_PIECE_BYTES = 64 * 1024
_OVERHEAD_BYTES = 64
"""The overhead of holding a frame: many small ones add up."""


class ConnectionTally:
    """How much waits in all the mailboxes of a connection. Senders wait for room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._changed = asyncio.Event()

    def add(self, size: int) -> None:
        self._held += size

    def take(self, size: int) -> None:
        self._held -= size
        self._changed.set()

    async def room(self, stall_seconds: float) -> None:
        """Raises TimeoutError when nobody takes anything for so long."""
        while self._held > self._limit:
            self._changed.clear()
            async with asyncio.timeout(stall_seconds):
                await self._changed.wait()


class Mailbox:
    """Frames for one stream, kept until someone reads them."""

    def __init__(self, tally: ConnectionTally) -> None:
        self.is_read = False
        self._tally = tally
        self._frames: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._is_over = False

    def put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._tally.add(len(frame) + _OVERHEAD_BYTES)
        self._changed.set()

    @property
    def is_idle(self) -> bool:
        """Nothing is here, and nobody waits for anything."""
        return not self._frames and not self.is_read

    def end(self) -> None:
        """No more will come; what is there can still be read."""
        self._is_over = True
        self._changed.set()

    async def events(self) -> AsyncGenerator[bytes]:
        """Server-sent events in pieces that are worth a write, and small enough that a slow reader
        is seen to take them."""
        while True:
            while self._frames:
                for part in self._parts():
                    yield part
            if self._is_over:
                return
            self._changed.clear()
            await self._changed.wait()

    def _parts(self) -> Iterator[bytes]:
        """The tally falls as they are taken, which tells that someone reads."""
        piece, held = self._piece()
        try:
            for start in range(0, len(piece), _PIECE_BYTES):
                yield piece[start : start + _PIECE_BYTES]
                taken = min(held, _PIECE_BYTES)
                held -= taken
                self._tally.take(taken)
        finally:
            self._tally.take(held)

    def _piece(self) -> tuple[bytes, int]:
        """Some frames as events, and what they counted."""
        parts: list[bytes] = []
        size = 0
        while self._frames and size < _PIECE_BYTES:
            frame = self._frames.popleft()
            size += len(frame) + _OVERHEAD_BYTES
            # A carriage return would end the line for a reader of events.
            parts.append(b"data: %b\n\n" % frame.replace(b"\r", b" "))
        return b"".join(parts), size
