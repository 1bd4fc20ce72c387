"""Stored sessions as UI messages: what `useChat` takes as its initial messages.

Each is what a page would have made of the turn's stream: the same encoder writes the chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.ui_stream import acp_json
from dragoman.ui_stream.acp_json import given
from dragoman.ui_stream.chunks import Json, Sdk
from dragoman.ui_stream.encoder import Encoder
from dragoman.ui_stream.message import Message, UIMessage
from dragoman.ui_stream.spoken import ANY_TYPE, file_of, is_web

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
    history = _History(sdk, _pending(recorded))
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


class _History:
    def __init__(self, sdk: Sdk, pending: set[str]) -> None:
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
            self._found.append(UIMessage(f"{event.turn_id}-prompt", "user", parts))
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
            self._found.append(last)
        self._told_by = event.message_id or ""
        _add(last.parts, parts)

    def _new_id(self) -> str:
        return f"message-{len(self._found) + 1}"

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
            self._found.append(self._message.message)
        self._encoder, self._message, self._in_turn = None, Message(), False


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
