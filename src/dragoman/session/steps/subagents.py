"""The subagents of a session: who started which, what each does, and how much of each is kept.

Each has a thread of its own, a state like the session's; all of them share one limit. Pure.
"""

from __future__ import annotations

from msgspec import UNSET

from dragoman.session import events as e
from dragoman.session.facts import SubagentState
from dragoman.session.state import (
    OPEN_STATUSES,
    CompactionEntry,
    SessionState,
    Subagent,
    ToolCall,
)
from dragoman.session.state_limits import ID, Limits, fitted, fitted_as
from dragoman.session.thread import forget_all

TOLD = frozenset(
    (
        e.UserMessage,
        e.AgentMessage,
        e.AgentThought,
        e.ToolCallUpdated,
        e.PlanUpdated,
        e.PlanRemoved,
        e.CommandsChanged,
        e.ModeChanged,
        e.ConfigChanged,
        e.InfoChanged,
        e.UsageChanged,
        e.Notice,
        e.CompactionUpdated,
        e.CompactionSummary,
        e.PeerMessageUpdated,
        e.PeerMessageChunk,
        e.ActivityChanged,
        e.UnknownUpdate,
        e.TerminalStarted,
        e.TerminalOutput,
        e.TerminalExited,
    )
)
"""What a subagent can tell; what it asks for is recorded with the session."""


def subagent_updated(state: SessionState, event: e.SubagentUpdated, limits: Limits) -> None:
    child = child_of(state, event.session_id, event, limits)
    room = limits.fact // 16
    if event.state is not UNSET:
        child.state = fitted_as(SubagentState | None, event.state, room)
    for field in ("title", "description", "cwd", "additional_directories", "capabilities"):
        if (value := getattr(event, field)) is not UNSET:
            setattr(child, field, fitted(value, room)[0])
    if event.tool_call_id is not None:
        child.tool_call_id = event.tool_call_id[:ID]


def child_of(state: SessionState, session_id: str, event: e.Event, limits: Limits) -> Subagent:
    """The subagent with this id, made on first sight; who started it does not change."""
    key = session_id[:ID]
    if (child := state.subagents.get(key)) is not None:
        return child
    if len(state.subagents) >= limits.others:
        oldest = min(state.subagents.values(), key=lambda each: each.is_at_work)
        state.subagents_size -= oldest.thread.size
        del state.subagents[oldest.session_id]
    child = state.subagents[key] = Subagent(key, seq=event.seq, at=event.at)
    if isinstance(event, e.SubagentUpdated) and event.parent is not None:
        child.parent = event.parent[:ID]
    return child


def share_room(state: SessionState, speaking: Subagent, limits: Limits) -> None:
    """The entries of other subagents go when all have too many, of those first that are idle."""
    if state.subagents_size <= limits.thread:
        return
    for child in sorted(state.subagents.values(), key=lambda each: each.is_at_work):
        if state.subagents_size <= limits.thread // 2:
            return
        if child is not speaking:
            state.subagents_size -= child.thread.size
            forget_all(child.thread)


def mirror_activity(child: Subagent) -> None:
    """What it says of itself is what its parent would say of it."""
    activity = child.thread.activity
    if child.state is None or child.state.state != activity:
        child.state = SubagentState(activity)


def stop_subagents(state: SessionState) -> None:
    """Except those that the agent says run on."""
    running_on = [work.session_id for work in state.background]
    for child in state.subagents.values():
        if child.is_at_work and child.session_id not in running_on:
            child.state = SubagentState("idle", stop_reason="cancelled")
            _cancel_entries(child.thread)


def _cancel_entries(thread: SessionState) -> None:
    for entry in thread.entries:
        if isinstance(entry, ToolCall | CompactionEntry) and entry.status in OPEN_STATUSES:
            entry.status = "cancelled"
