"""A session in a line: what it does and what it is called, from its state. Pure."""

from __future__ import annotations

from dragoman.session.state import SessionState, UserEntry
from dragoman.store.records import Status

_MAX_TITLE = 80


def status_of(state: SessionState) -> Status:
    """In a word, what the session does."""
    if state.pending:
        return "waiting"
    if state.turn is not None:
        return "running"
    if not state.open:
        return "closed"
    return "interrupted" if state.turns and state.turns[-1].interrupted else "idle"


def title_of(state: SessionState) -> str | None:
    """What the agent calls the session, else the beginning of what was first asked for, as long as
    that is at hand."""
    if state.title or state.entries_before:
        return state.title
    first = next((entry for entry in state.entries if isinstance(entry, UserEntry)), None)
    line = "" if first is None else first.text.strip().split("\n", 1)[0]
    return f"{line[: _MAX_TITLE - 1]}…" if len(line) > _MAX_TITLE else line or None
