"""States made of events, and any event there can be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState

T = TypeVar("T")


def fold(*events: e.Event, onto: SessionState | None = None) -> SessionState:
    """The state after these events, numbered in their order."""
    state = SessionState() if onto is None else onto
    for event in events:
        event.seq = state.last_seq + 1
        state = reduce(state, event)
    return state


def refold(records: Iterable[bytes]) -> SessionState:
    """The state after events that were written down as JSON."""
    state = SessionState()
    for record in records:
        state = reduce(state, event_of(record))
    return state


def event_of(record: bytes) -> e.Event:
    return _events.decode(record)


def copied(state: SessionState) -> SessionState:
    """The same state, as one finds it again after it was written down."""
    return msgspec.json.decode(msgspec.json.encode(state), type=SessionState)


_events: msgspec.json.Decoder[e.Event] = msgspec.json.Decoder(e.Event)


# ── any event ─────────────────────────────────────────────────────────────────────────────────

# Few ids, so that events meet.
_ids = st.sampled_from(["a", "b", "c", "", "after 0", "tool:a"])
_texts = st.sampled_from(["", "hi", "hello ", "é\u2028", "1"]) | st.text(max_size=5)
# Beyond these, JavaScript, which reads some of what is told, has no exact number.
_counts = st.integers(-(2**53), 2**53)
_json: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, 2.5, 2**70, "x", ["x", {"a": None}], {"a": [1]}]
)
_metas = st.none() | st.dictionaries(_texts, _json, max_size=2)
_statuses = st.sampled_from(["pending", "in_progress", "completed", "failed", "odd"])


def _maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | strategy


def _patched(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Left alone, cleared or set."""
    return st.just(UNSET) | st.none() | strategy


_contents: st.SearchStrategy[c.Content] = st.one_of(
    st.builds(c.Text, text=_texts, meta=_metas),
    st.builds(c.Image, data=_texts, mime_type=_texts),
    st.builds(c.Audio, data=_texts, mime_type=_texts),
    st.builds(c.ResourceLink, uri=_texts, name=_texts),
    st.builds(c.Resource, uri=_texts, content=_maybe(_texts)),
    st.builds(c.UnknownContent, kind=_texts, raw=_texts),
)
_tool_contents: st.SearchStrategy[c.ToolContent] = st.one_of(
    st.builds(c.ContentItem, _contents),
    st.builds(c.Diff, path=_texts, new_text=_texts, old_text=_maybe(_texts)),
    st.builds(
        c.Diff,
        path=_texts,
        new_text=st.just(""),
        operation=st.sampled_from(["add", "move", "_odd"]),
        old_path=_maybe(_texts),
        patch=_maybe(_texts),
        file_type=_maybe(_texts),
    ),
    st.builds(c.TerminalItem, terminal_id=_ids),
    st.builds(c.UnknownItem, kind=_texts, raw=_texts),
)
_lists_of_content = st.lists(_contents, max_size=3)
_options = st.lists(st.builds(f.PermissionOption, id=_ids, name=_texts, kind=_texts), max_size=3)
_replays = st.booleans()
_turns = st.sampled_from(["t1", "t2", "t3"])
_spoken = {
    "content": _contents,
    "message_id": _maybe(_ids),
    "replaces": st.booleans(),
    "replay": _replays,
    "meta": _metas,
}

_EVENTS: dict[type[Any], st.SearchStrategy[Any]] = {
    e.SessionOpened: st.builds(
        e.SessionOpened,
        session_id=_ids,
        cwd=_texts,
        continuity=st.sampled_from(["new", "continued", "replayed", "reset"]),
    ),
    e.SessionClosed: st.builds(e.SessionClosed, reason=_texts),
    e.TurnStarted: st.builds(e.TurnStarted, turn_id=_turns, content=_lists_of_content),
    e.TurnCancelling: st.builds(e.TurnCancelling, turn_id=_turns),
    e.TurnEnded: st.builds(
        e.TurnEnded,
        turn_id=_turns,
        stop_reason=_maybe(st.sampled_from(["end_turn", "cancelled", "refusal", "odd"])),
        usage=_maybe(st.builds(f.TokenUsage, total=_counts, input=st.just(1), output=st.just(2))),
        error=_maybe(_texts),
    ),
    e.UserMessage: st.builds(e.UserMessage, **_spoken),
    e.AgentMessage: st.builds(e.AgentMessage, **_spoken),
    e.AgentThought: st.builds(e.AgentThought, **_spoken),
    e.ToolCallUpdated: st.builds(
        e.ToolCallUpdated,
        tool_call_id=_ids,
        title=_patched(_texts),
        name=_patched(_texts),
        kind=_patched(_texts),
        status=_patched(_statuses),
        content=_patched(st.lists(_tool_contents, max_size=2)),
        locations=_patched(st.lists(st.builds(c.Location, path=_texts), max_size=2)),
        raw_input=_patched(_json),
        raw_output=_patched(_json),
        more=st.lists(_tool_contents, max_size=1),
        cancellable=st.booleans() | st.just(UNSET),
        forgets_meta=st.booleans(),
        replay=_replays,
        meta=_metas,
    ),
    e.PlanUpdated: st.builds(
        e.PlanUpdated,
        steps=st.lists(st.builds(f.PlanStep, content=_texts), max_size=2),
        plan_id=_ids,
        markdown=_maybe(_texts),
        uri=_maybe(_texts),
        replay=_replays,
    ),
    e.PlanRemoved: st.builds(e.PlanRemoved, plan_id=_ids),
    e.CommandsChanged: st.builds(
        e.CommandsChanged, commands=st.lists(st.builds(f.Command, name=_texts), max_size=2)
    ),
    e.ModeChanged: st.builds(
        e.ModeChanged,
        mode_id=_ids,
        available=_maybe(st.lists(st.builds(f.Mode, id=_ids, name=_texts), max_size=2)),
    ),
    e.ConfigChanged: st.builds(
        e.ConfigChanged,
        options=st.lists(
            st.builds(f.ConfigOption, id=_ids, name=_texts, value=st.booleans() | _texts),
            max_size=2,
        ),
    ),
    e.InfoChanged: st.builds(e.InfoChanged, title=_patched(_texts), updated_at=_patched(_texts)),
    e.UsageChanged: st.builds(
        e.UsageChanged,
        used=st.integers(0, 10),
        size=st.integers(0, 10),
        cost=_maybe(st.builds(f.Cost, amount=st.floats(0, 9), currency=_texts)),
    ),
    e.LimitReached: st.builds(
        e.LimitReached,
        title=_texts,
        limit=st.just(
            f.ReachedLimit(
                measure="cost", per="turn", most=1, value=2, outcome="stopped", turn_id="turn-1"
            )
        ),
    ),
    e.TurnLimited: st.builds(
        e.TurnLimited,
        title=_texts,
        turn_id=_ids,
        kind=st.just("rate"),
        parked=_maybe(
            st.builds(
                f.Parking,
                id=_ids,
                content=st.just([]),
                kind=st.just("rate"),
                is_doubted=st.booleans(),
            )
        ),
    ),
    e.ParkingChanged: st.builds(
        e.ParkingChanged,
        title=_texts,
        parking_id=_ids,
        outcome=st.sampled_from(["waiting", "continued", "dropped"]),
        resumes_at=_maybe(st.floats(0, 9)),
    ),
    e.Notice: st.builds(e.Notice, title=_texts, description=_maybe(_texts)),
    e.CompactionUpdated: st.builds(
        e.CompactionUpdated,
        compaction_id=_ids,
        status=_statuses,
        summary=_patched(_lists_of_content),
        error=_patched(_texts),
    ),
    e.CompactionSummary: st.builds(e.CompactionSummary, compaction_id=_ids, content=_contents),
    e.SubagentUpdated: st.builds(
        e.SubagentUpdated,
        session_id=_ids,
        title=_patched(_texts),
        state=_patched(st.builds(f.SubagentState, _texts, stop_reason=_maybe(_texts))),
        additional_directories=_patched(st.lists(_texts, max_size=1)),
    ),
    e.SubagentEvent: st.builds(
        e.SubagentEvent, session_id=_ids, event=st.deferred(lambda: any_event)
    ),
    e.PeerMessageUpdated: st.builds(
        e.PeerMessageUpdated,
        message_id=_ids,
        sender_session_id=_patched(_ids),
        content=_patched(_lists_of_content),
    ),
    e.PeerMessageChunk: st.builds(e.PeerMessageChunk, message_id=_ids, content=_contents),
    e.ActivityChanged: st.builds(
        e.ActivityChanged,
        activity=_texts | st.just(UNSET),
        background=st.lists(st.just(f.BackgroundWork("terminal")), max_size=1) | st.just(UNSET),
    ),
    e.UnknownUpdate: st.builds(e.UnknownUpdate, kind=_texts, raw=_texts),
    e.PermissionRequested: st.builds(
        e.PermissionRequested,
        request_id=_ids,
        options=_options,
        content=st.lists(_tool_contents, max_size=1),
    ),
    e.PermissionSettled: st.builds(
        e.PermissionSettled,
        request_id=_ids,
        option_id=_maybe(_ids),
        decision=st.builds(f.Decision, effect=_texts, reason=_texts),
    ),
    e.AccessDecided: st.builds(
        e.AccessDecided,
        operation=_texts,
        decision=st.builds(f.Decision, effect=_texts, reason=_texts),
    ),
    e.ElicitationRequested: st.builds(
        e.ElicitationRequested,
        request_id=_ids,
        message=_texts,
        mode=_texts,
        schema=_maybe(st.dictionaries(_texts, _json, max_size=1)),
    ),
    e.ElicitationSettled: st.builds(e.ElicitationSettled, request_id=_ids, action=_texts),
    e.TerminalStarted: st.builds(
        e.TerminalStarted,
        terminal_id=_ids,
        argv=st.lists(_texts, max_size=2),
        command=_texts,
        cancellable=st.booleans(),
    ),
    e.TerminalOutput: st.builds(
        e.TerminalOutput, terminal_id=_ids, data=_texts, replaces=st.booleans()
    ),
    e.TerminalExited: st.builds(
        e.TerminalExited, terminal_id=_ids, exit_code=_maybe(st.integers(0, 9))
    ),
    e.TerminalReleased: st.builds(e.TerminalReleased, terminal_id=_ids),
    e.FileWritten: st.builds(e.FileWritten, path=_texts, after=_texts, before=_maybe(_texts)),
    e.FileReverted: st.builds(e.FileReverted, path=_texts, turn_id=_maybe(_turns)),
    e.WorkspaceSnapshot: st.builds(
        e.WorkspaceSnapshot,
        moment=st.sampled_from(["turn_start", "turn_end", "restore_start", "restore_end"]),
        step_id=_turns,
        roots=st.lists(
            st.builds(f.RootSnapshot, root=_texts, tree=_maybe(_texts), problem=_texts), max_size=2
        ),
        files=st.lists(
            st.builds(f.FileSummary, path=_texts, status=st.sampled_from(["added", "deleted"])),
            max_size=2,
        ),
        doubt=_texts,
    ),
    e.ProgramsRan: st.builds(
        e.ProgramsRan,
        programs=st.lists(
            st.builds(
                f.ProgramRun,
                id=_ids,
                argv=st.lists(_texts, max_size=2),
                cwd=_texts,
                parents=st.lists(_texts, max_size=2),
                count=st.integers(1, 3),
                refused=_maybe(_texts),
            ),
            max_size=2,
        ),
        ended=st.lists(
            st.builds(f.ProgramEnd, id=_ids, exit_code=_maybe(st.integers(0, 9))), max_size=2
        ),
        left_out=st.integers(0, 3),
    ),
    e.PromptQueued: st.builds(
        e.PromptQueued,
        queue_id=_turns,
        content=_lists_of_content,
        steer=st.sampled_from([None, "waiting", "sent"]),
    ),
    e.PromptUnqueued: st.builds(e.PromptUnqueued, queue_id=_turns),
    e.Steered: st.builds(
        e.Steered,
        queue_id=_turns,
        outcome=st.sampled_from(["delivered", "queued", "started", "refused", "unsure"]),
        content=_lists_of_content,
        reason=_texts,
    ),
}

KINDS = tuple(_EVENTS)
any_event: st.SearchStrategy[e.Event] = st.sampled_from(KINDS).flatmap(_EVENTS.__getitem__)
any_events = st.lists(any_event, max_size=40)
a_speech: st.SearchStrategy[list[e.Event]] = st.lists(
    _EVENTS[e.AgentMessage] | _EVENTS[e.AgentThought], max_size=12
).map(lambda pieces: [e.TurnStarted("t", []), *pieces])
"""A turn in which the agent does nothing but speak and think."""
