"""What has to be put right about a session whose owner ended without doing so. Pure."""

from __future__ import annotations

from dragoman.session import events as e
from dragoman.session.facts import Decision
from dragoman.session.state import PendingPermission, SessionState

ENDED = "the process that ran the session ended"
NOT_RECORDED = "the session could not be recorded"
FORKED = "the session was forked in the midst of a turn"


def loose_ends(state: SessionState, reason: str = ENDED) -> list[e.Event]:
    """The events that end what the owner left open: questions, terminals, the turn.

    Prompts that were queued stay so, unless this is a fork: they wait where they were queued.
    Empty when everything was in order.
    """
    events: list[e.Event] = []
    for pending in state.pending.values():
        if isinstance(pending, PendingPermission):
            decision = Decision(effect="cancelled", reason=reason)
            events.append(e.PermissionSettled(pending.id, None, decision))
        else:
            events.append(e.ElicitationSettled(pending.id, "cancel"))
    running = (t.id for t in state.terminals.values() if t.running and t.ours)
    events += [e.TerminalExited(terminal_id) for terminal_id in running]
    if reason == FORKED:
        events += [e.PromptUnqueued(queued.id, dropped=True) for queued in state.queue]
    if state.turn is not None:
        error = f"interrupted: {reason}"
        events.append(e.TurnEnded(state.turn.id, error=error, interrupted=True))
    return events
