"""The chunks of an AI SDK UI message stream, and their encoding as server-sent events.

What is None is absent on the wire, never null. Releases 6 and 7 of the SDK both know `InBoth`;
`OnlyIn7` makes a client of release 6 throw, and one of release 5 throws at any chunk or field that
it does not know: `for_five` leaves those out. Nothing here knows ACP.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]
Sdk: TypeAlias = Literal[5, 6, 7] | None
"""The release of the SDK that reads the stream; None is whatever 6 and 7 both accept."""

FinishReason: TypeAlias = Literal[
    "stop", "length", "content-filter", "tool-calls", "error", "other", "interrupted"
]
"""`interrupted` is known to 7 alone."""


class _Chunk(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", rename="camel"
):
    pass


# ── the message ───────────────────────────────────────────────────────────────────────────────


class Start(_Chunk, frozen=True, kw_only=True, tag="start"):
    message_id: str
    message_metadata: Json | None = None


class Finish(_Chunk, frozen=True, kw_only=True, tag="finish"):
    finish_reason: FinishReason | None = None
    message_metadata: Json | None = None


class Abort(_Chunk, frozen=True, kw_only=True, tag="abort"):
    reason: str | None = None


class Error(_Chunk, frozen=True, kw_only=True, tag="error"):
    error_text: str


class MessageMetadata(_Chunk, frozen=True, kw_only=True, tag="message-metadata"):
    message_metadata: Json


class StartStep(_Chunk, frozen=True, kw_only=True, tag="start-step"):
    pass


class FinishStep(_Chunk, frozen=True, kw_only=True, tag="finish-step"):
    pass


# ── text ──────────────────────────────────────────────────────────────────────────────────────


class _Spoken(_Chunk, frozen=True, kw_only=True):
    id: str
    provider_metadata: Json | None = None


class _SpokenDelta(_Spoken, frozen=True, kw_only=True):
    delta: str


class TextStart(_Spoken, frozen=True, kw_only=True, tag="text-start"):
    pass


class TextDelta(_SpokenDelta, frozen=True, kw_only=True, tag="text-delta"):
    pass


class TextEnd(_Spoken, frozen=True, kw_only=True, tag="text-end"):
    pass


class ReasoningStart(_Spoken, frozen=True, kw_only=True, tag="reasoning-start"):
    pass


class ReasoningDelta(_SpokenDelta, frozen=True, kw_only=True, tag="reasoning-delta"):
    pass


class ReasoningEnd(_Spoken, frozen=True, kw_only=True, tag="reasoning-end"):
    pass


# ── tools ─────────────────────────────────────────────────────────────────────────────────────


class _Tool(_Chunk, frozen=True, kw_only=True):
    """Every tool is the agent's own: run by it, and unknown to the page beforehand."""

    tool_call_id: str
    dynamic: bool | None = None
    provider_executed: bool | None = None
    provider_metadata: Json | None = None


class ToolInputStart(_Tool, frozen=True, kw_only=True, tag="tool-input-start"):
    tool_name: str
    title: str | None = None


class ToolInputDelta(_Chunk, frozen=True, kw_only=True, tag="tool-input-delta"):
    tool_call_id: str
    input_text_delta: str


class ToolInputAvailable(_Tool, frozen=True, kw_only=True, tag="tool-input-available"):
    tool_name: str
    input: Any
    title: str | None = None


class ToolInputError(_Tool, frozen=True, kw_only=True, tag="tool-input-error"):
    tool_name: str
    input: Any
    error_text: str
    title: str | None = None


class ToolApprovalRequest(_Chunk, frozen=True, kw_only=True, tag="tool-approval-request"):
    approval_id: str
    tool_call_id: str


class ToolOutputAvailable(_Tool, frozen=True, kw_only=True, tag="tool-output-available"):
    output: Any
    preliminary: bool | None = None


class ToolOutputError(_Tool, frozen=True, kw_only=True, tag="tool-output-error"):
    error_text: str


class ToolOutputDenied(_Chunk, frozen=True, kw_only=True, tag="tool-output-denied"):
    tool_call_id: str


# ── everything else ───────────────────────────────────────────────────────────────────────────


class SourceUrl(_Chunk, frozen=True, kw_only=True, tag="source-url"):
    source_id: str
    url: str
    title: str | None = None
    provider_metadata: Json | None = None


class SourceDocument(_Chunk, frozen=True, kw_only=True, tag="source-document"):
    source_id: str
    media_type: str
    title: str
    filename: str | None = None
    provider_metadata: Json | None = None


class File(_Chunk, frozen=True, kw_only=True, tag="file"):
    url: str
    media_type: str
    provider_metadata: Json | None = None


class Data(msgspec.Struct, frozen=True, omit_defaults=True):
    """`type` is `data-` and a name; one with an id replaces the one before it in place."""

    type: str
    data: Any
    id: str | None = None
    transient: bool | None = None


# ── only release 7 knows these ────────────────────────────────────────────────────────────────


class ToolApprovalResponse(_Chunk, frozen=True, kw_only=True, tag="tool-approval-response"):
    approval_id: str
    approved: bool
    reason: str | None = None
    provider_executed: bool | None = None
    provider_metadata: Json | None = None


class ResetStep(_Chunk, frozen=True, kw_only=True, tag="reset-step"):
    pass


class ReasoningFile(_Chunk, frozen=True, kw_only=True, tag="reasoning-file"):
    url: str
    media_type: str
    provider_metadata: Json | None = None


class Custom(_Chunk, frozen=True, kw_only=True, tag="custom"):
    """`kind` has a dot in it: whose it is, and what."""

    kind: str
    provider_metadata: Json | None = None


class SteeringMessage(_Chunk, frozen=True, kw_only=True, tag="steering-message"):
    id: str
    parts: list[Json]


InBoth: TypeAlias = (
    Start
    | Finish
    | Abort
    | Error
    | MessageMetadata
    | StartStep
    | FinishStep
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolInputAvailable
    | ToolInputError
    | ToolApprovalRequest
    | ToolOutputAvailable
    | ToolOutputError
    | ToolOutputDenied
    | SourceUrl
    | SourceDocument
    | File
    | Data
)
OnlyIn7: TypeAlias = ToolApprovalResponse | ResetStep | ReasoningFile | Custom | SteeringMessage
Chunk: TypeAlias = InBoth | OnlyIn7

_LATER_FIELDS = ("provider_metadata", "finish_reason", "reason")
"""Which release 5 knew in no chunk, or not from its beginning."""


def for_five(chunk: Chunk) -> Chunk:
    """The chunk as every release 5 takes it."""
    if isinstance(chunk, ToolOutputDenied):
        return ToolOutputError(tool_call_id=chunk.tool_call_id, error_text="it was not allowed")
    later = (
        _LATER_FIELDS
        if isinstance(chunk, SourceUrl | SourceDocument)
        else (
            *_LATER_FIELDS,
            "title",
        )
    )
    changes = {name: None for name in later if getattr(chunk, name, None) is not None}
    return msgspec.structs.replace(chunk, **changes) if changes else chunk


HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
DONE: Final = b"data: [DONE]\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"

_SUSPECT = (b'"__proto__"', b'"constructor"')


def encode(chunk: Chunk) -> bytes:
    """One chunk as one event."""
    data = msgspec.json.encode(chunk)
    if any(word in data for word in _SUSPECT):
        data = msgspec.json.encode(_harmless(msgspec.json.decode(data)))
    return b"data: " + data + b"\n\n"


def _harmless(value: Any) -> Any:
    """The SDK's parser gives up on keys that could reach a prototype, so they get another name."""
    if is_object(value):
        return {_renamed(key, inner): _harmless(inner) for key, inner in value.items()}
    return [_harmless(inner) for inner in value] if _is_list(value) else value


def _renamed(key: str, value: Any) -> str:
    is_constructor = key == "constructor" and is_object(value) and "prototype" in value
    return f"unsafe:{key}" if key == "__proto__" or is_constructor else key


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
