"""The last frames between us and an agent, for people to inspect; kept only in memory.

A tap for each agent. What may be secret is blanked before it is kept.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

import msgspec

from dragoman.client.redaction import (
    MAX_NAME,
    Asked,
    Direction,
    Requests,
    blanked,
    may_hold_secrets,
    session_of,
)
from dragoman.wire import messages
from dragoman.wire.messages import Message, Notification, Reply, Request

MAX_BYTES = 1024 * 1024
_LEAST_BYTES = 512  # what a frame takes, however small it is
MAX_FRAME_BYTES = 64 * 1024
"""Of a larger frame, only the beginning is kept, and nothing of one that may hold secrets."""


class Frame(msgspec.Struct, frozen=True):
    seq: int
    at: float
    direction: Direction
    size: int
    text: str
    session_id: str | None
    """The agent's id of the session it speaks of, or how that begins; None for the connection."""
    cut: bool = False


class Frames:
    """A tap that keeps the last frames, as many as fit."""

    def __init__(self) -> None:
        self._kept: deque[Frame] = deque()
        self._size = 0
        self._seq = 0
        self._requests = Requests()

    def __call__(self, direction: Direction, frame: bytes) -> None:
        message = messages.decode(frame)
        asked = self._requests.asked(direction, message)
        text, cut = _shown(frame, asked)
        self._seq += 1
        self._keep(
            Frame(
                self._seq, time.time(), direction, len(frame), text, _session(message, asked), cut
            )
        )

    def of(self, session_id: str | None, after: int) -> Iterator[Frame]:
        """Those of one session, and those that belong to none."""
        shown = (None, session_id and session_id[:MAX_NAME])
        for frame in self._kept:
            if frame.seq > after and frame.session_id in shown:
                yield frame

    def lost(self, after: int) -> bool:
        """Whether something after `after` is no longer kept."""
        return bool(self._kept) and self._kept[0].seq > after + 1

    @property
    def last(self) -> int:
        return self._seq

    def _keep(self, frame: Frame) -> None:
        self._kept.append(frame)
        self._size += _size(frame)
        while self._size > MAX_BYTES:
            self._size -= _size(self._kept.popleft())


def _size(frame: Frame) -> int:
    return _LEAST_BYTES + len(frame.text) + len(frame.session_id or "")


def _session(message: Message, asked: Asked | None) -> str | None:
    match message:
        case Request() | Notification():
            return session_of(message.params)
        case Reply():
            return session_of(message.result) or (asked and asked.session_id)
        case _:
            return asked and asked.session_id


def _shown(frame: bytes, asked: Asked | None) -> tuple[str, bool]:
    if len(frame) > MAX_FRAME_BYTES:
        begin = b"" if may_hold_secrets(frame, asked) else frame[:MAX_FRAME_BYTES]
        return begin.decode("utf-8", "replace"), True
    return blanked(frame, asked).decode("utf-8", "replace").rstrip("\n"), False
