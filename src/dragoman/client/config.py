"""What a program may choose when it starts a client: what we offer, and how long we wait."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Attendance: TypeAlias = Literal["wait", "refuse"]
"""What becomes of a question that no provider takes and the reader of the turn does not answer: it
can `wait` for `answer`, or we `refuse` it."""


class HostCapabilities(msgspec.Struct, kw_only=True, frozen=True):
    """What we offer the agent; what is switched off here is neither advertised nor served."""

    read_files: bool = True
    write_files: bool = True
    terminals: bool = True
    elicitation: bool = True
    terminal_sign_in: bool = False
    meta: dict[str, Any] | None = None

    @property
    def methods(self) -> frozenset[str]:
        """The methods of ours that are on, of those that can be switched off."""
        switches = {
            "fs/read_text_file": self.read_files,
            "fs/write_text_file": self.write_files,
            "terminal/create": self.terminals,
            "elicitation/create": self.elicitation,
        }
        return frozenset(method for method, on in switches.items() if on)


class Timeouts(msgspec.Struct, kw_only=True, frozen=True):
    """Seconds to wait. A prompt may take as long as it takes, unless `progress` says otherwise.

    `progress` ends a turn in which nothing was heard from the agent, nor from a command it runs,
    for that long; while a question waits for its answer, it does not run.
    `history` is how long an agent must stay silent after it loaded a session before its history
    counts as complete: some answer first and send the history right after.
    """

    initialize: float = 60.0
    control: float = 30.0
    cancel: float = 30.0
    progress: float | None = None
    history: float = 0.05
