"""Options of a client and of its sessions: what the agent is offered, and how long to wait."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from dragoman.client.mcp import McpServer
from dragoman.session.facts import SystemPrompt

Attendance: TypeAlias = Literal["wait", "refuse"]
"""What becomes of a question that no provider takes and the reader of the turn does not answer: it
can `wait` for `answer`, or we `refuse` it."""


class HostCapabilities(msgspec.Struct, kw_only=True, frozen=True):
    """What the agent is offered. What is switched off is neither advertised nor served."""

    read_files: bool = True
    write_files: bool = True
    terminals: bool = True
    elicitation: bool = True
    terminal_sign_in: bool = False
    meta: dict[str, Any] | None = None

    @property
    def methods(self) -> frozenset[str]:
        """The methods that are switched on, among those that can be switched off."""
        switches = {
            "fs/read_text_file": self.read_files,
            "fs/write_text_file": self.write_files,
            "terminal/create": self.terminals,
            "elicitation/create": self.elicitation,
        }
        return frozenset(method for method, on in switches.items() if on)


class Timeouts(msgspec.Struct, kw_only=True, frozen=True):
    """How long to wait, in seconds. A prompt has no time limit unless `progress` is set."""

    initialize: float = 60.0
    """For the handshake."""
    control: float = 30.0
    """For the reply to any call other than a prompt."""
    cancel: float = 30.0
    """For the agent to stop after a cancellation."""
    progress: float | None = None
    """Ends a turn if nothing is heard from the agent, nor from a command it runs, for that long. It
    does not count while a question waits for its answer."""
    question: float | None = None
    """For the answer to a permission request or a form; after that, the request is refused. Without
    a limit it waits as long as its turn."""
    history: float = 0.05
    """How long an agent must be silent after it loaded a session for its history to count as
    complete: some agents reply first and send the history right after. What repeats a known history
    is recognized later, too."""


class SessionOptions(TypedDict, total=False):
    """Options for opening a session. Those that the agent does not accept are not sent to it, and a
    notice says so."""

    additional_directories: Sequence[str | os.PathLike[str]]
    mcp_servers: Sequence[McpServer]
    system_prompt: str | SystemPrompt | None
    """A text is added to the agent's own instructions."""
    meta: dict[str, Any] | None
    """The `_meta` of the request."""
