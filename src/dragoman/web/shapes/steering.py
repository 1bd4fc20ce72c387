"""What is asked of a session."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dragoman.session.state import (
    QueuedPrompt,
)
from dragoman.web.shapes.base import Shape


class PromptBody(Shape):
    """`text`, whose mentions become links, or blocks of `content` as in ACP, or both."""

    text: str | None = None
    content: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])


class Accepted(Shape, omit_defaults=True):
    """The prompt's turn; `queued` behind another one. `delayed` says why it does not begin yet,
    while the database cannot be reached."""

    turn: str
    queued: bool
    delayed: str | None = None


class Cancelled(Shape):
    """Whether there was something to cancel: a turn, or a part of one that still ran."""

    cancelled: bool


class Nothing(Shape):
    """No more than that it was done."""


class ModeBody(Shape):
    mode_id: str


class ConfigBody(Shape):
    config_id: str
    value: str | bool


class PermissionBody(Shape):
    option_id: str


class ElicitationBody(Shape):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class RevertBody(Shape):
    """Of one turn or of all, to these `paths` or to all; `force` also puts back what someone else
    has changed since."""

    turn_id: str | None = None
    force: bool = False
    paths: list[str] | None = None


class Reverted(Shape):
    paths: list[str]


class Queue(Shape):
    queue: list[QueuedPrompt]


class QueueBody(PromptBody):
    """With an `id`, what that queued prompt says from now on; else one more prompt."""

    id: str | None = None
