"""`python -m dragoman.testing.replay FILE`: a recording as an agent that always does the same.

Each request of the client is answered as the next recorded one of its method in its session was;
what the agent said and asked around the reply is said and asked again, in the same places.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.errors import DragomanError, InternalError, InvalidParams, MethodNotFound, to_wire
from dragoman.testing.agent_address import Served
from dragoman.testing.exchanges import (
    Act,
    Ask,
    Exchange,
    Go,
    Hear,
    HearCancel,
    Say,
    ScriptedAnswer,
    ScriptedConversation,
    Substitutes,
    conversations,
    session_of,
)
from dragoman.testing.recording import Recording, load_recording
from dragoman.transport.base import Transport
from dragoman.wire import messages
from dragoman.wire.framing import Framer
from dragoman.wire.messages import Failure, Id, Notification, Reply, Request

if TYPE_CHECKING:
    from dragoman.transport.stdio import AgentCommand


class ReplayAgent(Served):
    """Plays a recording as an agent: the first client gets its first connection, and so on.

    A session is found by its recorded id. If the client opens it in another folder, recorded paths
    are moved there; terminals have the ids that the client gives. With `strict`, params and replies
    of the client must be the recorded ones: differences are in `mismatches`, and a request that
    differs is refused.
    """

    def __init__(
        self, recording: Recording | str | os.PathLike[str], *, strict: bool = False, first: int = 0
    ) -> None:
        super().__init__()
        if not isinstance(recording, Recording):
            recording = load_recording(recording)
        self.strict = strict
        self.conversations = conversations(recording)
        self.mismatches: list[str] = []
        self._next = first

    async def serve(self, transport: Transport) -> None:
        conversation = self.conversations[min(self._next, len(self.conversations) - 1)]
        self._next += 1
        await _Replay(self, conversation, transport).run()

    @staticmethod
    def command(path: str | os.PathLike[str], *, first: int = 0) -> AgentCommand:
        """The command that runs a replay as a process."""
        from dragoman.transport.stdio import AgentCommand  # an agent has no use for it

        arguments = ("-P", "-m", "dragoman.testing.replay", os.path.abspath(path), str(first))
        return AgentCommand(sys.executable, arguments)


class _Replay:
    """One connection, live."""

    def __init__(
        self, agent: ReplayAgent, conversation: ScriptedConversation, transport: Transport
    ) -> None:
        self._agent = agent
        self._conversation = conversation
        self._left = list(conversation.exchanges)
        self._transport = transport
        self._substitutes = Substitutes()
        self._replies: dict[Id, asyncio.Future[bytes]] = {}
        self._cancels: dict[str | None, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        self._spawn(self._conversation.unasked, b"null", None)
        framer = Framer()
        try:
            while data := await self._transport.receive():
                for frame in framer.feed(data):
                    self._receive(frame)
        finally:
            for task in self._tasks:
                task.cancel()
            await self._transport.aclose()

    # ── what the client sends ─────────────────────────────────────────────────────────────────

    def _receive(self, frame: bytes) -> None:
        message = messages.decode(frame)
        match message:
            case Request():
                self._requested(message)
            case Reply() | Failure():
                waiting = self._replies.get(message.id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)
            case Notification(method="session/cancel"):
                self._cancel_of(session_of(message.params)).set()
            case _:
                pass

    def _requested(self, request: Request) -> None:
        try:
            exchange = self._take(request)
        except DragomanError as error:
            self._send(messages.encode_failure(request.id, *to_wire(error)))
            return
        self._cancel_of(exchange.session_id).clear()
        self._spawn(exchange.acts, request.id, exchange.session_id)

    def _take(self, request: Request) -> Exchange:
        """The recorded request that this one repeats."""
        session_id = session_of(request.params)
        exchange = self._find(request.method, session_id)
        self._substitutes.learn_folder(exchange.params, request.params)
        if self._agent.strict and request.method != "initialize":
            self._compare(request.method, exchange.params, request.params)
        self._left.remove(exchange)
        return exchange

    def _find(self, method: str, session_id: str | None) -> Exchange:
        known = [e for e in self._conversation.exchanges if e.method == method]
        if not known:
            raise MethodNotFound(f"{method} is not in the recording")
        for exchange in self._left:
            if exchange.method == method and exchange.session_id == session_id:
                return exchange
        where = "" if session_id is None else f" for session {session_id}"
        raise InternalError(f"the recording holds no further {method}{where}")

    def _compare(self, method: str, recorded: msgspec.Raw, live: msgspec.Raw) -> None:
        before = msgspec.json.decode(self._substitutes.apply(bytes(recorded)))
        now = msgspec.json.decode(live)
        if before != now:
            self._agent.mismatches.append(f"{method}: expected {before}, got {now}")
            raise InvalidParams("these are not the params of the recording", {"expected": before})

    # ── what the agent does ───────────────────────────────────────────────────────────────────

    def _spawn(self, acts: Iterable[Act], key: Id, session_id: str | None) -> None:
        task = asyncio.create_task(self._play(acts, key, session_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _play(self, acts: Iterable[Act], key: Id, session_id: str | None) -> None:
        for act in acts:
            match act:
                case Say(frame):
                    self._send(self._substitutes.apply(frame))
                case Ask(asked, frame):
                    self._replies[asked] = asyncio.get_running_loop().create_future()
                    self._send(self._substitutes.apply(frame))
                case Hear(asked, frame):
                    await self._hear(asked, frame)
                case HearCancel():
                    await self._cancel_of(session_id).wait()
                case ScriptedAnswer(frame):
                    self._send(_with_id(self._substitutes.apply(frame), key))
                case Go():
                    await self._transport.aclose()
            await self._transport.drain()

    async def _hear(self, asked: Id, recorded: bytes) -> None:
        live = await self._replies[asked]
        del self._replies[asked]
        self._substitutes.learn_terminal(recorded, live)
        if self._agent.strict:
            before, now = _reply(self._substitutes.apply(recorded)), _reply(live)
            if before != now:
                self._agent.mismatches.append(
                    f"the reply to {asked.decode()}: expected {before}, got {now}"
                )

    def _send(self, frame: bytes) -> None:
        self._transport.send(frame + b"\n")

    def _cancel_of(self, session_id: str | None) -> asyncio.Event:
        return self._cancels.setdefault(session_id, asyncio.Event())


def _reply(frame: bytes) -> Any:
    reply = msgspec.json.decode(frame)
    return reply.get("result", reply.get("error"))


def _with_id(frame: bytes, key: Id) -> bytes:
    """The same reply to another request; everything else stays byte for byte."""
    members = msgspec.json.decode(frame, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(members | {"id": msgspec.Raw(key)})


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m dragoman.testing.replay FILE [CONNECTION]")
    first = int(sys.argv[2]) if len(sys.argv) == 3 else 0
    ReplayAgent(sys.argv[1], first=first).serve_stdio()


if __name__ == "__main__":
    main()
