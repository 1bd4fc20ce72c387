"""What is asked of a session."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dragoman.session.state import (
    QueuedPrompt,
)
from dragoman.web.shapes.base import Shape


class PromptBody(Shape):
    """`text`, whose mentions become links, or blocks of `content` as in ACP, or both. With
    `on_reset` new, a session that its agent does not remember goes on without that memory."""

    text: str | None = None
    content: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    on_reset: Literal["fail", "new"] = "fail"


class Accepted(Shape, omit_defaults=True):
    """The prompt's turn; `queued` behind another one. `delayed` says why it does not begin yet,
    while the database cannot be reached."""

    turn: str
    queued: bool
    delayed: str | None = None


class CancelBody(Shape, forbid_unknown_fields=True):
    """Nothing for the whole turn; or the tool call, or the terminal of the agent's own, to stop
    alone, where it offers that. What is misspelt must not stop the turn instead."""

    tool_call_id: str | None = None
    terminal_id: str | None = None


class Cancelled(Shape, omit_defaults=True):
    """Whether there was something to cancel: a turn, or a part of one that still ran."""

    cancelled: bool
    delayed: str | None = None


class KillBody(Shape, forbid_unknown_fields=True):
    """`force` ends the agent's process although other sessions lose their turns with it."""

    force: bool = False


class Nothing(Shape, omit_defaults=True):
    """No more than that it was done; `delayed` says why nobody sees it yet, while the database
    cannot be reached."""

    delayed: str | None = None


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


class RevertBody(Shape, forbid_unknown_fields=True):
    """Of one turn or of all, to these `paths` or to all; `force` also puts back what someone else
    has changed since. What is misspelt must not undo everything instead."""

    turn_id: str | None = None
    force: bool = False
    paths: list[str] | None = None


class Reverted(Shape, omit_defaults=True):
    paths: list[str]
    delayed: str | None = None


class Queue(Shape, omit_defaults=True):
    """As it is now, or, with `delayed`, will be once the database can be reached again."""

    queue: list[QueuedPrompt]
    delayed: str | None = None


class QueueBody(PromptBody):
    """With an `id`, what that queued prompt says from now on; else one more prompt."""

    id: str | None = None
