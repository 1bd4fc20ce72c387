"""Bytes to frames: a frame is one line without its newline. Lines that are not JSON are counted.

Only b"\\n" ends a line. U+2028 and its like are ordinary characters inside JSON strings, which is
why nothing here may ever call `splitlines`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dragoman.errors import FrameTooLarge

MAX_FRAME_BYTES = 64 * 1024 * 1024


class Framer:
    """Cuts a byte stream into frames; holds at most `limit` bytes of an unfinished one."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self.limit = limit
        # Grows in place: neither quadratic copying, nor a heap of crumbs when bytes only trickle.
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield each frame that `data` completes, in order; exhaust it before feeding again.

        Raises FrameTooLarge where the oversized frame stands, after the frames before it.
        """
        first, *lines = data.split(b"\n")
        self._hold(first)
        if not lines:
            return
        yield self.rest()
        last = lines.pop()
        if len(data) <= self.limit:
            yield from lines
        else:
            for line in lines:
                self._check(line)
                yield line
        self._hold(last)

    def rest(self) -> bytes:
        """Take what is held: the unfinished frame that an ended stream leaves behind."""
        frame = bytes(self._held)
        self._held.clear()
        return frame

    def _hold(self, part: bytes) -> None:
        self._check(part)
        self._held += part

    def _check(self, part: bytes) -> None:
        if len(self._held) + len(part) > self.limit:
            self._held.clear()
            raise FrameTooLarge(self.limit)


class Noise(msgspec.Struct):
    """How many lines there were, and the first few of them."""

    lines: int = 0
    sample: str = ""

    def add(self, frame: bytes) -> None:
        self.lines += 1
        if len(self.sample) < 2000:
            self.sample += frame[:500].decode("utf-8", "replace") + "\n"
