"""`python -m dragoman.testing.recordings.replay FILE`: a recording as an agent, the same each time.

Each request of the client is answered as the next recorded one of its method in its session was;
what the agent said and asked around the reply is said and asked again, in the same places.

Frames of the agent keep their place: before or after the reply of the request they belong
to. That is the one open in their session, else the last one there.

A recorded workspace rarely still exists, and terminals get their ids from the live client.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from dragoman.errors import DragomanError, InternalError, InvalidParams, MethodNotFound
from dragoman.testing.agent_stdio import Served
from dragoman.testing.recordings.recording import TO_AGENT, Recording, load_recording
from dragoman.transport.transport import Transport
from dragoman.wire import messages
from dragoman.wire.error_replies import to_wire
from dragoman.wire.framing import Framer
from dragoman.wire.messages import Failure, Id, Notification, Reply, Request

if TYPE_CHECKING:
    from dragoman.transport.stdio import AgentCommand


class ReplayAgent(Served):
    """Plays a recording as an agent.

    The first client gets the first recorded connection, the second the next, and so on.

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

        arguments = (
            "-P",
            "-m",
            "dragoman.testing.recordings.replay",
            os.path.abspath(path),
            str(first),
        )
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
        raise InternalError(f"the recording has no further {method}{where}")

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
        sys.exit("usage: python -m dragoman.testing.recordings.replay FILE [CONNECTION]")
    first = int(sys.argv[2]) if len(sys.argv) == 3 else 0
    ReplayAgent(sys.argv[1], first=first).serve_stdio()


class Say(msgspec.Struct, frozen=True):
    """Send this frame."""

    frame: bytes


class _OfRequest(msgspec.Struct, frozen=True):
    id: Id
    frame: bytes


class Ask(_OfRequest, frozen=True):
    """Send this request of the agent."""


class Hear(_OfRequest, frozen=True):
    """Wait for the client's reply to it; this is what it was then."""


class HearCancel(msgspec.Struct, frozen=True):
    """Wait for the client to cancel."""


class ScriptedAnswer(msgspec.Struct, frozen=True):
    """Reply to the request."""

    frame: bytes


class Go(msgspec.Struct, frozen=True):
    """End the connection."""


Act: TypeAlias = Say | Ask | Hear | HearCancel | ScriptedAnswer | Go


class Exchange(msgspec.Struct):
    """A request of the client, and what followed from it."""

    method: str
    session_id: str | None
    params: msgspec.Raw
    acts: list[Act] = []


class ScriptedConversation(msgspec.Struct):
    """One connection: what the agent said unasked, and the exchanges in order."""

    unasked: list[Act] = []
    exchanges: list[Exchange] = []


class _Named(msgspec.Struct, rename="camel"):
    session_id: str | None = None


def session_of(json: msgspec.Raw) -> str | None:
    """The session that params or a result speak of."""
    try:
        return msgspec.json.decode(json, type=_Named).session_id
    except msgspec.DecodeError:
        return None


def conversations(recording: Recording) -> list[ScriptedConversation]:
    """Each connection of a recording; the client begins one by `initialize`."""
    taken_apart: list[ScriptedConversation] = []
    apart = _Apart()
    for line in recording.lines:
        message = messages.decode(line.frame) if line.frame else None
        if line.dir == TO_AGENT:
            if _begins(message) and apart.conversation.exchanges:
                taken_apart.append(apart.conversation)
                apart = _Apart()
            apart.heard(message, line.frame)
        elif line.dir == "eof":
            apart.gone()
        elif message is not None:
            apart.said(message, line.frame)
    return [*taken_apart, apart.conversation]


def _begins(message: Any) -> bool:
    return isinstance(message, Request) and message.method == "initialize"


class _Apart:
    """Takes one connection apart, frame by frame."""

    def __init__(self) -> None:
        self.conversation = ScriptedConversation()
        self._open: dict[Id, Exchange] = {}
        self._asked: dict[Id, list[Act]] = {}
        self._last: dict[str | None, Exchange] = {}

    def heard(self, message: Any, frame: bytes) -> None:
        """The client sent this."""
        match message:
            case Request():
                session_id = session_of(message.params)
                exchange = Exchange(message.method, session_id, message.params)
                self.conversation.exchanges.append(exchange)
                self._open[message.id] = self._last[session_id] = self._last[None] = exchange
            case Reply() | Failure() if message.id in self._asked:
                self._asked.pop(message.id).append(Hear(message.id, frame))
            case Notification(method="session/cancel"):
                for exchange in self._open_in(session_of(message.params)):
                    exchange.acts.append(HearCancel())
            case _:
                pass

    def said(self, message: Any, frame: bytes) -> None:
        """The agent sent this."""
        match message:
            case Reply() | Failure() if message.id in self._open:
                exchange = self._open.pop(message.id)
                exchange.acts.append(ScriptedAnswer(frame))
                if isinstance(message, Reply) and (made := session_of(message.result)) is not None:
                    self._last.setdefault(made, exchange)
            case Request():
                acts = self._asked[message.id] = self._acts(session_of(message.params))
                acts.append(Ask(message.id, frame))
            case Notification():
                self._acts(session_of(message.params)).append(Say(frame))
            case _:
                self._acts(None).append(Say(frame))

    def gone(self) -> None:
        """The agent ended the connection here, whatever it still owed."""
        for exchange in self._open.values():
            exchange.acts.append(Go())

    def _acts(self, session_id: str | None) -> list[Act]:
        home = self._home(session_id)
        return self.conversation.unasked if home is None else home.acts

    def _home(self, session_id: str | None) -> Exchange | None:
        here = list(self._open_in(session_id))
        if here:
            return here[-1]
        if session_id not in self._last and self._open:
            return list(self._open.values())[-1]  # it makes the session, or names none
        return self._last.get(session_id) or self._last.get(None)

    def _open_in(self, session_id: str | None) -> Iterator[Exchange]:
        return (e for e in self._open.values() if e.session_id == session_id)


class _Folder(msgspec.Struct):
    cwd: str | None = None


class _Terminal(msgspec.Struct, rename="camel"):
    terminal_id: str | None = None


class _Created(msgspec.Struct):
    result: _Terminal | None = None


class Substitutes:
    """Learns from what the client sends, and applies it to what the agent sent."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._terminals: dict[str, str] = {}

    def learn_folder(self, recorded: msgspec.Raw, live: msgspec.Raw) -> None:
        """The params of a request then, and now."""
        before, now = _read(recorded, _Folder).cwd, _read(live, _Folder).cwd
        if before and now and before != now and before != "/":
            self._folders[before] = now

    def learn_terminal(self, recorded: bytes, live: bytes) -> None:
        """The reply of the client then, and now."""
        before, now = _read(recorded, _Created).result, _read(live, _Created).result
        if before is None or now is None or before.terminal_id is None or now.terminal_id is None:
            return
        self._terminals[before.terminal_id] = now.terminal_id

    def apply(self, frame: bytes) -> bytes:
        """The frame for the live client; byte for byte the same where nothing has to change."""
        if not (self._folders or self._terminals):
            return frame
        try:
            before = msgspec.json.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return frame
        now = self._replaced(before)
        return frame if now == before else msgspec.json.encode(now)

    def _replaced(self, value: Any) -> Any:
        match value:
            case str():
                return self._in_text(value)
            case [*items]:
                return [self._replaced(item) for item in items]
            case {**members}:
                return {name: self._member(name, item) for name, item in members.items()}
            case _:
                return value

    def _member(self, name: str, value: Any) -> Any:
        if name == "terminalId" and isinstance(value, str):
            return self._terminals.get(value, value)
        return self._replaced(value)

    def _in_text(self, text: str) -> str:
        for before, now in self._folders.items():
            if before in text:
                text = re.sub(_path(before), _always(now), text)
        return text


def _path(folder: str) -> str:
    """The folder as a whole, alone or in front of what is beneath it."""
    return rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])"


def _always(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _: text


def _read(json: bytes | msgspec.Raw, type_: Any) -> Any:
    try:
        return msgspec.json.decode(json, type=type_)
    except msgspec.DecodeError:
        return type_()


if __name__ == "__main__":
    main()
