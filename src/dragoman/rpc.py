"""The peer: both ends of JSON-RPC over one transport, in wire order.

One reader handles notifications inline, before it settles the reply that follows them. Requests
from the other side run concurrently and the reader never waits for one. It does not know ACP:
methods are strings, params and results are JSON bytes.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.errors import (
    CallTimeout,
    ConnectionClosed,
    DragomanError,
    InternalError,
    InvalidRequest,
    PeerStalled,
    RequestCancelled,
    WouldDeadlock,
)
from dragoman.transport.transport import Transport
from dragoman.wire import messages
from dragoman.wire.error_replies import remote_error, to_wire
from dragoman.wire.fast_path import Usual
from dragoman.wire.framing import MAX_FRAME_BYTES, Framer, Noise
from dragoman.wire.in_flight import CANCEL_REQUEST, Answers, Calls, cancelled_id, encode_cancel
from dragoman.wire.messages import Failure, Id, Malformed, Notification, Reply, Request

OnNotification: TypeAlias = Callable[[str, msgspec.Raw], Coroutine[Any, Any, None] | None]
"""Handles a notification. What it awaits delays everything behind it on the wire."""
OnRequest: TypeAlias = Callable[[str, msgspec.Raw], Coroutine[Any, Any, bytes] | bytes]
"""Answers a request with the JSON of its result, now or later; what it raises is the error."""
Tap: TypeAlias = Callable[[Literal["sent", "received"], bytes], None]
"""Sees every message as the exact bytes of its frame, in wire order, before it is handled."""
OnReply: TypeAlias = Callable[[msgspec.Raw], None]
Pace: TypeAlias = Callable[[], Awaitable[None] | None]
"""Asked after each read; what it returns is awaited before more is read."""

_ODD_LINES_A_TURN = 256

logger = logging.getLogger("dragoman.rpc")
logging.getLogger("dragoman").addHandler(logging.NullHandler())


class PeerLimits(msgspec.Struct, frozen=True):
    """What one connection may hold; beyond it, something fails with a clear error."""

    frame_bytes: int = MAX_FRAME_BYTES
    requests: int = 64
    """Requests from the other side being answered at once."""
    waits: int = 4096
    """Likewise, for methods that wait for a person or a process and so are not counted above."""
    unsent_bytes: int = 64 * 1024 * 1024


class Peer:
    """One connection. Use it as an async context manager: it reads from enter to exit.

    `waits` names the methods whose requests may stay open for as long as it takes; they do not
    count towards `limits.requests`. While `is_held` says that a person is asked about one of our
    calls, none of them times out. The other side withdraws a request with `cancel_method`.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        on_notification: OnNotification,
        on_request: OnRequest,
        waits: frozenset[str] = frozenset(),
        tap: Tap | None = None,
        limits: PeerLimits | None = None,
        is_held: Callable[[], bool] = lambda: False,
        cancel_method: str = CANCEL_REQUEST,
    ) -> None:
        self._is_held = is_held
        self._cancel_method = cancel_method
        self.limits = limits or PeerLimits()
        self.noise = Noise()
        self.usual: Usual[Any] | None = None
        """The notification that has a quick way, which `on_notification` then seldom sees."""
        self.pace: Pace | None = None
        """Set by a handler that keeps what arrives, and needs time to."""
        self.pauses: int | None = 0
        """How often reading was paused and continued; None while it is paused."""
        self._transport = transport
        self._on_notification = on_notification
        self._on_request = on_request
        self._waits = waits
        self._tap = tap
        self._framer = Framer(self.limits.frame_bytes)
        self._calls: Calls[_Call] = Calls()
        self._answering: Answers[asyncio.Task[bytes]] = Answers()
        self._metered = 0
        self._spoke = False
        self._odd_lines = 0
        self._error: DragomanError | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    async def __aenter__(self) -> Peer:
        self._reader = asyncio.create_task(self._read(), name="dragoman reader")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def error(self) -> DragomanError | None:
        """Why the connection ended; None while it lives."""
        return self._error

    async def wait_ended(self) -> DragomanError:
        """Wait for the end of the connection, from either side, and return the reason."""
        await self._ended.wait()
        assert self._error is not None
        return self._error

    async def aclose(self, reason: str = "the connection is closed") -> None:
        """Close the transport and settle everything that still waits, with ConnectionClosed."""
        self._finish(ConnectionClosed(reason))
        try:
            await self._transport.aclose()
        finally:
            await self._stop_tasks()

    # ── calling the other side ────────────────────────────────────────────────────────────────

    async def call(
        self,
        method: str,
        params: bytes,
        *,
        timeout: float | None = None,
        on_reply: OnReply | None = None,
        on_sent: Callable[[Id], None] | None = None,
    ) -> msgspec.Raw:
        """Send a request and wait for its result.

        `on_reply` runs in the reader, in wire order: after every notification before the reply and
        before any after it; `on_sent` gets the id first. A call given up (timeout,
        cancellation) tells the other side so.

        Raises RemoteError for an error reply, CallTimeout, ConnectionLost or ProtocolError when the
        connection ends first, WouldDeadlock inside a notification handler.
        """
        if self._reader is not None and asyncio.current_task() is self._reader:
            raise WouldDeadlock(method)
        future: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        key = self._calls.open(_Call(future, on_reply))
        try:
            if on_sent is not None:
                on_sent(key)
            self._send(messages.encode_request(key, method, params))
            if timeout is not None:
                await self._within(timeout, method, future)
            return await future
        finally:
            if self._calls.settle(key) is not None and self._error is None:
                self._send(encode_cancel(key))

    async def _within(
        self, seconds: float, method: str, future: asyncio.Future[msgspec.Raw]
    ) -> None:
        """Until there is a reply. Time in which a person is asked does not count, nor does time in
        which nothing is read here."""
        pauses = self.pauses
        while not (await asyncio.wait([future], timeout=seconds))[0]:
            before, pauses = pauses, self.pauses
            if not self._is_held() and pauses is not None and pauses == before:
                raise CallTimeout(method, seconds)

    def notify(self, method: str, params: bytes) -> None:
        """Send a notification. Raises what ended the connection if it has ended."""
        self._send(messages.encode_notification(method, params))

    def _send(self, frame: bytes) -> None:
        if self._error is not None:
            # Without its earlier traceback: it is raised repeatedly.
            raise self._error.with_traceback(None)
        self._record("sent", frame)
        self._transport.send(frame + b"\n")
        if self._transport.pending > self.limits.unsent_bytes:
            self._finish(PeerStalled(self._transport.pending))

    def _record(self, direction: Literal["sent", "received"], *frames: bytes) -> None:
        tap = self._tap
        if tap is None:
            return
        try:
            for frame in frames:
                tap(direction, frame)
        except Exception:
            # A listener must not be able to break the conversation.
            self._tap = None
            logger.exception("the tap failed and was removed")

    # ── reading ───────────────────────────────────────────────────────────────────────────────

    async def _read(self) -> None:
        error: DragomanError = ConnectionClosed()
        try:
            while self._error is None and (data := await self._transport.receive()):
                await self._receive_all(data)
                if self.pace is not None and (pause := self.pace()) is not None:
                    await self._rest(pause)
            if self._error is None:
                error = await self._end_of_input()
        except DragomanError as fatal:
            error = fatal
        except Exception:
            logger.exception("the reader failed")
            error = ConnectionClosed("the connection was closed after an internal error")
        finally:
            self._finish(error)

    async def _rest(self, pause: Awaitable[None]) -> None:
        before, self.pauses = self.pauses or 0, None
        try:
            await pause
        finally:
            self.pauses = before + 1

    async def _receive_all(self, data: bytes) -> None:
        frames, usual = self._framer.feed(data), self.usual
        try:
            while self._error is None:
                frame = next(frames, None) if usual is None else usual.take(frames)
                if frame is None:
                    return
                if (handling := self._receive(frame)) is not None:
                    await handling
        finally:
            if usual is not None:
                self._hand_over(usual)

    async def _end_of_input(self) -> DragomanError:
        # The last message of a dying agent may lack its newline; half a message is noise.
        rest = self._framer.rest()
        if messages.is_whole(rest):
            await self._receive_all(rest + b"\n")
        elif rest.strip():
            self._skip(rest, "cut off by the end")
        return await self._transport.failure(spoke=self._spoke, printed=self.noise.sample)

    def _receive(self, frame: bytes) -> Coroutine[Any, Any, None] | None:
        if self.usual is not None:
            self._hand_over(self.usual)
            if self._error is not None:
                return None
        message = messages.decode(frame)
        if type(message) is Malformed:
            return self._malformed(message, frame)
        self._spoke = True
        if self._tap is not None:
            self._record("received", frame)
        # Nearly every frame is one, and a `match` takes a tenth of all that is done for it.
        if type(message) is Notification:
            if self.usual is not None and self.usual.method == message.method:
                self.usual.expect()
            return self._notified(message)
        match message:
            case Request():
                self._requested(message)
            case Reply():
                self._replied(message)
            case Failure():
                self._failed(message)
            case _:
                pass
        return None

    def _hand_over(self, usual: Usual[Any]) -> None:
        if self._tap is not None:
            self._record("received", *usual.frames)
        try:
            usual.hand_over()
        except (Exception, asyncio.CancelledError):
            logger.exception("a handler of %s failed", usual.method)

    def _malformed(self, message: Malformed, frame: bytes) -> Coroutine[Any, Any, None] | None:
        if frame.strip():
            self._refuse(message, frame)
        # One read can hold tens of thousands of such lines: others get their turn in between.
        self._odd_lines += 1
        return asyncio.sleep(0) if self._odd_lines % _ODD_LINES_A_TURN == 0 else None

    def _refuse(self, message: Malformed, frame: bytes) -> None:
        if message.is_json or message.id is not None:
            self._record("received", frame)
        self._skip(frame, message.reason)
        if message.id is not None:
            self._answer_error(message.id, InvalidRequest(message.reason))

    def _skip(self, frame: bytes, reason: str) -> None:
        self.noise.add(frame)
        logger.debug("skipped a line of %d bytes: %s", len(frame), reason)

    def _notified(self, message: Notification) -> Coroutine[Any, Any, None] | None:
        if message.method == self._cancel_method:
            self._cancel_answer(message.params)
            return None
        try:
            handling = self._on_notification(message.method, message.params)
        except (Exception, asyncio.CancelledError):
            logger.exception("a handler of %s failed", message.method)
            return None
        return None if handling is None else self._finish_handling(message.method, handling)

    async def _finish_handling(self, method: str, handling: Coroutine[Any, Any, None]) -> None:
        try:
            await handling
        except asyncio.CancelledError:
            # Ours if the reader is being stopped; else of something the handler waited for.
            if self._reader is None or self._reader.cancelling():
                raise
            logger.exception("a handler of %s was cancelled", method)
        except Exception:
            logger.exception("a handler of %s failed", method)

    def _replied(self, reply: Reply) -> None:
        call = self._calls.settle(reply.id)
        if call is None:
            logger.debug("a reply with an unknown id was ignored")
            return
        try:
            if call.on_reply is not None:
                call.on_reply(reply.result)
        except Exception as error:
            call.fail(error)
        else:
            call.succeed(reply.result)

    def _failed(self, failure: Failure) -> None:
        call = self._calls.settle(failure.id)
        if call is None:
            logger.debug("an error reply with an unknown id was ignored")
        else:
            call.fail(remote_error(failure.code, failure.message, failure.data))

    # ── answering the other side ──────────────────────────────────────────────────────────────

    def _requested(self, request: Request) -> None:
        waits = request.method in self._waits
        if self._answering.is_open(request.id):
            # Nobody could tell its answer from that of the first.
            sentence = "a request with this id is still open"
            self._answer_error(request.id, InvalidRequest(sentence))
            return
        if self._overloaded(waits):
            self._answer_error(request.id, InternalError("too many requests at once"))
            return
        try:
            answer = self._on_request(request.method, request.params)
        except (Exception, asyncio.CancelledError) as error:
            self._answer_failed(request, error)
            return
        if isinstance(answer, bytes | msgspec.Raw):
            self._answer_result(request, answer)
            return
        task = _started(answer)
        self._answering.open(task, request)
        self._metered += not waits
        if task.done():
            self._answered(task)
        else:
            task.add_done_callback(self._answered)
        if self._error is not None:  # the handler itself may have ended the connection
            task.cancel()

    def _overloaded(self, waits: bool) -> bool:
        if waits:
            return len(self._answering) - self._metered >= self.limits.waits
        return self._metered >= self.limits.requests

    def _answered(self, task: asyncio.Task[bytes]) -> None:
        request = self._answering.close(task)
        self._metered -= request.method not in self._waits
        if task.cancelled():
            self._answer_error(request.id, RequestCancelled())
        elif (error := task.exception()) is not None:
            self._answer_failed(request, error)
        else:
            self._answer_result(request, task.result())

    def _answer_result(self, request: Request, result: bytes) -> None:
        try:
            frame = messages.encode_reply(request.id, result)
        except (msgspec.DecodeError, TypeError) as error:
            self._answer_failed(request, error)
        else:
            self._answer(frame)

    def _answer_failed(self, request: Request, error: BaseException) -> None:
        if not isinstance(error, DragomanError):
            logger.error("the handler of %s failed", request.method, exc_info=error)
        self._answer_error(request.id, error)

    def _answer_error(self, key: Id, error: BaseException) -> None:
        code, message, data = to_wire(error)
        self._answer(messages.encode_failure(key, code, message, data))

    def _answer(self, frame: bytes) -> None:
        """Once the connection has ended there is nobody left to answer."""
        if self._error is None:
            self._send(frame)

    def _cancel_answer(self, params: msgspec.Raw) -> None:
        wanted = cancelled_id(params)
        for task in self._answering.cancel(wanted) if wanted is not None else ():
            task.cancel()

    # ── the end ───────────────────────────────────────────────────────────────────────────────

    def _finish(self, error: DragomanError) -> None:
        """Settle everything that waits, once, with the reason the connection ended."""
        if self._error is not None:
            return
        self._error = error
        for call in self._calls.close():
            call.fail(error)
        for task in self._others(self._answering):
            task.cancel()
        self._ended.set()

    async def _stop_tasks(self) -> None:
        readers = self._others([self._reader] if self._reader is not None else [])
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, *self._others(self._answering), return_exceptions=True)

    def _others(self, tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
        """A handler may end the connection: it must neither cancel itself nor wait for itself."""
        return [task for task in tasks if task is not asyncio.current_task()]


class _Call(msgspec.Struct, frozen=True):
    future: asyncio.Future[msgspec.Raw]
    on_reply: OnReply | None

    def succeed(self, result: msgspec.Raw) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


if sys.version_info >= (3, 12):

    def _started(work: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes]:
        """What needs no waiting is done when this returns, without a turn of the event loop."""
        return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)

else:

    def _started(work: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes]:
        return asyncio.create_task(work)
