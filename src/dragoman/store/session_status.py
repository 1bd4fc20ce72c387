"""What a session does that nobody runs, from its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.session.events import Event
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState
from dragoman.store.records import Status


def status_at_rest(recorded: Status, events: Iterable[Event]) -> Status:
    """`recorded` counts for one that is closed: that may be done without an event. A turn that has
    no end is one that was interrupted."""
    if recorded == "closed":
        return "closed"
    state = fold(SessionState(), events)
    is_cut = state.turn is not None or (state.turns and state.turns[-1].interrupted)
    return "interrupted" if is_cut else "idle"
