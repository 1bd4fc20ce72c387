"""Removes possible secrets from frames before they are recorded or shown.

Blanked are the values of variables and of headers; of MCP servers the arguments, and what in an
address may be a credential; and what a person typed into a form. Names and shapes stay: they tell
what was passed, and a recording of such frames can be played. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from dragoman.wire.json_text import repair
from dragoman.wire.messages import Failure, Id, Message, Reply, Request

Direction: TypeAlias = Literal["sent", "received"]

BLANK = "•••"
_FORM = "elicitation/create"
_SECRETIVE = (b'"env"', b'"headers"', b'"mcpServers"')
_MAX_OPEN = 1024
MAX_NAME = 1024
"""Characters of an id or a method that are remembered."""


class Asked(msgspec.Struct, frozen=True):
    """As much of a request as its reply is understood by; no name longer than `MAX_NAME`."""

    method: str
    session_id: str | None = None


class _Open(msgspec.Struct):
    """The open requests that share an id; a form if one of them is, until all are answered."""

    asked: Asked
    count: int = 1

    def join(self, asked: Asked) -> None:
        self.count += 1
        if _is_form(asked):
            self.asked = asked


# Of a request that was forgotten nobody can know that it was not a form.
_FORGOTTEN = Asked(_FORM)


class Requests:
    """The open requests of one connection, both ways."""

    def __init__(self) -> None:
        self._open: dict[tuple[Direction, Id], _Open] = {}

    def asked(self, direction: Direction, message: Message) -> Asked | None:
        """The request that a reply belongs to; a request is remembered until it is answered."""
        match message:
            case Reply() | Failure():
                return self._answered("sent" if direction == "received" else "received", message.id)
            case Request():
                self._remember(direction, message)
                return None
            case _:
                return None

    def _answered(self, asker: Direction, key: Id) -> Asked:
        found = self._open.get((asker, key))
        if found is None:
            return _FORGOTTEN
        found.count -= 1
        if not found.count:
            del self._open[asker, key]
        return found.asked

    def _remember(self, direction: Direction, request: Request) -> None:
        asked = Asked(request.method[:MAX_NAME], session_of(request.params))
        shared = self._open.get((direction, request.id))
        if shared is not None:
            shared.join(asked)
            return
        if len(self._open) >= _MAX_OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[direction, request.id] = _Open(asked)


class _Named(msgspec.Struct, rename="camel"):
    session_id: str | None = None


_named = msgspec.json.Decoder(_Named)


def session_of(json: msgspec.Raw) -> str | None:
    """The session that params or a result speak of, as far as its id is remembered."""
    try:
        named = _named.decode(json).session_id
    except msgspec.DecodeError:
        return None
    return named and named[:MAX_NAME]


# ── blanking ──────────────────────────────────────────────────────────────────────────────────


def may_hold_secrets(frame: bytes, asked: Asked | None) -> bool:
    """Cheap; `asked` is the request that the frame replies to, if it is a reply."""
    return _is_form(asked) or any(word in frame for word in _SECRETIVE)


def blanked(frame: bytes, asked: Asked | None) -> bytes:
    """The same bytes where nothing is secret, and none of a frame that nobody can read."""
    if not may_hold_secrets(frame, asked):
        return frame
    try:
        before = _read(frame)
        now = _without_secrets(before, _KNOWN)
        if _is_form(asked):
            now = _without_answers(now)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""
    return frame if now == before else msgspec.json.encode(now)


def _is_form(asked: Asked | None) -> bool:
    return asked is not None and asked.method == _FORM


def _read(frame: bytes) -> Any:
    try:
        return msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(repair(frame))


def _without_answers(message: Any) -> Any:
    match message:
        case {"result": {"content": content}}:
            return message | {"result": message["result"] | {"content": _blank(content)}}
        case _:
            return message


_Hiding: TypeAlias = Mapping[str, Callable[[Any], Any]]


def _without_secrets(value: Any, hiding: _Hiding) -> Any:
    match value:
        case {**members}:
            return {name: _member(name, inner, hiding) for name, inner in members.items()}
        case [*items]:
            return [_without_secrets(item, hiding) for item in items]
        case _:
            return value


def _member(name: str, value: Any, hiding: _Hiding) -> Any:
    hide = hiding.get(name)
    return _without_secrets(value, hiding) if hide is None else hide(value)


def _servers(value: Any) -> Any:
    return _without_secrets(value, _OF_SERVERS)


def _as_it_is(value: Any) -> Any:
    return value


def _values(value: Any) -> Any:
    match value:
        case [*items]:
            return [_value(item) for item in items]
        case _:
            return _blank(value)


def _value(item: Any) -> Any:
    match item:
        case {"name": name}:
            return _blank(item) | {"name": name}
        case _:
            return _blank(item)


def _blank(value: Any) -> Any:
    match value:
        case {**members}:
            return {name: _blank(inner) for name, inner in members.items()}
        case [*items]:
            return [_blank(item) for item in items]
        case None:
            return None
        case _:
            return BLANK


def _address(value: Any) -> Any:
    """Where it leads stays; who one is there, and what is asked, does not."""
    if not isinstance(value, str):
        return _blank(value)
    try:
        parts = urlsplit(value)
    except ValueError:
        return BLANK
    _, at, host = parts.netloc.rpartition("@")
    shown = parts._replace(
        netloc=f"{BLANK}@{host}" if at else host,
        query=parts.query and BLANK,
        fragment=parts.fragment and BLANK,
    )
    return shown.geturl() if host else BLANK


_KNOWN: _Hiding = {
    "env": _values,
    "headers": _values,
    "mcpServers": _servers,
    # Its fields have names that the agent chose, and no values yet.
    "requestedSchema": _as_it_is,
}
_OF_SERVERS: _Hiding = {"env": _values, "headers": _values, "args": _blank, "url": _address}
