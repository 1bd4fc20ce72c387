"""Questions an agent asks other than permissions: a form to fill in, an address to visit.

Never answered automatically: without someone to ask, the answer is that it was declined.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from dragoman.host.forms.form_values import FormError, wrong_fields
from dragoman.session.events import ElicitationRequested
from dragoman.session.facts import ElicitationQuestion


# Structs may be frozen whatever their base is: this one is nobody's to change once it is asked.
class ElicitationRequest(
    ElicitationQuestion,
    kw_only=True,
    frozen=True,  # pyright: ignore[reportGeneralTypeIssues]
):
    """A form to fill in (`mode` is `form`, with a `schema`), or an address to visit (`url`)."""

    session_id: str | None = None
    """None for one that is asked outside any session, while signing in for example."""
    meta: dict[str, Any] | None = None

    def as_event(self) -> ElicitationRequested:
        return self.as_kind(ElicitationRequested, meta=self.meta)


class ElicitationAnswer(msgspec.Struct, frozen=True):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


def check(schema: dict[str, Any] | None, answer: ElicitationAnswer) -> None:
    """Raises FormError, which is a ValueError, for a yes that the form does not take."""
    if answer.action != "accept":
        return
    content = answer.content or {}
    wrong = {name: "an answer is needed" for name in _required(schema) if name not in content}
    if wrong := wrong | wrong_fields(schema, content):
        raise FormError(wrong)


def _required(schema: dict[str, Any] | None) -> list[str]:
    match schema:
        case {"required": [*names], "properties": {**fields}}:
            needed = {name for name in names if isinstance(name, str)}
            return [name for name in fields if name in needed]
        case _:
            return []


class ElicitationProvider(Protocol):
    """Asks the user. There is no time limit; if the task is cancelled, the answer is not needed."""

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer: ...
