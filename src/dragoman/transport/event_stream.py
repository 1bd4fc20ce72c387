"""Server-sent events to frames: the data of an event, on one line, once it is all there.

Sans I/O.
"""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.errors import FrameTooLarge
from dragoman.wire.framing import MAX_FRAME_BYTES, Framer

_FIELD_NAME = len(b"data: ")


class EventStream:
    """Feed it what arrives; holds at most `limit` bytes of an unfinished event."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._lines = Framer(limit + _FIELD_NAME + 1)
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that `data` completes. Raises FrameTooLarge."""
        for line in self._cut(data):
            if not line and self._data:
                yield b" ".join(self._data)
                self._data, self._size = [], 0
            elif line.startswith(b"data:"):
                self._take(line[5:].removeprefix(b" "))

    def _cut(self, data: bytes) -> Iterator[bytes]:
        try:
            for line in self._lines.feed(data):
                yield line.removesuffix(b"\r")
        except FrameTooLarge:
            raise FrameTooLarge(self._limit) from None

    def _take(self, part: bytes) -> None:
        self._size += len(part) + 1
        if self._size > self._limit + 1:
            raise FrameTooLarge(self._limit)
        self._data.append(part)
