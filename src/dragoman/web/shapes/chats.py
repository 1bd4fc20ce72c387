"""Chats of the AI SDK, and the health of the server."""

from __future__ import annotations

from typing import Literal

from dragoman.ui_stream import UIMessage
from dragoman.web.shapes.base import Shape


class ChatQuery(Shape):
    """The release of the AI SDK that reads the stream; without it, what 6 and 7 both accept."""

    sdk: Literal[5, 6, 7] | None = None


class MessagesQuery(ChatQuery):
    """`active` includes the answer of a running turn, which a resumed stream tells again."""

    active: bool = False


class Messages(Shape):
    """The newest messages; `dropped` counts those before them."""

    messages: list[UIMessage]
    dropped: int = 0


class Health(Shape):
    version: str
    status: Literal["ok"] = "ok"


class Readiness(Shape):
    status: Literal["ready"] = "ready"
