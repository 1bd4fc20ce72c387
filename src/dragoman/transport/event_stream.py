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
        # Grows in place: a heap of tiny lines would take many times what they hold.
        self._data: bytearray | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that `data` completes. Raises FrameTooLarge."""
        for line in self._cut(data):
            if not line and self._data is not None:
                frame, self._data = bytes(self._data), None
                yield frame
            elif line.startswith(b"data:"):
                self._take(line[5:].removeprefix(b" "))

    def _cut(self, data: bytes) -> Iterator[bytes]:
        try:
            for line in self._lines.feed(data):
                yield line.removesuffix(b"\r")
        except FrameTooLarge:
            raise FrameTooLarge(self._limit) from None

    def _take(self, part: bytes) -> None:
        if self._data is None:
            self._data = bytearray()
        else:
            self._data += b" "
        if len(self._data) + len(part) > self._limit:
            raise FrameTooLarge(self._limit)
        self._data += part
