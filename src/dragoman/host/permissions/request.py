"""Asking someone: the words of a permission request, and who can answer it.

What needs asking is decided by the rules; that every request is settled exactly once is up to
`Consent`. A provider only puts the question to a person and returns the answer.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from dragoman.session.facts import Decision, PermissionQuestion


# Structs may be frozen whatever their base is: this one is nobody's to change once it is asked.
class PermissionRequest(
    PermissionQuestion,
    kw_only=True,
    frozen=True,  # pyright: ignore[reportGeneralTypeIssues]
):
    """A question to put to someone: a frozen picture of what will happen if it is allowed.

    `argv` and `paths` are what we will run or touch ourselves, or what the agent claims when
    `claimed` is true; `title` is the agent's wording and proves nothing.
    """

    session_id: str
    agent: str
    meta: dict[str, Any] | None = None
    """The `_meta` of the agent's request; it proves nothing."""


class Subject(msgspec.Struct, kw_only=True, frozen=True):
    """What a request of the agent says by itself, apart from the tool call it may be about.

    A `command` is what the agent wants to run itself, in `cwd`.
    """

    title: str = ""
    explanation: str | None = None
    command: str | None = None
    cwd: str | None = None
    tool_call_id: str | None = None
    meta: dict[str, Any] | None = None


NO_SUBJECT = Subject()


class PermissionAnswer(msgspec.Struct, frozen=True):
    """How a request was settled; `option_id` is None if it was cancelled."""

    option_id: str | None
    decision: Decision


class PermissionsProvider(Protocol):
    """Asks someone. There is no time limit."""

    async def request_permission(self, request: PermissionRequest) -> str | None:
        """The id of the chosen option; None to refuse."""
        ...
