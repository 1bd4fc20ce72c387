"""The subagents of the sessions on one connection, and where in a session's tree an event goes.

An agent announces a subagent, which then speaks under an id of its own; or it only reports tool
calls that belong to another tool call. Either way the events go to the session that it works for.
What comes before the announcement waits in `client/router.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from dragoman.session import events as e
from dragoman.session.facts import SubagentState
from dragoman.session.state import OVER_STATUSES, SessionState
from dragoman.session.state_limits import ID

if TYPE_CHECKING:
    from dragoman.client.sessions.session import Session

logger = logging.getLogger("dragoman.client")

_OF_A_TREE = frozenset((e.SubagentUpdated, e.SubagentEvent))


class Subagents:
    """Which session each works for."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def session_of(self, subagent_id: str) -> Session | None:
        session = self._sessions.get(subagent_id)
        return session if session is not None and subagent_id in session.state.subagents else None

    def adopt(self, session: Session) -> None:
        """Those it is known to have from before."""
        for subagent_id in session.state.subagents:
            self._register(session, subagent_id)

    def drop(self, session: Session) -> None:
        self._sessions = {key: each for key, each in self._sessions.items() if each is not session}

    def announced(self, session: Session, event: e.SubagentUpdated) -> bool:
        """Whether this is a subagent of the session, new or known: one has a single parent."""
        subagent_id = event.session_id
        if subagent_id in (session.id, event.parent) or len(subagent_id) > ID:
            return False
        return self._register(session, subagent_id)

    def _register(self, session: Session, subagent_id: str) -> bool:
        known = self.session_of(subagent_id)
        if known is None:
            self._forget_evicted(session)  # before: the state does not have the new one yet
            self._sessions[subagent_id] = session
        return known in (None, session)

    def _forget_evicted(self, session: Session) -> None:
        """An agent may announce some without end: the state keeps the newest."""
        if len(self._sessions) > 2 * len(session.state.subagents) + 1024:
            kept = (key for key in self._sessions if self.session_of(key) is not None)
            self._sessions = {key: self._sessions[key] for key in kept}


def concerns_tree(state: SessionState, events: list[e.Event]) -> bool:
    """Whether some of what the session's own agent tells may belong to a subagent."""
    return bool(state.subagents) or not _OF_A_TREE.isdisjoint(map(type, events))


def placed(state: SessionState, speaker: str | None, event: e.Event) -> Iterator[e.Event]:
    """What to record for an event that `speaker` tells, a subagent or the session's own agent."""
    match event:
        case e.SubagentUpdated():
            event.parent = speaker
            yield event
        case e.SubagentEvent(call_id, told):
            child_id = yield from _under_call(state, speaker, call_id, told)
            yield _told_by(child_id, told)
            yield from _after(state, told)
        case e.ToolCallUpdated():
            yield _told_by(_owner(state, speaker, event.tool_call_id), event)
            yield from _after(state, event)
        case _:
            yield _told_by(speaker, event)


def _told_by(speaker: str | None, event: e.Event) -> e.Event:
    return event if speaker is None else e.SubagentEvent(speaker, event)


def _under_call(
    state: SessionState, speaker: str | None, call_id: str, told: e.Event
) -> Generator[e.Event, None, str | None]:
    """The subagent of a tool call, made when it first tells something. A call that the speaker has
    not told of is not its own: agents that announce a subagent name the call of its parent."""
    if isinstance(told, e.ToolCallUpdated) and told.tool_call_id == call_id:
        return speaker
    known = state.subagents.get(call_id)
    if known is not None and known.tool_call_id is not None:
        return call_id
    parent = _owner(state, speaker, call_id)
    call = state.thread_of(parent).tool_call(call_id)
    if known is not None or call is None or len(call_id) > ID:
        return speaker
    yield e.SubagentUpdated(
        call_id,
        title=call.title or call.name or UNNAMED,
        state=SubagentState("running"),
        parent=parent,
        tool_call_id=call_id,
    )
    return call_id


UNNAMED = "subagent"


def _owner(state: SessionState, speaker: str | None, call_id: str) -> str | None:
    """Who told of a tool call first: later updates may no longer say under which call it is."""
    if state.thread_of(speaker).tool_call(call_id) is not None:
        return speaker
    for child in state.subagents.values():
        if child.tool_call_id is not None and child.thread.tool_call(call_id) is not None:
            return child.session_id
    return speaker


def _after(state: SessionState, told: e.Event) -> Iterator[e.Event]:
    """A subagent that is known by its call is done when the call is."""
    if not isinstance(told, e.ToolCallUpdated) or told.status not in OVER_STATUSES:
        return
    child = state.subagents.get(told.tool_call_id)
    if child is not None and child.tool_call_id is not None and child.is_at_work:
        reason = "end_turn" if told.status == "completed" else str(told.status)
        idle = SubagentState("idle", stop_reason=reason)
        yield e.SubagentUpdated(child.session_id, state=idle, parent=child.parent)
