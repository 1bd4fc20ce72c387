"""An assistant's UI message as it grows with the chunks of its stream.

It grows as the SDK's own reducer has it, which the tests hold it to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from dragoman.ui_stream.acp_json import given, is_object
from dragoman.ui_stream.chunks import (
    Chunk,
    Data,
    File,
    Finish,
    Json,
    MessageMetadata,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningFile,
    ReasoningStart,
    SourceDocument,
    SourceUrl,
    Start,
    StartStep,
    TextDelta,
    TextEnd,
    TextStart,
    ToolApprovalRequest,
    ToolApprovalResponse,
    ToolInputAvailable,
    ToolInputStart,
    ToolOutputAvailable,
    ToolOutputDenied,
    ToolOutputError,
)

_encode = msgspec.json.Encoder().encode
_DELTAS = (TextDelta, ReasoningDelta)
_ENDS = (TextEnd, ReasoningEnd, Start, Finish, MessageMetadata)
"""What is taken however much there is."""


class UIMessage(msgspec.Struct, omit_defaults=True):
    """A message as the AI SDK has it; its parts are plain JSON."""

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
        length = len(chunk.delta) if isinstance(chunk, _DELTAS) else len(_encode(chunk))
        if self.cut or self.size + length > self._limit:
            self.cut += length
            return False
        self.size += length
        return True

    # ── the message and its texts ─────────────────────────────────────────────────────────────

    def start(self, chunk: Start) -> None:
        self.message.id = chunk.message_id
        self.learn(chunk)

    def learn(self, chunk: Start | Finish | MessageMetadata) -> None:
        if chunk.message_metadata is not None:
            self.message.metadata = _merged(self.message.metadata or {}, chunk.message_metadata)

    def add(self, part: Json) -> Json:
        self.message.parts.append(part)
        return part

    def start_step(self, chunk: StartStep) -> None:
        self._step_tools.clear()
        self.add({"type": "step-start"})

    def start_text(self, chunk: TextStart | ReasoningStart) -> None:
        is_text = isinstance(chunk, TextStart)
        part: Json = {"type": "text"} if is_text else {"type": "reasoning", "id": chunk.id}
        part |= given(providerMetadata=chunk.provider_metadata)
        self._spoken[chunk.id] = self.add({**part, "text": "", "state": "streaming"}), []

    def extend_text(self, chunk: TextDelta | ReasoningDelta) -> None:
        self._spoken[chunk.id][1].append(chunk.delta)

    def end_text(self, chunk: TextEnd | ReasoningEnd) -> None:
        if chunk.id not in self._spoken:
            return  # it began behind the limit
        part, pieces = self._spoken.pop(chunk.id)
        part |= {"text": "".join(pieces), "state": "done"}

    def add_whole(self, chunk: File | ReasoningFile | SourceUrl | SourceDocument) -> None:
        self.add(msgspec.to_builtins(chunk))

    def data(self, chunk: Data) -> None:
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

    def tool_input(self, chunk: ToolInputStart | ToolInputAvailable) -> None:
        part = self._tool_of_step(chunk.tool_call_id)
        for field in ("input", "output", "errorText", "preliminary"):
            part.pop(field, None)
        part["toolName"] = chunk.tool_name
        part["state"] = "input-streaming"
        part["providerExecuted"] = True
        part |= given(title=chunk.title, callProviderMetadata=chunk.provider_metadata)
        if isinstance(chunk, ToolInputAvailable):
            part |= {"state": "input-available", "input": chunk.input}

    def ask(self, chunk: ToolApprovalRequest) -> None:
        part = self._tools[chunk.tool_call_id]
        part |= {"state": "approval-requested", "approval": {"id": chunk.approval_id}}

    def answer(self, chunk: ToolApprovalResponse) -> None:
        for part in self.message.parts:
            approval: Json | None = part.get("approval")
            if approval is not None and approval["id"] == chunk.approval_id:
                part["state"] = "approval-responded"
                approval["approved"] = chunk.approved

    def tool_output(self, chunk: ToolOutputAvailable) -> None:
        part = self._ended(chunk.tool_call_id, "output-available")
        part |= given(preliminary=chunk.preliminary)
        part["output"] = chunk.output

    def tool_error(self, chunk: ToolOutputError) -> None:
        self._ended(chunk.tool_call_id, "output-error")["errorText"] = chunk.error_text

    def tool_denied(self, chunk: ToolOutputDenied) -> None:
        self._tools[chunk.tool_call_id]["state"] = "output-denied"

    def _ended(self, tool_call_id: str, state: str) -> Json:
        part = self._tools[tool_call_id]
        for field in ("output", "errorText", "preliminary"):
            part.pop(field, None)
        part["state"] = state
        return part

    def _tool_of_step(self, tool_call_id: str) -> Json:
        """Its part in the current step; an older one is not found, and is made anew."""
        if tool_call_id not in self._step_tools:
            self._step_tools.add(tool_call_id)
            part: Json = {"type": "dynamic-tool", "toolCallId": tool_call_id}
            self._tools[tool_call_id] = self.add(part)
        return self._tools[tool_call_id]


_READERS: dict[type[Any], Callable[[Message, Any], None]] = {
    Start: Message.start,
    Finish: Message.learn,
    MessageMetadata: Message.learn,
    StartStep: Message.start_step,
    TextStart: Message.start_text,
    TextDelta: Message.extend_text,
    TextEnd: Message.end_text,
    ReasoningStart: Message.start_text,
    ReasoningDelta: Message.extend_text,
    ReasoningEnd: Message.end_text,
    File: Message.add_whole,
    ReasoningFile: Message.add_whole,
    SourceUrl: Message.add_whole,
    SourceDocument: Message.add_whole,
    Data: Message.data,
    ToolInputStart: Message.tool_input,
    ToolInputAvailable: Message.tool_input,
    ToolApprovalRequest: Message.ask,
    ToolApprovalResponse: Message.answer,
    ToolOutputAvailable: Message.tool_output,
    ToolOutputError: Message.tool_error,
    ToolOutputDenied: Message.tool_denied,
}


def _merged(known: Json, more: Json) -> Json:
    both = {**known, **more}
    for key, value in more.items():
        if is_object(known.get(key)) and is_object(value):
            both[key] = _merged(known[key], value)
    return both
