"""The end of what a command printed: so many bytes of it, cut between two characters.

Pure. Memory stays within the limit and a few blocks, however much is appended; nothing here
knows where the bytes come from.
"""

from __future__ import annotations

import codecs
from collections import deque
from typing import NamedTuple

# What is dropped at once, so that nothing that stays is ever moved.
_BLOCK = 64 * 1024
_LONGEST_CHARACTER = 4
_decoder = codecs.getincrementaldecoder("utf-8")


class Kept(NamedTuple):
    """Text of at most the limit in UTF-8, and whether something before it was dropped."""

    text: str
    truncated: bool


class OutputTail:
    """The last `limit` bytes of what is appended."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._blocks: deque[bytearray] = deque()
        self._size = 0
        self._total = 0

    def append(self, data: bytes) -> None:
        if not self._blocks or len(self._blocks[-1]) >= _BLOCK:
            self._blocks.append(bytearray())
        self._blocks[-1] += data
        self._size += len(data)
        self._total += len(data)
        while self._blocks and self._size - len(self._blocks[0]) >= self._limit:
            self._size -= len(self._blocks.popleft())

    def read(self, *, final: bool) -> Kept:
        """What is kept; a character that is not there in full is left out unless it is `final`."""
        truncated = self._total > self._limit
        data = b"".join(self._blocks)[max(0, self._size - self._limit) :]
        start = _boundary(data) if truncated else 0
        text = _decoder("replace").decode(data[start:], final)
        if "\ufffd" in text:
            return _within(text, self._limit, truncated)
        return Kept(text, truncated)


def _within(text: str, limit: int, truncated: bool) -> Kept:
    """Cut again where bytes that are no text became replacement characters, three bytes each."""
    data = text.encode()
    over = len(data) - limit
    if over <= 0:
        return Kept(text, truncated)
    data = data[over:]
    return Kept(data[_boundary(data) :].decode(), True)


def _boundary(data: bytes) -> int:
    """Where the first character starts, in data that may begin in the middle of one."""
    for at, byte in enumerate(data[: _LONGEST_CHARACTER - 1]):
        if byte & 0xC0 != 0x80:
            return at
    return min(len(data), _LONGEST_CHARACTER - 1)
