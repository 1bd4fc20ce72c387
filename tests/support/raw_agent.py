"""An agent by hand: it answers each method with what a test says, and sends what a test sends.

Everything here is JSON as it goes over the wire, so that nothing of our own is taken for granted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeAlias

from support.peers import SECONDS

from dragoman.transport.memory import MemoryTransport, memory_pair
from dragoman.transport.transport import Transport
from dragoman.wire.framing import Framer

Json: TypeAlias = dict[str, Any]
Answer: TypeAlias = Json | Callable[[Json], Any] | None
"""A result, or a function of the params that gives it; None leaves the request open."""

EVERYTHING: Json = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True, "acp": True},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "resume": {},
        "close": {},
        "fork": {},
        "archive": {},
        "status": {},
        "title": {},
        "additionalDirectories": {},
        "systemPrompt": {},
    },
    "auth": {"logout": {}, "status": {}},
    "providers": {},
}

ENDED = {"stopReason": "end_turn"}
"""The reply to a prompt, in most cases."""


class Refusal(Exception):
    """Raised by an answer: the error to reply with."""

    def __init__(self, code: int, message: str = "no", data: Any = None) -> None:
        super().__init__(code, message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class RawAgent:
    """`answers` are by method; a prompt stays open unless there is one for it."""

    def __init__(
        self,
        capabilities: Json | None = None,
        *,
        welcome: Json | None = None,
        **answers: Answer,
    ) -> None:
        hello: Json = {
            "protocolVersion": 1,
            "agentCapabilities": EVERYTHING if capabilities is None else capabilities,
            "agentInfo": {"name": "raw", "version": "7"},
        }
        self.answers: dict[str, Answer] = {
            "initialize": hello | (welcome or {}),
            "session/new": {"sessionId": "s1"},
            "session/load": {},
            "session/resume": {},
            "session/fork": {"sessionId": "s2"},
            "session/prompt": None,
        }
        self.answers |= {name.replace("__", "/"): answer for name, answer in answers.items()}
        self.received: list[Json] = []
        """Every message from the client, in order."""
        self._arrived = asyncio.Event()
        self._taken: set[int] = set()
        self._transport: MemoryTransport | None = None
        self._task: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None

    def connect(self) -> Transport:
        ours, theirs = memory_pair()
        self._transport = ours
        self._task = asyncio.create_task(self._serve(ours))
        return theirs

    async def _serve(self, transport: MemoryTransport) -> None:
        framer = Framer()
        while data := await transport.receive():
            for frame in framer.feed(data):
                self._received(json.loads(frame))

    def _received(self, message: Json) -> None:
        self.received.append(message)
        self._arrived.set()
        if "method" not in message or "id" not in message:
            return
        try:
            answer = self.answers.get(message["method"], {})
            result = answer(message["params"]) if callable(answer) else answer
            if result is not None:
                self.reply(message["id"], result)
        except Refusal as refusal:
            self.send({"id": message["id"], "error": refusal.error})

    # ── what it sends ─────────────────────────────────────────────────────────────────────────

    def raw(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.send(data)

    @property
    def pending(self) -> int:
        """Bytes the client has not read yet."""
        assert self._transport is not None
        return self._transport.pending

    def send(self, *messages: Json) -> None:
        """Messages, all in one piece of bytes."""
        frames = (json.dumps({"jsonrpc": "2.0"} | message).encode() for message in messages)
        self.raw(b"".join(frame + b"\n" for frame in frames))

    def reply(self, request_id: Any, result: Any) -> None:
        self.send({"id": request_id, "result": result})

    def update(self, kind: str, /, session: str = "s1", **fields: Any) -> None:
        self.send(notification(kind, session=session, **fields))

    def say(self, text: str, /, session: str = "s1", **fields: Any) -> None:
        self.update("agent_message_chunk", session=session, content=text_block(text), **fields)

    async def ask(self, method: str, params: Json, request_id: Any = "ask") -> Json:
        """Send a request and wait for the client's answer, the whole message."""
        self.send({"id": request_id, "method": method, "params": params})
        return await self.answer_to(request_id)

    def asks_before(self, method: str, question: Json, result: Json) -> list[Json]:
        """Have it ask the user something before it answers `method`; what it is told."""
        told: list[Json] = []

        async def ask() -> None:
            request = await self.expect(method)
            tied = question | {"requestId": request["id"]}
            told.append(await self.ask("elicitation/create", tied))
            self.reply(request["id"], result)

        def called(params: Json) -> None:
            self._asking = asyncio.create_task(ask())

        self.answers[method] = called
        return told

    async def vanish(self) -> None:
        assert self._transport is not None
        await self._transport.aclose()

    # ── what it waits for ─────────────────────────────────────────────────────────────────────

    async def expect(self, method: str) -> Json:
        """The first message of this method that nobody has asked for yet."""
        return await self._next(lambda message: message.get("method") == method)

    async def answer_to(self, request_id: Any) -> Json:
        return await self._next(
            lambda message: "method" not in message and message.get("id") == request_id
        )

    async def _next(self, wanted: Callable[[Json], bool]) -> Json:
        async with asyncio.timeout(SECONDS):
            while True:
                for index, message in enumerate(self.received):
                    if index not in self._taken and wanted(message):
                        self._taken.add(index)
                        return message
                self._arrived.clear()
                await self._arrived.wait()

    def sent(self, method: str) -> list[Json]:
        """The params of every message of this method so far."""
        return [m["params"] for m in self.received if m.get("method") == method]


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def notification(kind: str, /, session: str = "s1", **fields: Any) -> Json:
    """A session update as a message."""
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    return {"method": "session/update", "params": params}
