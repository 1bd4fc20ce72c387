"""A raw end of a connection: sends anything, right or wrong, and sees every frame.

It decides nothing. What the other side should do is for the checks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec

from dragoman.conformance.check import CheckFailed, NoResponse
from dragoman.conformance.probing.evidence import Evidence
from dragoman.conformance.probing.loose_json import Wire, at, obj
from dragoman.conformance.probing.pretend_host import AgentRequest, Refused
from dragoman.conformance.probing.wait_limit import Wait, WaitLimit
from dragoman.errors import DragomanError
from dragoman.transport.transport import Transport
from dragoman.wire.framing import Framer

PING = "_conformance/ping"
"""A method nobody has: any answer to it shows that the other side is alive, and has read so far."""


class Received(msgspec.Struct, frozen=True):
    """A message of the other side, with the frame it came in."""

    message: Wire
    frame: bytes


class Answering(Protocol):
    """What answers the other side's requests."""

    def answer(self, asked: AgentRequest) -> Any:
        """The result; None if there is none yet. Raises Refused."""
        ...


Host = TypeVar("Host", bound=Answering)


class Probe(Generic[Host]):
    """One connection, whose other side is examined. Use it as an async context manager."""

    def __init__(
        self,
        transport: Transport,
        host: Host,
        evidence: Evidence,
        limit: WaitLimit,
        who: str = "the agent",
    ) -> None:
        self.transport = transport
        self.host = host
        self.who = who
        self.received: list[Received] = []
        self.noise: list[bytes] = []
        """Lines that are not JSON-RPC messages."""
        self.over: DragomanError | None = None
        """Why the connection ended, once it has."""
        self.limit = limit
        self._evidence = evidence
        self._changed = asyncio.Event()
        self._framer = Framer()
        self._numbers = 0
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read(), name="conformance probe")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self.transport.aclose()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    # ── sending ───────────────────────────────────────────────────────────────────────────────

    def write(self, data: bytes) -> None:
        """Bytes as they are."""
        self._evidence.note("→", data.rstrip(b"\n"))
        self.transport.send(data)

    def send(self, message: Wire) -> None:
        self.write(frame_of(message))

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Any, key: Any = None) -> Any:
        """Send a request; the id it has."""
        if key is None:
            self._numbers += 1
            key = self._numbers
        self.send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        return key

    async def call(self, method: str, params: Any, key: Any = None) -> Wire:
        """Send a request and wait for its reply, a result or an error."""
        return await self.reply_to(self.begin(method, params, key), method)

    async def result(self, method: str, params: Any) -> Wire:
        """The result of a request that has to succeed. Raises CheckFailed for an error."""
        reply = await self.call(method, params)
        if reply.get("error") is not None:
            raise CheckFailed(f"{method} failed: {error_text(reply)}")
        return obj(reply.get("result"))

    # ── waiting ───────────────────────────────────────────────────────────────────────────────

    async def reply_to(self, key: Any, method: str = "the request") -> Wire:
        """The reply with this id, and no other. Raises CheckFailed if there is none."""
        found = await self.until(lambda each: is_reply(each, key), f"a response to {method}")
        return found.message

    async def until(self, wanted: Callable[[Wire], bool], what: str, since: int = 0) -> Received:
        """The first message that is wanted, of those received from `since` on."""
        start, wait = since, self.limit.wait()
        while True:
            for each in self.received[start:]:
                if wanted(each.message):
                    return each
            start = len(self.received)
            if self.over is not None:
                raise NoResponse(f"{self.who} ended before {what} came: {self.over}")
            if not await self.change(wait):
                raise NoResponse(f"{what} did not come within {self.limit.seconds:g} s")

    async def change(self, wait: Wait) -> bool:
        """Wait for something to arrive, or for the end; whether it came in time."""
        self._changed.clear()
        return await wait.happens(self._changed.wait)

    async def end(self) -> bool:
        """Wait for the end of the connection; whether it came in time."""
        wait = self.limit.wait()
        while self.over is None:
            if not await self.change(wait):
                return False
        return True

    async def settle(self, after: str = "it") -> None:
        """Wait until the other side has read all that was sent, and answered what it answers at
        once. Raises CheckFailed if it answers nothing any longer."""
        try:
            await self.call(PING, {})
        except CheckFailed as failed:
            raise NoResponse(f"after {after}, {self.who} stopped responding: {failed}") from None

    # ── what arrives ──────────────────────────────────────────────────────────────────────────

    def replies(self, key: Any, since: int = 0) -> list[Received]:
        """Every reply with this id."""
        return [each for each in self.received[since:] if is_reply(each.message, key)]

    @property
    def last_reply(self) -> int:
        """How many messages there were when the last answer came."""
        numbered = enumerate(self.received)
        return max((n for n, each in numbered if "method" not in each.message), default=0)

    def updates(self, session_id: str, since: int = 0, end: int | None = None) -> list[Wire]:
        """The updates of a session, as far as they can be read."""
        return [told for told, _ in updates_of(self.received[since:end], session_id)]

    async def _read(self) -> None:
        try:
            while data := await self.transport.receive():
                for frame in self._framer.feed(data):
                    self._take(frame)
            self.over = await self.transport.failure(spoke=bool(self.received), printed="")
        except DragomanError as error:
            self.over = error
        finally:
            self._changed.set()

    def _take(self, frame: bytes) -> None:
        if not frame.strip():
            return
        self._evidence.note("←", frame)
        try:
            message = obj(msgspec.json.decode(frame))
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = {}
        if not {"id", "method"} & set(message):
            self.noise.append(frame)
        else:
            self.received.append(Received(message, frame))
            if "method" in message and "id" in message:
                self._asked(message, frame)
        self._changed.set()

    def _asked(self, message: Wire, frame: bytes) -> None:
        method = str(message["method"])
        asked = AgentRequest(message["id"], method, obj(message.get("params")), frame)
        try:
            result = self.host.answer(asked)
        except Refused as error:
            self.refuse(asked, error)
        else:
            if result is not None:
                self.grant(asked, result)

    def grant(self, asked: AgentRequest, result: Any) -> None:
        """Answer a request."""
        self.send({"jsonrpc": "2.0", "id": asked.id, "result": result})

    def refuse(self, asked: AgentRequest, why: Refused) -> None:
        error = {"code": why.code, "message": str(why)}
        self.send({"jsonrpc": "2.0", "id": asked.id, "error": error})


def frame_of(message: Wire) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def is_reply(message: Wire, key: Any) -> bool:
    """`true` is not 1, and "1" is neither."""
    if "method" in message or "id" not in message:
        return False
    return type(message["id"]) is type(key) and message["id"] == key


def updates_of(received: list[Received], session_id: str) -> list[tuple[Wire, bytes]]:
    """The updates of a session, each with its frame."""
    return [
        (obj(at(each.message, "params", "update")), each.frame)
        for each in received
        if each.message.get("method") == "session/update"
        and at(each.message, "params", "sessionId") == session_id
    ]


def is_error(reply: Wire) -> bool:
    return isinstance(reply.get("error"), dict)


def error_code(reply: Wire) -> Any:
    return at(reply, "error", "code")


def error_text(reply: Wire) -> str:
    if not is_error(reply):
        return str(reply.get("error"))
    return f"{at(reply, 'error', 'code')} {at(reply, 'error', 'message')}"
