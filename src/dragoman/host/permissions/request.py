"""Asking someone: the words of a permission request, and who can answer it.

What needs asking is decided in `policy.py`; that every request is settled exactly once is the
gate's affair. A provider only puts the question to a person and brings back the answer.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from dragoman.session.content import ToolContent
from dragoman.session.facts import Decision, PermissionOption


class PermissionRequest(msgspec.Struct, kw_only=True, frozen=True):
    """A frozen picture of what will happen if it is allowed.

    `argv` and `paths` are what we will run or touch ourselves, or what the agent claims when
    `claimed` is true; `title` is the agent's wording and proves nothing.
    """

    request_id: str
    session_id: str
    agent: str
    operation: str
    options: tuple[PermissionOption, ...]
    title: str = ""
    paths: tuple[str, ...] = ()
    argv: tuple[str, ...] | None = None
    claimed: bool = False
    tool_call_id: str | None = None
    content: tuple[ToolContent, ...] = ()
    always: str | None = None
    """What an "always" answer would remember, in a sentence; None if nothing safe can be."""
    explanation: str | None = None
    """What the agent says about it beside the title; it proves as little."""
    cwd: str | None = None
    """The folder a command would run in; None where there is no command."""
    env: tuple[str, ...] = ()
    """The names of the variables that are set for a command; their values may be secret."""
    meta: dict[str, Any] | None = None
    """The `_meta` of the agent's request; it proves nothing."""


class Subject(msgspec.Struct, kw_only=True, frozen=True):
    """What a request of the agent's says by itself, beside the tool call it may be about.

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
    """How a request was settled; `option_id` is None when it was cancelled."""

    option_id: str | None
    decision: Decision


class PermissionsProvider(Protocol):
    """Puts a question to someone. It may take as long as it takes."""

    async def request_permission(self, request: PermissionRequest) -> str | None:
        """The id of the chosen option; None to refuse."""
        ...
