"""The last frames between us and an agent, for people who want to see them; in memory alone.

A tap for each agent. What may be secret is blanked before it is kept: the values of variables and
headers, the arguments of MCP servers, and what a person typed into a form.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

Direction: TypeAlias = Literal["sent", "received"]

MAX_BYTES = 1024 * 1024
MAX_FRAME_BYTES = 64 * 1024
"""Of a larger frame, only the beginning is kept, and nothing of one that may hold secrets."""
_MAX_OPEN = 1024

BLANK = "•••"
_SECRETIVE = (b'"env"', b'"headers"', b'"mcpServers"')


class Frame(msgspec.Struct, frozen=True):
    seq: int
    at: float
    direction: Direction
    size: int
    text: str
    session_id: str | None
    """The agent's id of the session it speaks of; None for the connection itself."""
    cut: bool = False


class _Params(msgspec.Struct, rename="camel"):
    session_id: str | None = None


class _Outline(msgspec.Struct):
    """As much of a frame as says what it belongs to."""

    id: int | str | None = None
    method: str | None = None
    params: _Params | None = None
    result: _Params | None = None


_outline = msgspec.json.Decoder(_Outline)


class Frames:
    """A tap that keeps the last frames, as many as fit."""

    def __init__(self) -> None:
        self._kept: deque[Frame] = deque()
        self._size = 0
        self._seq = 0
        self._open: dict[tuple[Direction, int | str], _Outline] = {}

    def __call__(self, direction: Direction, frame: bytes) -> None:
        outline = _read(frame)
        asked = self._asked(direction, outline)
        text, cut = _shown(frame, asked)
        self._seq += 1
        self._keep(
            Frame(
                self._seq, time.time(), direction, len(frame), text, _session(outline, asked), cut
            )
        )

    def of(self, session_id: str | None, after: int) -> Iterator[Frame]:
        """Those of one session, and those that belong to none."""
        for frame in self._kept:
            if frame.seq > after and frame.session_id in (None, session_id):
                yield frame

    def lost(self, after: int) -> bool:
        """Whether something behind `after` is not kept any more."""
        return bool(self._kept) and self._kept[0].seq > after + 1

    @property
    def last(self) -> int:
        return self._seq

    def _asked(self, direction: Direction, outline: _Outline) -> _Outline | None:
        """The request that a reply belongs to; a request is remembered until it is answered."""
        if outline.id is None:
            return None
        if outline.method is None:
            other: Direction = "sent" if direction == "received" else "received"
            return self._open.pop((other, outline.id), None)
        if len(self._open) >= _MAX_OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[direction, outline.id] = outline
        return None

    def _keep(self, frame: Frame) -> None:
        self._kept.append(frame)
        self._size += len(frame.text)
        while self._size > MAX_BYTES:
            self._size -= len(self._kept.popleft().text)


def _read(frame: bytes) -> _Outline:
    try:
        return _outline.decode(frame)
    except msgspec.DecodeError:
        return _Outline()


def _session(outline: _Outline, asked: _Outline | None) -> str | None:
    for place in (outline.params, outline.result, None if asked is None else asked.params):
        if place is not None and place.session_id is not None:
            return place.session_id
    return None


def _shown(frame: bytes, asked: _Outline | None) -> tuple[str, bool]:
    is_form = asked is not None and asked.method == "elicitation/create"
    is_secretive = is_form or any(word in frame for word in _SECRETIVE)
    if len(frame) > MAX_FRAME_BYTES:
        begin = b"" if is_secretive else frame[:MAX_FRAME_BYTES]
        return begin.decode("utf-8", "replace"), True
    if is_secretive:
        frame = _blanked(frame, is_form)
    return frame.decode("utf-8", "replace").rstrip("\n"), False


def _blanked(frame: bytes, is_form: bool) -> bytes:
    try:
        message = msgspec.json.decode(frame)
    except msgspec.DecodeError:
        return b""
    message = _without_secrets(message, _FORM if is_form else _VALUES)
    return msgspec.json.encode(message)


_VALUES = frozenset({"env", "headers"})
_OF_SERVERS = _VALUES | {"args"}
_FORM = _VALUES | {"content"}


def _without_secrets(value: Any, keys: frozenset[str]) -> Any:
    match value:
        case dict():
            items: dict[str, Any] = {**value}
            return {key: _checked(key, inner, keys) for key, inner in items.items()}
        case list():
            inners: list[Any] = [*value]
            return [_without_secrets(inner, keys) for inner in inners]
        case _:
            return value


def _checked(key: str, value: Any, keys: frozenset[str]) -> Any:
    if key in keys:
        return _blank(value)
    return _without_secrets(value, _OF_SERVERS if key == "mcpServers" else keys)


def _blank(value: Any) -> Any:
    """The shape and the names stay: they tell what was passed."""
    match value:
        case dict():
            items: dict[str, Any] = {**value}
            return {
                key: inner if key == "name" and "value" in items else _blank(inner)
                for key, inner in items.items()
            }
        case list():
            inners: list[Any] = [*value]
            return [_blank(inner) for inner in inners]
        case _:
            return BLANK
