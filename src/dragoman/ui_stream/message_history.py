"""Sessions as UI messages for `useChat`: stored ones, and the one that is growing.

Each is what a page would have made of the turn's stream: the same encoder writes the chunks.

It grows as the SDK's own reducer has it, which the tests hold it to.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Literal

import msgspec

from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.ui_stream import acp_json, chunks
from dragoman.ui_stream.acp_json import given
from dragoman.ui_stream.chunks import Chunk, Json, Sdk, is_object
from dragoman.ui_stream.encoder import Encoder
from dragoman.ui_stream.message_parts import ANY_TYPE, file_of, is_web

_encode = msgspec.json.Encoder().encode
_CONTENT = (e.AgentMessage, e.AgentThought, e.ToolCallUpdated, e.PlanUpdated, e.Notice)
"""What begins a message where no turn runs."""


def messages(
    events: Iterable[e.Event], *, sdk: Sdk = None, without_active: bool = False
) -> list[UIMessage]:
    """The messages of a session, made from all its events.

    `without_active` leaves the answer of a running turn out: a page that resumes the stream gets
    all of it from its start.
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


def _cut_note(cut: int) -> list[chunks.MessageMetadata]:
    return [chunks.MessageMetadata(message_metadata={"acp": {"cut": cut}})] if cut else []


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


_DELTAS = (chunks.TextDelta, chunks.ReasoningDelta)
_ENDS = (chunks.TextEnd, chunks.ReasoningEnd, chunks.Start, chunks.Finish, chunks.MessageMetadata)
"""What is taken however much there is."""


class UIMessage(msgspec.Struct, omit_defaults=True):
    """A message of the AI SDK; its parts are plain JSON."""

    id: str
    role: Literal["user", "assistant"]
    parts: list[Json]
    metadata: Json | None = None


MAX_MESSAGE = 8 * 1024 * 1024
"""Bytes of a message that are kept, as JSON."""


class Message:
    """An assistant's message that grows with the chunks of its stream, up to its `limit`: `cut`
    counts the bytes that came behind that."""

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.message = UIMessage("", "assistant", [])
        self.size = 0
        self.cut = 0
        self._limit = limit
        # Texts are joined when their part ends, so that a delta costs the same at any length.
        self._spoken: dict[str, tuple[Json, list[str]]] = {}
        self._tools: dict[str, Json] = {}
        self._data: dict[tuple[str, str], Json] = {}
        self._step_tools: set[str] = set()

    def apply(self, *chunks: Chunk) -> None:
        for chunk in chunks:
            step = _READERS.get(type(chunk))
            if step is not None and self._fits(chunk):
                step(self, chunk)

    def _fits(self, chunk: Chunk) -> bool:
        if isinstance(chunk, _ENDS):
            return True
        # Of a delta, what it adds to a text that is there already: no quotation marks.
        is_delta = isinstance(chunk, _DELTAS)
        length = len(_encode(chunk.delta)) - 2 if is_delta else len(_encode(chunk))
        if self.cut or self.size + length > self._limit:
            self.cut += length
            return False
        self.size += length
        return True

    # ── the message and its texts ─────────────────────────────────────────────────────────────

    def start(self, chunk: chunks.Start) -> None:
        self.message.id = chunk.message_id
        self.learn(chunk)

    def learn(self, chunk: chunks.Start | chunks.Finish | chunks.MessageMetadata) -> None:
        if chunk.message_metadata is not None:
            self.message.metadata = _merged(self.message.metadata or {}, chunk.message_metadata)

    def add(self, part: Json) -> Json:
        self.message.parts.append(part)
        return part

    def start_step(self, chunk: chunks.StartStep) -> None:
        self._step_tools.clear()
        self.add({"type": "step-start"})

    def start_text(self, chunk: chunks.TextStart | chunks.ReasoningStart) -> None:
        is_text = isinstance(chunk, chunks.TextStart)
        part: Json = {"type": "text"} if is_text else {"type": "reasoning", "id": chunk.id}
        part |= given(providerMetadata=chunk.provider_metadata)
        self._spoken[chunk.id] = self.add({**part, "text": "", "state": "streaming"}), []

    def extend_text(self, chunk: chunks.TextDelta | chunks.ReasoningDelta) -> None:
        self._spoken[chunk.id][1].append(chunk.delta)

    def end_text(self, chunk: chunks.TextEnd | chunks.ReasoningEnd) -> None:
        if chunk.id not in self._spoken:
            return  # it began behind the limit
        part, pieces = self._spoken.pop(chunk.id)
        part |= {"text": "".join(pieces), "state": "done"}

    def add_whole(
        self, chunk: chunks.File | chunks.ReasoningFile | chunks.SourceUrl | chunks.SourceDocument
    ) -> None:
        self.add(msgspec.to_builtins(chunk))

    def data(self, chunk: chunks.Data) -> None:
        if chunk.transient:
            return
        known = None if chunk.id is None else self._data.get((chunk.type, chunk.id))
        if known is not None:
            known["data"] = chunk.data
            return
        part = self.add(given(type=chunk.type, id=chunk.id, data=chunk.data))
        if chunk.id is not None:
            self._data[chunk.type, chunk.id] = part

    # ── tools ─────────────────────────────────────────────────────────────────────────────────

    def tool_input(self, chunk: chunks.ToolInputStart | chunks.ToolInputAvailable) -> None:
        part = self._tool_of_step(chunk.tool_call_id)
        for field in ("input", "output", "errorText", "preliminary"):
            part.pop(field, None)
        part["toolName"] = chunk.tool_name
        part["state"] = "input-streaming"
        part["providerExecuted"] = True
        part |= given(title=chunk.title, callProviderMetadata=chunk.provider_metadata)
        if isinstance(chunk, chunks.ToolInputAvailable):
            part |= {"state": "input-available", "input": chunk.input}

    def ask(self, chunk: chunks.ToolApprovalRequest) -> None:
        part = self._tools[chunk.tool_call_id]
        part |= {"state": "approval-requested", "approval": {"id": chunk.approval_id}}

    def answer(self, chunk: chunks.ToolApprovalResponse) -> None:
        for part in self.message.parts:
            approval: Json | None = part.get("approval")
            if approval is not None and approval["id"] == chunk.approval_id:
                part["state"] = "approval-responded"
                approval["approved"] = chunk.approved

    def tool_output(self, chunk: chunks.ToolOutputAvailable) -> None:
        part = self._ended(chunk.tool_call_id, "output-available")
        part |= given(preliminary=chunk.preliminary)
        part["output"] = chunk.output

    def tool_error(self, chunk: chunks.ToolOutputError) -> None:
        self._ended(chunk.tool_call_id, "output-error")["errorText"] = chunk.error_text

    def tool_denied(self, chunk: chunks.ToolOutputDenied) -> None:
        self._tools[chunk.tool_call_id]["state"] = "output-denied"

    def _ended(self, tool_call_id: str, state: str) -> Json:
        part = self._tools[tool_call_id]
        for field in ("output", "errorText", "preliminary"):
            part.pop(field, None)
        part["state"] = state
        return part

    def _tool_of_step(self, tool_call_id: str) -> Json:
        """Its part in the current step; an older one is not found, and is created again."""
        if tool_call_id not in self._step_tools:
            self._step_tools.add(tool_call_id)
            part: Json = {"type": "dynamic-tool", "toolCallId": tool_call_id}
            self._tools[tool_call_id] = self.add(part)
        return self._tools[tool_call_id]


_READERS: dict[type[Any], Callable[[Message, Any], None]] = {
    chunks.Start: Message.start,
    chunks.Finish: Message.learn,
    chunks.MessageMetadata: Message.learn,
    chunks.StartStep: Message.start_step,
    chunks.TextStart: Message.start_text,
    chunks.TextDelta: Message.extend_text,
    chunks.TextEnd: Message.end_text,
    chunks.ReasoningStart: Message.start_text,
    chunks.ReasoningDelta: Message.extend_text,
    chunks.ReasoningEnd: Message.end_text,
    chunks.File: Message.add_whole,
    chunks.ReasoningFile: Message.add_whole,
    chunks.SourceUrl: Message.add_whole,
    chunks.SourceDocument: Message.add_whole,
    chunks.Data: Message.data,
    chunks.ToolInputStart: Message.tool_input,
    chunks.ToolInputAvailable: Message.tool_input,
    chunks.ToolApprovalRequest: Message.ask,
    chunks.ToolApprovalResponse: Message.answer,
    chunks.ToolOutputAvailable: Message.tool_output,
    chunks.ToolOutputError: Message.tool_error,
    chunks.ToolOutputDenied: Message.tool_denied,
}


def _merged(known: Json, more: Json) -> Json:
    both = {**known, **more}
    for key, value in more.items():
        if is_object(known.get(key)) and is_object(value):
            both[key] = _merged(known[key], value)
    return both
