"""Stored sessions as UI messages: what `useChat` takes as its initial messages.

Each is what a page would have made of the turn's stream: the same encoder writes the chunks.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import msgspec

from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.ui_stream import acp_json
from dragoman.ui_stream.acp_json import given
from dragoman.ui_stream.chunks import Json, MessageMetadata, Sdk
from dragoman.ui_stream.encoder import Encoder
from dragoman.ui_stream.message import MAX_MESSAGE, Message, UIMessage
from dragoman.ui_stream.spoken import ANY_TYPE, file_of, is_web

_encode = msgspec.json.Encoder().encode
_CONTENT = (e.AgentMessage, e.AgentThought, e.ToolCallUpdated, e.PlanUpdated, e.Notice)
"""What begins a message where no turn runs."""


def messages(
    events: Iterable[e.Event], *, sdk: Sdk = None, without_active: bool = False
) -> list[UIMessage]:
    """The messages of a session, from its first event on.

    `without_active` leaves the answer of a running turn out: a page that resumes the stream is
    told all of it from its start.
    """
    recorded = list(events)
    history = History(sdk, _pending(recorded))
    for event in recorded:
        history.take(event)
    return history.all(without_active=without_active)


def _pending(events: Sequence[e.Event]) -> set[str]:
    """The requests that wait at the end of these events."""
    waiting: set[str] = set()
    for event in events:
        match event:
            case e.PermissionRequested() | e.ElicitationRequested():
                waiting.add(event.request_id)
            case e.PermissionSettled() | e.ElicitationSettled():
                waiting.discard(event.request_id)
            case e.TurnEnded() | e.SessionOpened():
                waiting.clear()
            case _:
                pass
    return waiting


MAX_HISTORY = 16 * 1024 * 1024
"""Bytes of the messages that are kept, as JSON: the newest."""


class History:
    """Takes the events of a session, in order, and has its newest messages; `dropped` counts those
    before them. `pending` are the requests that wait at the end."""

    def __init__(self, sdk: Sdk, pending: Container[str], limit: int = MAX_HISTORY) -> None:
        self.dropped = 0
        self._limit = limit
        self._sizes: list[int] = []
        self._size = 0
        self._sdk: Sdk = sdk
        self._pending = pending
        self._session_id = ""
        self._found: list[UIMessage] = []
        self._encoder: Encoder | None = None
        self._message = Message()
        self._in_turn = False
        self._told_by: str | None = None
        self._tools: set[str] = set()

    def take(self, event: e.Event) -> None:
        match event:
            case e.SessionOpened():
                self._session_id = event.session_id
            case e.TurnStarted():
                self._end()
                self._prompted(event)
            case e.UserMessage() if not self._in_turn:
                self._end()
                self._user_said(event)
            case _:
                self._feed(event)

    def all(self, *, without_active: bool) -> list[UIMessage]:
        active = self._in_turn
        self._end()
        is_told = active and self._found and self._found[-1].role == "assistant"
        return self._found[:-1] if is_told and without_active else self._found

    # ── what the user said ────────────────────────────────────────────────────────────────────

    def _prompted(self, event: e.TurnStarted) -> None:
        parts = [part for content in event.content for part in user_parts(content)]
        if parts:
            self._keep(UIMessage(f"{event.turn_id}-prompt", "user", parts))
        self._told_by = None
        self._in_turn = True
        self._encoder = Encoder(self._session_id, sdk=self._sdk)
        self._message.apply(*self._encoder.feed(event))

    def _user_said(self, event: e.UserMessage) -> None:
        parts = user_parts(event.content)
        if not parts:
            return
        last = self._found[-1] if self._found else None
        if last is None or last.role != "user" or self._told_by != (event.message_id or ""):
            last = UIMessage(self._new_id(), "user", [])
            self._keep(last)
        self._told_by = event.message_id or ""
        size = sum(len(_encode(part)) for part in parts)
        if self._sizes[-1] + size <= MAX_MESSAGE:
            self._sizes[-1] += size
            self._size += size
            _add(last.parts, parts)

    def _new_id(self) -> str:
        return f"message-{self.dropped + len(self._found) + 1}"

    def _keep(self, message: UIMessage) -> None:
        """And let the oldest go when there is too much."""
        self._found.append(message)
        self._sizes.append(len(_encode(message)))
        self._size += self._sizes[-1]
        if self._size > self._limit:
            gone = 0
            while self._size > self._limit * 3 // 4 and gone < len(self._found) - 1:
                self._size -= self._sizes[gone]
                gone += 1
            del self._found[:gone], self._sizes[:gone]
            self.dropped += gone

    # ── what the agent said ───────────────────────────────────────────────────────────────────

    def _feed(self, event: e.Event) -> None:
        if isinstance(event, e.ToolCallUpdated):
            # Some agents report on a tool when its turn is long over.
            if self._encoder is None and not event.replay and event.tool_call_id in self._tools:
                return
            self._tools.add(event.tool_call_id)
        if self._encoder is None and isinstance(event, _CONTENT):
            self._encoder = Encoder(self._session_id, sdk=self._sdk)
            self._message.apply(*self._encoder.begin(self._new_id()))
        if self._encoder is not None:
            self._message.apply(*self._encoder.feed(event, pending=self._pending))
            if self._encoder.ended:
                self._end()

    def _end(self) -> None:
        if self._encoder is not None:
            self._message.apply(*self._encoder.close())
            self._message.apply(*_cut_note(self._message.cut))
            self._keep(self._message.message)
        self._encoder, self._message, self._in_turn = None, Message(), False


def _cut_note(cut: int) -> list[MessageMetadata]:
    return [MessageMetadata(message_metadata={"acp": {"cut": cut}})] if cut else []


def user_parts(content: c.Content) -> list[Json]:
    """What a user sent, as parts of their message."""
    match content:
        case c.Text():
            return [{"type": "text", "text": content.text}] if content.text else []
        case c.ResourceLink() if is_web(content.uri):
            return [
                given(
                    type="file",
                    url=content.uri,
                    mediaType=content.mime_type or ANY_TYPE,
                    filename=content.name or None,
                )
            ]
        case c.ResourceLink() | c.UnknownContent():
            return [{"type": "data-acp-content", "data": acp_json.content(content)}]
        case _:
            url, media_type, metadata = file_of(content)
            return [given(type="file", url=url, mediaType=media_type, providerMetadata=metadata)]


def _add(parts: list[Json], more: list[Json]) -> None:
    """Pieces of one text become one text."""
    for part in more:
        if parts and parts[-1]["type"] == part["type"] == "text":
            parts[-1]["text"] += part["text"]
        else:
            parts.append(part)
