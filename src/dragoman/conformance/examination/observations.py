"""What several checks look at, and what is therefore done only once: turns, and how it ends.

A prompt, and a start, cost an agent more than all the rest.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from dragoman.conformance.check import NotApplicable
from dragoman.conformance.probing.loose_json import Wire
from dragoman.conformance.probing.pretend_host import AgentRequest, PretendHost
from dragoman.conformance.probing.probe import Received, updates_of
from dragoman.process.child import ExitStatus

TurnKind: TypeAlias = Literal["allow", "reject", "fail", "cancel", "bare"]
"""How questions are answered in a turn; `bare` is the turn of a client that offers nothing."""


class WorkTurn(msgspec.Struct, kw_only=True):
    """A turn in which the agent was to use its tools."""

    session_id: str
    reply: Wire
    received: list[Received]
    """From the prompt on, and a moment longer than to its answer."""
    before_reply: int
    """How many of them came before the answer."""
    host: PretendHost

    @property
    def updates(self) -> list[tuple[Wire, bytes]]:
        """The updates of the session, each with its frame."""
        return updates_of(self.received, self.session_id)

    def of(self, *kinds: str) -> list[tuple[Wire, bytes]]:
        """The updates of these kinds."""
        return [(told, frame) for told, frame in self.updates if told.get("sessionUpdate") in kinds]

    def asked(self, *prefixes: str) -> list[AgentRequest]:
        """What the agent asked for in it. Raises NotApplicable if it asked for nothing of this."""
        found = self.host.of(*prefixes)
        if not found:
            raise NotApplicable(f"the agent sent no {' or '.join(prefixes)} request")
        return found


class ShortTurn(msgspec.Struct, frozen=True):
    """A turn in which the agent was to say a word."""

    session_id: str
    reply: Wire
    updates: list[Wire]


class Reopening(msgspec.Struct, frozen=True):
    """A session with one turn that was opened again, on a new connection."""

    before: list[Wire]
    """The updates that came before the answer."""
    after: list[Wire]


class AgentExit(msgspec.Struct, frozen=True):
    """What became of the process of an agent that had a session, when its input ended."""

    ended: ExitStatus | None
    """None if it did not exit in time."""
    left: list[str]
    """The names of processes that were left running."""
