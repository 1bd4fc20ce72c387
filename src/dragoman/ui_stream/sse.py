"""Chunks as server-sent events, and the headers that tell an AI SDK client what they are."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman.ui_stream.acp_json import is_object
from dragoman.ui_stream.chunks import Chunk

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


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
