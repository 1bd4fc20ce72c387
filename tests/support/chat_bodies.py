"""Bodies of requests as useChat sends them."""

from __future__ import annotations

from typing import Any


def message(text: str) -> dict[str, Any]:
    return {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}


def chat_body(chat_id: str, text: str = "go", **more: Any) -> dict[str, Any]:
    return {"id": chat_id, "messages": [message(text)], "trigger": "submit-message", **more}
