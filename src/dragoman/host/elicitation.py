"""Questions an agent asks the user beside permissions: a form to fill in, an address to visit.

Never answered automatically: without someone to ask, the answer is that it was declined.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from dragoman.session.events import ElicitationRequested


class ElicitationRequest(msgspec.Struct, kw_only=True, frozen=True):
    """`mode` is form, with a `schema`, or url, with a `url`; others are passed on as they are."""

    request_id: str
    message: str
    mode: str
    schema: dict[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = None
    tool_call_id: str | None = None
    session_id: str | None = None
    """None for one that is asked outside any session, while signing in for example."""
    meta: dict[str, Any] | None = None

    def as_event(self) -> ElicitationRequested:
        return ElicitationRequested(
            self.request_id,
            self.message,
            self.mode,
            self.schema,
            self.url,
            self.elicitation_id,
            self.tool_call_id,
            meta=self.meta,
        )


class ElicitationAnswer(msgspec.Struct, frozen=True):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


def missing(schema: dict[str, Any] | None, answer: ElicitationAnswer) -> list[str]:
    """The fields a form cannot do without that an answer has nothing for."""
    match schema:
        case {"required": [*names], "properties": {**fields}} if answer.action == "accept":
            return [name for name in fields if name in names and name not in (answer.content or {})]
        case _:
            return []


class ElicitationProvider(Protocol):
    """Asks the user. It may take as long as it takes; cancellation means nobody needs it now."""

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer: ...
