"""Types for push notifications, and for whether someone looks at the page, over HTTP."""

from __future__ import annotations

from typing import Annotated

import msgspec

from dragoman.web.shapes.server_shapes import Shape

Words = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]


class PushState(Shape):
    """Whether this server can push, and the key to subscribe with; else `reason` says why not."""

    available: bool
    key: str | None = None
    reason: str | None = None


class PushBody(Shape):
    """A browser's subscription: `key` is its `p256dh`, `secret` its `auth`. With `content`, its
    notifications say what is asked; with `endings` it gets ends of turns, too."""

    endpoint: Words
    key: Words
    secret: Words
    content: bool = False
    endings: bool = False


class PushShape(Shape):
    id: str
    content: bool
    endings: bool


class AttentionBody(Shape):
    """Whether someone looks at a window now; it is said again at least every 45 seconds."""

    window: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    looking: bool
