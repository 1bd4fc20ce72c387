"""`reduce(state, event)`: the one place where events become state; `fold` does so for many.

Both change the state they are given and return it, at a cost that does not grow with the thread.
They never raise: whatever an agent sends in whatever order, there is a next state. And whatever it
sends, that state is within the limits: `thread` lets the oldest entries go, and counts what is too
much for one entry there as `cut`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET

from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import BackgroundWork, ContextUsage, Modes, Parking
from dragoman.session.state import (
    OPEN_STATUSES,
    OVER_TURNS,
    AgentEntry,
    AnyEntry,
    CompactionEntry,
    ErrorEntry,
    NoticeEntry,
    PeerMessageEntry,
    PendingElicitation,
    PendingPermission,
    PlanEntry,
    ResetEntry,
    SessionState,
    ThoughtEntry,
    ToolCall,
    TurnState,
    UnknownEntry,
    UserEntry,
    ending_of,
)
from dragoman.session.state_limits import (
    ID,
    LIMITS,
    WORD,
    Limits,
    fitted_as,
    fitting,
    limits_of_subagent,
    weigh_struct,
)
from dragoman.session.steps import fenced_programs, prompt_queue, subagents, terminals
from dragoman.session.thread import (
    LAST_PROMPT,
    LAST_USER,
    STEPS_PLAN,
    Spoken,
    add,
    add_item,
    append,
    clear,
    cut_id,
    cut_line,
    forget,
    indexed,
    piece_of,
    put,
    put_items,
    put_meta,
    put_more,
    running_turn_id,
    say,
)

Saying = e.AgentMessage | e.AgentThought


def reduce(state: SessionState, event: e.Event, limits: Limits = LIMITS) -> SessionState:
    """The state after `event`."""
    if event.seq:
        state.last_seq = event.seq
    turns = state.turns
    if turns and turns[-1].status == "prompting" and event.from_agent:
        turns[-1].status = "streaming"
    _STEPS[type(event)](state, event, limits)
    return state


def fold(state: SessionState, events: Iterable[e.Event], limits: Limits = LIMITS) -> SessionState:
    """The state after all of `events`; quicker than one by one."""
    kind, message_id, entry = _spoken_now(state)
    words: list[str] = []
    seq = 0
    for event in events:
        # Nearly every event is another piece of the same text, and that is all there is to it.
        if (
            kind is not None
            and isinstance(event, kind)
            and event.message_id == message_id
            and type(content := event.content) is Text
            and (text := content.text)
            and content.annotations is None
            and content.meta is None
            and not event.replaces
        ):
            words.append(text)
            seq = event.seq or seq
        else:
            if entry is not None and words:
                say(state, entry, "".join(words), limits)
                words.clear()
            reduce(state, event, limits)
            seq = state.last_seq
            kind, message_id, entry = _spoken_now(state)
    if entry is not None and words:
        say(state, entry, "".join(words), limits)
        state.last_seq = seq or state.last_seq
    return state


_SAYINGS: dict[type[Any], type[Saying]] = {
    AgentEntry: e.AgentMessage,
    ThoughtEntry: e.AgentThought,
}


def _spoken_now(
    state: SessionState,
) -> tuple[type[Saying] | None, str | None, AgentEntry | ThoughtEntry | None]:
    """What the agent is in the middle of saying: the kind of event that continues it, the id of
    the message, and its entry."""
    entries, turns = state.entries, state.turns
    if not entries or not turns:
        return _NOTHING
    last, turn = cast("AgentEntry", entries[-1]), turns[-1]
    kind = _SAYINGS.get(type(last))
    if kind is None or last.turn_id != turn.id or turn.status in OVER_TURNS:
        return _NOTHING
    message_id = last.message_id
    if message_id is not None and len(message_id) == ID:
        return _NOTHING  # it may have been cut: its events go the long way
    return kind, message_id, last


_NOTHING: tuple[None, None, None] = None, None, None


# ── the session and its turns ─────────────────────────────────────────────────────────────────


def _session_opened(state: SessionState, event: e.SessionOpened, limits: Limits) -> None:
    state.session_id = event.session_id
    state.agent = event.agent
    state.cwd = event.cwd
    state.additional_directories = event.additional_directories
    state.continuity = event.continuity
    state.fence = event.fence
    state.network = event.network
    state.open = True
    state.activity, state.background = "idle", []
    subagents.stop_subagents(state)
    if event.continuity == "reset":
        append(state, event, ResetEntry(), limits)


def _session_closed(state: SessionState, event: e.SessionClosed, limits: Limits) -> None:
    state.open = False


def _turn_started(state: SessionState, event: e.TurnStarted, limits: Limits) -> None:
    turns = state.turns
    turns.append(TurnState(event.turn_id, seq=event.seq))
    if len(turns) > limits.turns:
        del turns[: len(turns) // 4 or 1]
    state.places[LAST_PROMPT] = state.entry_count
    prompt = UserEntry()
    append(state, event, prompt, limits)
    for part in event.content:
        add(state, prompt, piece_of(part), limits, whole=True)


def _turn_cancelling(state: SessionState, event: e.TurnCancelling, limits: Limits) -> None:
    turn = state.turn
    if turn is not None and turn.id == event.turn_id:
        turn.status = "cancelling"
        _cancel_tool_calls(state, turn.id)


def _turn_ended(state: SessionState, event: e.TurnEnded, limits: Limits) -> None:
    turn = state.turn
    if turn is None or turn.id != event.turn_id:
        return
    if event.error is not None:
        entry = ErrorEntry(message="")
        append(state, event, entry, limits)
        put(state, entry, "message", event.error, limits)
    # Some agents answer a cancel with another reason; what was open is over anyway.
    cancelled = turn.status == "cancelling" or event.stop_reason == "cancelled"
    if cancelled or event.error is not None:
        _cancel_tool_calls(state, turn.id)
        _cancel_compactions(state, turn.id)
        subagents.stop_subagents(state)
    turn.status = ending_of(event, cancelled=cancelled)
    turn.stop_reason = cut_line(event.stop_reason, limits)
    turn.usage = event.usage
    if event.usage is not None and weigh_struct(event.usage) > limits.fact:
        turn.usage = msgspec.structs.replace(event.usage, meta=None)
    turn.error = cut_line(event.error, limits)


def _cancel_tool_calls(state: SessionState, turn_id: str) -> None:
    for entry in _tail(state, turn_id):
        if isinstance(entry, ToolCall) and entry.status in OPEN_STATUSES:
            entry.status = "cancelled"


def _cancel_compactions(state: SessionState, turn_id: str) -> None:
    for entry in _tail(state, turn_id):
        if isinstance(entry, CompactionEntry) and entry.status == "in_progress":
            entry.status = "cancelled"


def _tail(state: SessionState, turn_id: str) -> Iterator[AnyEntry]:
    """Only the running turn's is walked: older turns ended with their own."""
    return takewhile(lambda entry: entry.turn_id == turn_id, reversed(state.entries))


# ── messages ──────────────────────────────────────────────────────────────────────────────────


def _user_message(state: SessionState, event: e.UserMessage, limits: Limits) -> None:
    if _echoes_prompt(state, event):
        return
    before = state.entry_count
    _speak(state, event, UserEntry, limits)
    if state.entry_count > before and isinstance(entry := state.entries[-1], UserEntry):
        entry.reported = not event.replay


def _echoes_prompt(state: SessionState, event: e.UserMessage) -> bool:
    """Some agents tell us the prompt we just sent; it is in the thread already."""
    if event.replay or state.turn is None or not _prompt_is_last(state):
        return False
    prompt = state.entries[-1]
    if not isinstance(prompt, UserEntry):
        return False
    piece = piece_of(event.content)
    if prompt.cut and isinstance(piece, str):
        return bool(piece) and piece.startswith(prompt.text)
    return piece in prompt.pieces or (event.text or None) == prompt.text


def _prompt_is_last(state: SessionState) -> bool:
    return state.places.get(LAST_PROMPT) == state.entry_count - 1


def _agent_message(state: SessionState, event: e.AgentMessage, limits: Limits) -> None:
    _speak(state, event, AgentEntry, limits)


def _agent_thought(state: SessionState, event: e.AgentThought, limits: Limits) -> None:
    _speak(state, event, ThoughtEntry, limits)


def _speak(
    state: SessionState,
    event: e.UserMessage | e.AgentMessage | e.AgentThought,
    kind: type[Spoken],
    limits: Limits,
) -> None:
    """Add to the message it belongs to: by its id, else to the last entry of the same kind."""
    piece = piece_of(event.content)
    if event.replaces and (known := _begun_before(state, event, kind)) is not None:
        clear(state, known)
    if piece == "":
        return
    last = state.entries[-1] if state.entries else None
    if isinstance(last, kind) and _same_message(last, event, state):
        if type(piece) is str:
            say(state, last, piece, limits)
        else:
            add(state, last, piece, limits)
        return
    if (entry := _begun_before(state, event, kind)) is not None:
        add(state, entry, piece, limits)
        forget(state, limits)
        return
    entry = kind(message_id=cut_id(event.message_id))
    if entry.message_id is not None:
        state.places[f"{kind.__name__}:{entry.message_id}"] = state.entry_count
        entry.size = 2 * len(entry.message_id)
    append(state, event, entry, limits)
    add(state, entry, piece, limits)


def _begun_before(
    state: SessionState,
    event: e.UserMessage | e.AgentMessage | e.AgentThought,
    kind: type[Spoken],
) -> Spoken | None:
    return None if event.message_id is None else state.message(kind, event.message_id)


def _same_message(
    last: Spoken, event: e.UserMessage | e.AgentMessage | e.AgentThought, state: SessionState
) -> bool:
    message_id = event.message_id
    if last.message_id != message_id and last.message_id != cut_id(message_id):
        return False
    if type(last) is UserEntry and _prompt_is_last(state):
        return False
    # Without ids, a new turn still begins a new message.
    return event.replay or last.turn_id == running_turn_id(state)


# ── tool calls, plans and the rest of the thread ──────────────────────────────────────────────


def _tool_call(state: SessionState, event: e.ToolCallUpdated, limits: Limits) -> None:
    key = event.tool_call_id[:ID]
    call = indexed(state, event, f"tool:{key}", ToolCall, limits, id=key)
    if event.title is not UNSET:
        put(state, call, "title", event.title or "", limits)
    if event.kind is not UNSET:
        call.kind = (event.kind or "other")[:WORD]
    if event.status is not UNSET:
        call.status = (event.status or "pending")[:WORD]
    if event.content is not UNSET:
        put_items(state, call, "content", event.content or [], limits)
    if event.more:
        put_more(state, call, event.more, limits)
    if event.locations is not UNSET:
        put_items(state, call, "locations", event.locations or [], limits)
    for field in ("name", "raw_input", "raw_output"):
        if (value := getattr(event, field)) is not UNSET:
            put(state, call, field, value, limits)
    if event.cancellable is not UNSET:
        call.cancellable = event.cancellable
    if event.forgets_meta:
        put(state, call, "meta", None, limits)
    if event.meta is not None:
        put_meta(state, call, event.meta, limits)
    forget(state, limits)


def _plan(state: SessionState, event: e.PlanUpdated, limits: Limits) -> None:
    plan_id = event.plan_id[:ID]
    key = f"plan:{plan_id}" if plan_id else STEPS_PLAN
    if not plan_id and state.places.get(key, -1) < state.places.get(LAST_USER, -1):
        # One without an id is replaced in place until the user speaks again.
        state.places.pop(key, None)
    plan = indexed(state, event, key, PlanEntry, limits, plan_id=plan_id)
    put_items(state, plan, "steps", event.steps, limits)
    if event.markdown is not None or plan.markdown is not None:
        put(state, plan, "markdown", event.markdown, limits)
    if event.uri is not None or plan.uri is not None:
        put(state, plan, "uri", event.uri, limits)
    forget(state, limits)


def _plan_removed(state: SessionState, event: e.PlanRemoved, limits: Limits) -> None:
    """The row stays, empty, so that no other entry's place moves."""
    key = f"plan:{event.plan_id[:ID]}"
    plan = state.placed(key)
    state.places.pop(key, None)
    if isinstance(plan, PlanEntry):
        put_items(state, plan, "steps", [], limits)
        put(state, plan, "markdown", None, limits)
        put(state, plan, "uri", None, limits)


def _notice(state: SessionState, event: e.Notice, limits: Limits) -> None:
    entry = NoticeEntry(title="", severity=event.severity[:WORD], source=event.source)
    append(state, event, entry, limits)
    put(state, entry, "title", event.title, limits)
    put(state, entry, "description", event.description, limits)


def _turn_limited(state: SessionState, event: e.TurnLimited, limits: Limits) -> None:
    _notice(state, event, limits)
    state.parked = event.parked


def _parking_changed(state: SessionState, event: e.ParkingChanged, limits: Limits) -> None:
    _notice(state, event, limits)
    parked = state.parked
    if parked is not None and parked.id == event.parking_id:
        state.parked = (
            _still_parked(parked, event.resumes_at) if event.outcome == "waiting" else None
        )


def _still_parked(parked: Parking, resumes_at: float | None) -> Parking:
    """What waits for a person is not in doubt: the person decides."""
    is_doubted = parked.is_doubted and resumes_at is not None
    return msgspec.structs.replace(parked, resumes_at=resumes_at, is_doubted=is_doubted)


def _compaction(state: SessionState, event: e.CompactionUpdated, limits: Limits) -> None:
    entry = _named(state, event, "compaction", event.compaction_id, CompactionEntry, limits)
    entry.status = event.status[:WORD]
    if event.summary is not UNSET:
        put_items(state, entry, "summary", event.summary or [], limits)
    if event.error is not UNSET:
        put(state, entry, "error", event.error, limits)
    forget(state, limits)


def _compaction_summary(state: SessionState, event: e.CompactionSummary, limits: Limits) -> None:
    entry = _named(state, event, "compaction", event.compaction_id, CompactionEntry, limits)
    add_item(state, entry, entry.summary, event.content, limits)
    forget(state, limits)


_Named = TypeVar("_Named", CompactionEntry, PeerMessageEntry)


def _named(
    state: SessionState, event: e.Event, kind: str, name: str, entry: type[_Named], limits: Limits
) -> _Named:
    """The entry that the agent gave this name, made on first sight."""
    key = name[:ID]
    return indexed(state, event, f"{kind}:{key}", entry, limits, id=key)


def _peer_message(state: SessionState, event: e.PeerMessageUpdated, limits: Limits) -> None:
    entry = _named(state, event, "peer", event.message_id, PeerMessageEntry, limits)
    for field in _PEER_FIELDS:
        if (value := getattr(event, field)) is not UNSET:
            put(state, entry, field, value, limits)
    if event.content is not UNSET:
        put_items(state, entry, "content", event.content or [], limits)
    forget(state, limits)


_PEER_FIELDS = (
    "sender_session_id",
    "recipient_session_id",
    "sender_message_id",
    "recipient_message_id",
)


def _peer_message_chunk(state: SessionState, event: e.PeerMessageChunk, limits: Limits) -> None:
    entry = _named(state, event, "peer", event.message_id, PeerMessageEntry, limits)
    add_item(state, entry, entry.content, event.content, limits)
    forget(state, limits)


def _activity(state: SessionState, event: e.ActivityChanged, limits: Limits) -> None:
    if event.activity is not UNSET:
        state.activity = event.activity[:WORD]
    if event.background is not UNSET:
        state.background = fitted_as(list[BackgroundWork], event.background, limits.facts)


def _unknown(state: SessionState, event: e.UnknownUpdate, limits: Limits) -> None:
    entry = UnknownEntry(kind=event.kind[:WORD], raw="")
    append(state, event, entry, limits)
    put(state, entry, "raw", event.raw, limits)


# ── facts ─────────────────────────────────────────────────────────────────────────────────────


def _commands(state: SessionState, event: e.CommandsChanged, limits: Limits) -> None:
    state.commands = fitting(event.commands, limits.facts)[0]


def _mode(state: SessionState, event: e.ModeChanged, limits: Limits) -> None:
    current = event.mode_id[:ID]
    if event.available is not None:
        state.modes = Modes(current, fitting(event.available, limits.facts)[0])
    elif state.modes is None:
        state.modes = Modes(current, [])
    else:
        state.modes = Modes(current, state.modes.available, meta=state.modes.meta)


def _config(state: SessionState, event: e.ConfigChanged, limits: Limits) -> None:
    state.config_options = fitting(event.options, limits.facts)[0]


def _info(state: SessionState, event: e.InfoChanged, limits: Limits) -> None:
    if event.title is not UNSET:
        state.title = cut_line(event.title, limits)
    if event.updated_at is not UNSET:
        state.updated_at = cut_line(event.updated_at, limits)


def _usage(state: SessionState, event: e.UsageChanged, limits: Limits) -> None:
    usage = event.usage
    fits = weigh_struct(usage) <= limits.fact
    state.usage = usage if fits else ContextUsage(usage.used, usage.size)


def _subagent_event(state: SessionState, event: e.SubagentEvent, limits: Limits) -> None:
    """A step of the subagent's own thread."""
    told = event.event
    if type(told) not in subagents.TOLD:
        return
    child = subagents.child_of(state, event.session_id, event, limits)
    told = msgspec.structs.replace(told, seq=event.seq, at=event.at, replay=event.replay)
    before = child.thread.size
    reduce(child.thread, told, limits_of_subagent(limits))
    state.subagents_size += child.thread.size - before
    if isinstance(told, e.ActivityChanged) and told.activity is not UNSET:
        subagents.mirror_activity(child)
    subagents.share_room(state, child, limits)


# ── what waits for an answer ──────────────────────────────────────────────────────────────────


def _permission_requested(
    state: SessionState, event: e.PermissionRequested, limits: Limits
) -> None:
    content = fitting(event.content, limits.entry)[0]
    state.pending[event.request_id] = event.as_kind(PendingPermission, content=content)
    _turn_waits(state)


def _elicitation_requested(
    state: SessionState, event: e.ElicitationRequested, limits: Limits
) -> None:
    state.pending[event.request_id] = event.as_kind(PendingElicitation)
    _turn_waits(state)


def _settled(
    state: SessionState, event: e.PermissionSettled | e.ElicitationSettled, limits: Limits
) -> None:
    state.pending.pop(event.request_id, None)
    _turn_waits(state)


def _turn_waits(state: SessionState) -> None:
    turn = state.turn
    if turn is not None and turn.status != "cancelling":
        turn.status = "waiting" if state.pending else "streaming"


def _snapshot(state: SessionState, event: e.WorkspaceSnapshot, limits: Limits) -> None:
    state.snapshot = msgspec.structs.replace(
        event,
        step_id=event.step_id[:ID],
        roots=fitting(event.roots, limits.facts)[0],
        files=fitting(event.files, limits.facts)[0],
        doubt=event.doubt[: limits.line],
    )


def _ignored(
    state: SessionState, event: e.AccessDecided | e.FileWritten | e.FileReverted, limits: Limits
) -> None:
    """A record for people and for undoing; the thread shows it through the tool call."""


_STEPS: dict[type[Any], Callable[[SessionState, Any, Limits], None]] = {
    e.SessionOpened: _session_opened,
    e.SessionClosed: _session_closed,
    e.TurnStarted: _turn_started,
    e.TurnCancelling: _turn_cancelling,
    e.TurnEnded: _turn_ended,
    e.UserMessage: _user_message,
    e.AgentMessage: _agent_message,
    e.AgentThought: _agent_thought,
    e.ToolCallUpdated: _tool_call,
    e.PlanUpdated: _plan,
    e.PlanRemoved: _plan_removed,
    e.CommandsChanged: _commands,
    e.ModeChanged: _mode,
    e.ConfigChanged: _config,
    e.InfoChanged: _info,
    e.UsageChanged: _usage,
    e.Notice: _notice,
    e.LimitReached: _notice,
    e.TurnLimited: _turn_limited,
    e.ParkingChanged: _parking_changed,
    e.CompactionUpdated: _compaction,
    e.CompactionSummary: _compaction_summary,
    e.SubagentUpdated: subagents.subagent_updated,
    e.SubagentEvent: _subagent_event,
    e.PeerMessageUpdated: _peer_message,
    e.PeerMessageChunk: _peer_message_chunk,
    e.ActivityChanged: _activity,
    e.UnknownUpdate: _unknown,
    e.PermissionRequested: _permission_requested,
    e.PermissionSettled: _settled,
    e.AccessDecided: _ignored,
    e.ElicitationRequested: _elicitation_requested,
    e.ElicitationSettled: _settled,
    e.TerminalStarted: terminals.terminal_started,
    e.TerminalOutput: terminals.terminal_output,
    e.TerminalExited: terminals.terminal_exited,
    e.TerminalReleased: terminals.terminal_released,
    e.FileWritten: _ignored,
    e.FileReverted: _ignored,
    e.WorkspaceSnapshot: _snapshot,
    e.ProgramsRan: fenced_programs.programs_ran,
    e.PromptQueued: prompt_queue.prompt_queued,
    e.PromptUnqueued: prompt_queue.prompt_unqueued,
    e.Steered: prompt_queue.steered,
}
