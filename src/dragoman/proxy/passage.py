"""The connection of a proxy to its conductor: what comes is recorded, judged, and passed on.

Everything is passed on in the order in which it came, except for a permission request, which waits
until it is judged, and what other windows ask for.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import msgspec

from dragoman.errors import (
    DragomanError,
    InternalError,
    InvalidMessage,
    InvalidParams,
    InvalidRequest,
    RequestCancelled,
    StoreError,
)
from dragoman.proxy.chronicle import Chronicle
from dragoman.proxy.client_question import ClientQuestion
from dragoman.schema import codec
from dragoman.transport.transport import Transport
from dragoman.wire import messages
from dragoman.wire.error_replies import to_wire
from dragoman.wire.framing import MAX_FRAME_BYTES, Framer
from dragoman.wire.messages import Failure, Malformed, Message, Notification, Reply, Request
from dragoman.wire.proxy_passing import GivenUp, Heard, Misplaced, PassedRequest, Passing, Side
from dragoman.wire.proxy_routing import DEEPEST

logger = logging.getLogger("dragoman.proxy")

_MUCH_UNSENT = 4 * 1024 * 1024
_GIVEN_UP = frozenset({"session/close", "session/delete"})


class _OfSession(msgspec.Struct, rename="camel"):
    session_id: str = ""


class Passage:
    """One connection. `run` ends with it."""

    def __init__(self, transport: Transport, chronicle: Chronicle) -> None:
        self._transport = transport
        self._chronicle = chronicle
        self._framer = Framer(MAX_FRAME_BYTES)
        self._passing = Passing()
        self._questions: dict[PassedRequest, ClientQuestion] = {}
        self._asking: dict[PassedRequest, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until the conductor closes the connection. Raises FrameTooLarge."""
        try:
            while data := await self._transport.receive():
                for frame in self._framer.feed(data):
                    await self._take(frame)
                await self._keep_pace()
        finally:
            for task in self._asking.values():
                task.cancel()
            if self._asking:
                await asyncio.wait(list(self._asking.values()))

    async def _keep_pace(self) -> None:
        """While the conductor does not read, or the store is behind, nothing more is read."""
        if self._transport.pending > _MUCH_UNSENT:
            await self._transport.drain()
        for recorder in self._chronicle.recorders():
            await recorder.caught_up()

    def _send(self, frame: bytes) -> None:
        self._transport.send(frame + b"\n")

    async def _take(self, frame: bytes) -> None:
        message = messages.decode(frame, DEEPEST)
        if isinstance(message, Malformed):
            if message.id is not None:
                self._refuse(message.id, InvalidRequest(message.reason))
            return
        heard = self._meant(message)
        match heard:
            case Heard(side=side, message=Notification() as told):
                self._chronicle.note(side, told)
                self._send(self._passing.told(_other(side), told))
            case Heard(side=side, message=Request() as request):
                await self._requested(side, request)
            case Heard(message=Reply() | Failure() as answer, asked=asked) if asked is not None:
                await self._answered(asked, answer)
            case GivenUp(asked):
                self._given_up(asked)
            case _:
                pass

    def _meant(self, message: Message) -> Heard | GivenUp | None:
        try:
            return self._passing.heard(message)
        except Misplaced as error:
            if isinstance(message, Request):
                self._refuse(message.id, InvalidRequest(str(error)))
            return None

    # ── requests ──────────────────────────────────────────────────────────────────────────────

    async def _requested(self, side: Side, request: Request) -> None:
        asked = self._passing.taken(side, request)
        if asked is None:
            self._refuse(request.id, InternalError("too many requests at once"))
            return
        try:
            if side == "client":
                await self._chronicle.before(request)
            elif self._chronicle.is_question(request):
                self._asking[asked] = asyncio.create_task(self._ask(asked))
                return
            else:
                self._chronicle.check(request)
        except DragomanError as error:
            self._fail(asked, error)
            return
        self._chronicle.note(side, request)
        self._send(self._passing.put(asked))

    async def _ask(self, asked: PassedRequest) -> None:
        """A permission request, from the rules, the client or another window."""
        question = self._questions[asked] = ClientQuestion(asked, self._put, self._withdraw)
        try:
            answer = await self._chronicle.permission(asked.request, question)
            if answer is None:  # it is about nothing that we know
                answer = await question.plainly()
            self._send(self._passing.answer(asked, answer))
        except asyncio.CancelledError:
            self._fail(asked, RequestCancelled())
        except DragomanError as error:
            self._fail(asked, error)
        finally:
            del self._questions[asked], self._asking[asked]

    def _put(self, asked: PassedRequest) -> None:
        self._send(self._passing.put(asked))

    def _withdraw(self, asked: PassedRequest) -> None:
        if (frame := self._passing.withdrawn(asked)) is not None:
            self._passing.forgotten(asked)
            self._send(frame)

    def _given_up(self, asked: PassedRequest) -> None:
        if (asking := self._asking.get(asked)) is not None:
            asking.cancel()
        elif (frame := self._passing.withdrawn(asked)) is not None:
            self._send(frame)

    # ── answers ───────────────────────────────────────────────────────────────────────────────

    async def _answered(self, asked: PassedRequest, answer: Reply | Failure) -> None:
        if (question := self._questions.get(asked)) is not None:
            question.replied(answer)
            return
        try:
            if asked.side == "client":
                await self._chronicle.made(asked.request, answer)
        except DragomanError as error:
            self._fail(asked, error)
            return
        # It is the one who was asked that speaks.
        self._chronicle.note(_other(asked.side), answer)
        self._send(self._passing.answer(asked, answer))
        if asked.request.method in _GIVEN_UP and isinstance(answer, Reply):
            with suppress(InvalidMessage):
                closed = codec.decode(asked.request.params, _OfSession).session_id
                await self._chronicle.close(closed)

    def _fail(self, asked: PassedRequest, error: DragomanError) -> None:
        if isinstance(error, InvalidMessage):
            error = InvalidParams(str(error))
        elif isinstance(error, StoreError):
            error = InternalError(f"the session cannot be recorded: {error}")
        self._send(self._passing.answer(asked, Failure(asked.request.id, *to_wire(error))))

    def _refuse(self, key: bytes, error: DragomanError) -> None:
        self._send(messages.encode_failure(key, *to_wire(error)))

    # ── what other windows ask for ────────────────────────────────────────────────────────────

    def cancel(self, agent_session_id: str) -> None:
        """Have the agent stop, as if the client had asked for it."""
        params = msgspec.Raw(codec.encode({"sessionId": agent_session_id}))
        told = Notification("session/cancel", params)
        self._chronicle.note("client", told)
        self._send(self._passing.told("successor", told))


def _other(side: Side) -> Side:
    return "successor" if side == "client" else "client"
