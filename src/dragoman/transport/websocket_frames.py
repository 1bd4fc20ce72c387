"""WebSocket frames (RFC 6455) to lines and back: sans I/O, the client's side alone.

The payload of a text message is passed on as it arrives, with a newline behind its end, so that
the code that splits lines also enforces the limit. What comes of `websockets` is the masking; its
own parser takes several times as long for a frame, and holds each message as a whole.
"""

from __future__ import annotations

from secrets import token_bytes

try:
    from websockets.speedups import apply_mask
except ImportError:  # where there is no compiled one
    from websockets.utils import apply_mask

_TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x1, 0x2, 0x8, 0x9, 0xA
_FIN, _RESERVED, _MASKED = 0x80, 0x70, 0x80
_WHOLE_TEXT = _FIN | _TEXT
_LARGEST_CONTROL = 125
_NO_CODE = 1005


class BadFrame(Exception):
    """The peer broke the WebSocket protocol; the reason is the end of a sentence."""


class Incoming:
    """Feed it what arrives. `pings` are to be answered, `closed` is how the other side ended it."""

    def __init__(self) -> None:
        self.pings: list[bytes] = []
        self.closed: tuple[int, str] | None = None
        self._held = b""
        """The beginning of a head, or of a control frame."""
        self._left = 0
        """How much of the payload of a data frame is still to come."""
        self._kind = 0
        """Of the message that is under way; 0 between messages."""
        self._is_last = False

    def feed(self, data: bytes) -> bytes:
        """The lines, or parts of them, that came. Raises BadFrame."""
        if self._held:
            data, self._held = self._held + data, b""
        lines: list[bytes] = []
        at, end = 0, len(data)
        while at < end and self.closed is None:
            if self._left:
                part = data[at : at + self._left]
                at += len(part)
                self._take(part, lines)
            elif not self._kind and (after := _short_texts(data, at, end, lines)) > at:
                at = after
            else:
                after = self._one(data, at, end, lines)
                if after == at:
                    break
                at = after
        if self.closed is None:
            self._held = data[at:]
        return b"".join(lines)

    def _one(self, data: bytes, at: int, end: int, lines: list[bytes]) -> int:
        """A control frame, or the head of another; where it ends, or `at` if more must come."""
        start, length = _head(data, at, end)
        if not start:
            return at
        if not data[at] & 0x8:
            self._begin(data[at], length)
            if not length:
                self._take(b"", lines)
            return start
        if start + length > end and length <= _LARGEST_CONTROL:
            return at
        self._control(data[at], data[start : start + length])
        return start + length

    def _begin(self, first: int, length: int) -> None:
        opcode = first & 0xF
        if first & _RESERVED or opcode not in (0, _TEXT, _BINARY):
            raise BadFrame("it uses an extension that was not negotiated")
        if (opcode == 0) != (self._kind != 0):
            raise BadFrame("its frames are out of order")
        self._kind = opcode or self._kind
        self._left, self._is_last = length, bool(first & _FIN)

    def _take(self, part: bytes, lines: list[bytes]) -> None:
        self._left -= len(part)
        is_text = self._kind == _TEXT  # the transport has no use for binary messages
        if is_text:
            lines.append(_on_one_line(part))
        if not self._left and self._is_last:
            self._kind = 0
            if is_text:
                lines.append(b"\n")

    def _control(self, first: int, payload: bytes) -> None:
        opcode = first & 0xF
        if len(payload) > _LARGEST_CONTROL or first & _RESERVED or not first & _FIN:
            raise BadFrame("a control frame is too large or fragmented")
        if opcode == _PING:
            self.pings.append(payload)
        elif opcode == _CLOSE:
            code = int.from_bytes(payload[:2]) if len(payload) > 1 else _NO_CODE
            self.closed = (code, payload[2:].decode("utf-8", "replace"))
        elif opcode != _PONG:
            raise BadFrame("it uses an extension that was not negotiated")


def _short_texts(data: bytes, at: int, end: int, lines: list[bytes]) -> int:
    """Take the frames from `at` on that hold a whole text of less than 64 KiB; where they end.

    Nearly all are like that, and this loop is most of what a frame costs.
    """
    is_odd = b"\n" in data
    while at + 4 <= end and data[at] == _WHOLE_TEXT:
        length, start = data[at + 1], at + 2
        if length == 126:
            length, start = data[at + 2] << 8 | data[at + 3], at + 4
        elif length > 126:
            break
        stop = start + length
        if stop > end:
            break
        payload = data[start:stop]
        lines.append(_on_one_line(payload) if is_odd else payload)
        lines.append(b"\n")
        at = stop
    return at


def _head(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where the payload starts and its length; zeros when the head is not all there."""
    if end - at < 2:
        return 0, 0
    length = data[at + 1]
    if length & _MASKED:
        raise BadFrame("a server must not mask its frames")
    if length < 126:
        return at + 2, length
    start = at + (4 if length == 126 else 10)
    return (start, int.from_bytes(data[at + 2 : start])) if start <= end else (0, 0)


def _on_one_line(payload: bytes) -> bytes:
    """A newline is allowed between the values of JSON; one message must not become two lines."""
    return payload.replace(b"\n", b" ")


def text(payload: bytes) -> bytes:
    return _frame(_WHOLE_TEXT, payload)


def ping() -> bytes:
    return _frame(_FIN | _PING, b"")


def pong(payload: bytes) -> bytes:
    return _frame(_FIN | _PONG, payload)


def close(code: int) -> bytes:
    return _frame(_FIN | _CLOSE, code.to_bytes(2))


def _frame(first: int, payload: bytes) -> bytes:
    size, mask = len(payload), token_bytes(4)
    if size < 126:
        head = bytes((first, _MASKED | size))
    elif size < 1 << 16:
        head = bytes((first, _MASKED | 126)) + size.to_bytes(2)
    else:
        head = bytes((first, _MASKED | 127)) + size.to_bytes(8)
    return b"".join((head, mask, apply_mask(payload, mask)))
