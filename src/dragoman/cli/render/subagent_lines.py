"""What subagents say and do, in whole lines with their names: several may speak at once. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.session import events as e
from dragoman.session.state import OPEN_STATUSES, AgentEntry, SessionState, Subagent

_LONGEST = 200
"""Characters of a description."""
_ENDINGS = {"end_turn": "done", None: "idle"}


class SubagentLines:
    """Lines to show after each event: a name, and what there is to say; nothing is said twice."""

    def __init__(self) -> None:
        self._doing: dict[str, str] = {}
        self._calls: dict[tuple[str, str], str] = {}
        self._said: dict[str, int] = {}
        """The number of the last message that was shown, by subagent."""

    def after(self, event: e.Event, state: SessionState) -> Iterator[tuple[str, str]]:
        if event.replay or not isinstance(event, e.SubagentUpdated | e.SubagentEvent):
            return
        if (child := state.subagents.get(event.session_id)) is None:
            return
        if lines := list(self._lines(event, child)):
            name = state.subagent_name(child.session_id)
            yield from ((name, line) for line in lines)

    def _lines(self, event: e.SubagentUpdated | e.SubagentEvent, child: Subagent) -> Iterator[str]:
        is_over = child.state is not None and not child.is_at_work
        yield from self._words(child, is_over=is_over)
        if isinstance(event, e.SubagentEvent) and isinstance(event.event, e.ToolCallUpdated):
            yield from self._call(child, event.event.tool_call_id)
        doing = _doing(child)
        if self._doing.get(child.session_id) != doing:
            is_first = child.session_id not in self._doing
            self._doing[child.session_id] = doing
            yield _described(child, doing) if is_first else doing

    def _words(self, child: Subagent, *, is_over: bool) -> Iterator[str]:
        """A message is shown once something follows it."""
        entries = child.thread.entries
        for entry in entries[-2:] if is_over else entries[-2:-1]:
            if isinstance(entry, AgentEntry) and entry.seq > self._said.get(child.session_id, 0):
                self._said[child.session_id] = entry.seq
                yield from entry.text.strip().split("\n")

    def _call(self, child: Subagent, call_id: str) -> Iterator[str]:
        call = child.thread.tool_call(call_id)
        if call is None or call.status in OPEN_STATUSES:
            return
        key = child.session_id, call.id
        if self._calls.get(key) != call.status:
            self._calls[key] = call.status
            yield f"{call.title or call.name or call.id} ({call.status})"


def _described(child: Subagent, doing: str) -> str:
    """What it is for, when it is first seen: agents call several of them the same."""
    words = " ".join((child.description or "")[:_LONGEST].split())
    return f"{doing} on: {words}" if words and doing == "works" else doing


def _doing(child: Subagent) -> str:
    if child.state is None:
        return "started"
    match child.state.state:
        case "running":
            return "works"
        case "requires_action":
            return "waits for an answer"
        case "idle":
            return _ENDINGS.get(child.state.stop_reason, str(child.state.stop_reason))
        case other:
            return other
