"""A recording split into exchanges: each client request, and what the agent did for it.

Frames of the agent keep their place: before or after the reply of the request they belong
to. That is the one open in their session, else the last one there.

A recorded workspace rarely still exists, and terminals get their ids from the live client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from dragoman.testing.recording import TO_AGENT, Recording
from dragoman.wire import messages
from dragoman.wire.messages import Failure, Id, Notification, Reply, Request


class Say(msgspec.Struct, frozen=True):
    """Send this frame."""

    frame: bytes


class Ask(msgspec.Struct, frozen=True):
    """Send this request of the agent."""

    id: Id
    frame: bytes


class Hear(msgspec.Struct, frozen=True):
    """Wait for the client's reply to it; this is what it was then."""

    id: Id
    frame: bytes


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
