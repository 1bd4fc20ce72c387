"""What Streamable HTTP needs to know about a message: its session, and the request it answers.

The one place below the client that looks inside messages, since over HTTP they travel on different
streams. The client's side and the bridge share it.
"""

from __future__ import annotations

from typing import Final

import msgspec

CONNECTION_ID: Final = "Acp-Connection-Id"
SESSION_ID: Final = "Acp-Session-Id"
JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
INITIALIZE: Final = "initialize"


class Outline(msgspec.Struct, frozen=True):
    """`id` is the JSON it is; `session` is named by the params, `opened` by a result."""

    id: bytes | None = None
    method: str | None = None
    session: str | None = None
    opened: str | None = None

    @property
    def is_request(self) -> bool:
        return self.method is not None and self.id is not None

    @property
    def is_answer(self) -> bool:
        return self.method is None and self.id is not None


class Exchanges:
    """Which session each request under way is of, and so its answer."""

    def __init__(self) -> None:
        self._theirs: dict[bytes, str] = {}
        self._ours: dict[bytes, str | None] = {}

    def goes_to(self, message: Outline) -> str | None:
        """The session that a message of ours is of."""
        if message.is_answer and message.id is not None:
            return self._theirs.pop(message.id, None)
        return message.session

    def sent(self, message: Outline, session: str | None) -> None:
        if message.is_request and message.id is not None:
            self._ours[message.id] = session

    def arrived(self, message: Outline, session: str | None) -> bool:
        """On the stream of this session, or the connection's. Whether it answers a request of
        ours."""
        if message.id is None:
            return False
        if message.is_answer:
            is_awaited = message.id in self._ours
            self._ours.pop(message.id, None)
            return is_awaited
        if session is not None:
            self._theirs[message.id] = session
        return False

    def awaits(self, session: str) -> bool:
        """Whether a request of ours is not answered yet."""
        return session in self._ours.values()


_ABSENT = msgspec.Raw(b"")


class _Named(msgspec.Struct):
    session_id: str | None = msgspec.field(name="sessionId", default=None)


class _Envelope(msgspec.Struct):
    id: msgspec.Raw = _ABSENT
    method: str | None = None
    params: msgspec.Raw = _ABSENT
    result: msgspec.Raw = _ABSENT


def outline(frame: bytes) -> Outline:
    """Never raises: what is not a message has no known fields."""
    try:
        envelope = msgspec.json.decode(frame, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Outline()
    return Outline(
        bytes(envelope.id) or None,
        envelope.method,
        _session(envelope.params),
        _session(envelope.result),
    )


def _session(value: msgspec.Raw) -> str | None:
    try:
        return msgspec.json.decode(value, type=_Named).session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
