"""`reduce(state, event)`: the one place where events become state; `fold` does so for many.

Both change the state they are given and return it, at a cost that does not grow with the thread.
They never raise: whatever an agent sends in whatever order, there is a next state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from dragoman.session import events as e
from dragoman.session.content import UNREAD, Content, Text, ToolContent, UnknownItem
from dragoman.session.facts import Modes
from dragoman.session.state import (
    OPEN_STATUSES,
    OVER_TURNS,
    TERMINAL_TAIL,
    AgentEntry,
    AnyEntry,
    CompactionEntry,
    ErrorEntry,
    NoticeEntry,
    PeerMessageEntry,
    PendingElicitation,
    PendingPermission,
    PlanEntry,
    QueuedPrompt,
    ResetEntry,
    SessionState,
    Subagent,
    Terminal,
    ThoughtEntry,
    ToolCall,
    TurnState,
    TurnStatus,
    UnknownEntry,
    UserEntry,
)

_LAST_USER = "last user entry"
_PROMPT = "last prompt"
_AT_WORK = ("running", "requires_action")
_TOLD_BY_ERROR = frozenset(
    (
        "interrupted: the process that ran the session ended",
        "interrupted: the session was forked in the midst of a turn",
    )
)
"""How the end of a turn said that it was interrupted before it had a field for that."""

Spoken = UserEntry | AgentEntry | ThoughtEntry
Saying = e.AgentMessage | e.AgentThought
Indexed = TypeVar("Indexed", ToolCall, PlanEntry, CompactionEntry, PeerMessageEntry)


def reduce(state: SessionState, event: e.Event) -> SessionState:
    """The state after `event`."""
    if event.seq:
        state.last_seq = event.seq
    kind, turns = type(event), state.turns
    if turns and turns[-1].status == "prompting" and kind in _FROM_AGENT:
        turns[-1].status = "streaming"
    _STEPS[kind](state, event)
    return state


def fold(state: SessionState, events: Iterable[e.Event]) -> SessionState:
    """The state after all of `events`; quicker than one by one."""
    kind, message_id, pieces = _spoken_now(state)
    for event in events:
        # Nearly every event is another piece of the same text, and that is all there is to it.
        if (
            kind is not None
            and isinstance(event, kind)
            and event.message_id == message_id
            and type(content := event.content) is Text
            and content.text
            and content.annotations is None
            and content.meta is None
            and not event.replaces
        ):
            pieces.append(content.text)
            if event.seq:
                state.last_seq = event.seq
        else:
            reduce(state, event)
            kind, message_id, pieces = _spoken_now(state)
    return state


def _spoken_now(state: SessionState) -> tuple[type[Saying] | None, str | None, list[str | Content]]:
    """What the agent is in the middle of saying: the kind of event that goes on with it, its id,
    and its pieces."""
    last, turn = state.entries[-1] if state.entries else None, state.turn
    if isinstance(last, AgentEntry | ThoughtEntry) and turn is not None and last.turn_id == turn.id:
        kind = e.AgentMessage if type(last) is AgentEntry else e.AgentThought
        return kind, last.message_id, last.pieces
    return None, None, []


# ── the session and its turns ─────────────────────────────────────────────────────────────────


def _session_opened(state: SessionState, event: e.SessionOpened) -> None:
    state.session_id = event.session_id
    state.agent = event.agent
    state.cwd = event.cwd
    state.additional_directories = event.additional_directories
    state.continuity = event.continuity
    state.open = True
    state.activity, state.background = "idle", []
    _stop_subagents(state)
    if event.continuity == "reset":
        _append(state, event, ResetEntry())


def _session_closed(state: SessionState, event: e.SessionClosed) -> None:
    state.open = False


def _turn_started(state: SessionState, event: e.TurnStarted) -> None:
    state.turns.append(TurnState(event.turn_id))
    state.places[_PROMPT] = len(state.entries)
    _append(state, event, UserEntry(pieces=[_piece(part) for part in event.content]))


def _turn_cancelling(state: SessionState, event: e.TurnCancelling) -> None:
    turn = state.turn
    if turn is not None and turn.id == event.turn_id:
        turn.status = "cancelling"
        _cancel_tool_calls(state, turn.id)


def _turn_ended(state: SessionState, event: e.TurnEnded) -> None:
    turn = state.turn
    if turn is None or turn.id != event.turn_id:
        return
    if event.error is not None:
        _append(state, event, ErrorEntry(message=event.error))
    # Some agents answer a cancel with another reason; what was open is over all the same.
    cancelled = turn.status == "cancelling" or event.stop_reason == "cancelled"
    if cancelled or event.error is not None:
        _cancel_tool_calls(state, turn.id)
        _cancel_compactions(state, turn.id)
        _stop_subagents(state)
    turn.status = _ending(event, cancelled=cancelled)
    turn.stop_reason = event.stop_reason
    turn.usage = event.usage
    turn.error = event.error


def _ending(event: e.TurnEnded, *, cancelled: bool) -> TurnStatus:
    if event.interrupted or event.error in _TOLD_BY_ERROR:
        return "interrupted"
    if event.error is not None:
        return "failed"
    return "cancelled" if cancelled else "completed"


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


def _stop_subagents(state: SessionState) -> None:
    """But for those that the agent says run on."""
    running_on = [work.get("sessionId") for work in state.background]
    for child in state.subagents.values():
        doing = None if child.state is None else child.state.get("state")
        if doing in _AT_WORK and child.session_id not in running_on:
            child.state = {"state": "idle", "stopReason": "cancelled"}


# ── messages ──────────────────────────────────────────────────────────────────────────────────


def _user_message(state: SessionState, event: e.UserMessage) -> None:
    if not _echoes_prompt(state, event):
        _speak(state, event, UserEntry)


def _echoes_prompt(state: SessionState, event: e.UserMessage) -> bool:
    """Some agents tell us the prompt we just sent; it stands in the thread already."""
    if event.replay or state.turn is None or not _prompt_is_last(state):
        return False
    prompt = state.entries[-1]
    if not isinstance(prompt, UserEntry):
        return False
    return _piece(event.content) in prompt.pieces or (event.text or None) == prompt.text


def _prompt_is_last(state: SessionState) -> bool:
    return state.places.get(_PROMPT) == len(state.entries) - 1


def _agent_message(state: SessionState, event: e.AgentMessage) -> None:
    _speak(state, event, AgentEntry)


def _agent_thought(state: SessionState, event: e.AgentThought) -> None:
    _speak(state, event, ThoughtEntry)


def _speak(
    state: SessionState,
    event: e.UserMessage | e.AgentMessage | e.AgentThought,
    kind: type[Spoken],
) -> None:
    """Add to the message it belongs to: by its id, else to the last entry of the same kind."""
    piece = _piece(event.content)
    if event.replaces and (known := _begun_before(state, event, kind)) is not None:
        known.pieces.clear()
    if piece == "":
        return
    last = state.entries[-1] if state.entries else None
    if isinstance(last, kind) and _same_message(last, event, state):
        last.pieces.append(piece)
        return
    if (entry := _begun_before(state, event, kind)) is not None:
        entry.pieces.append(piece)
        return
    if event.message_id is not None:
        state.places[f"{kind.__name__}:{event.message_id}"] = len(state.entries)
    _append(state, event, kind(pieces=[piece], message_id=event.message_id))


def _begun_before(
    state: SessionState,
    event: e.UserMessage | e.AgentMessage | e.AgentThought,
    kind: type[Spoken],
) -> Spoken | None:
    if event.message_id is None:
        return None
    place = state.places.get(f"{kind.__name__}:{event.message_id}")
    entry = None if place is None else state.entries[place]
    return entry if isinstance(entry, kind) else None


def _same_message(
    last: Spoken, event: e.UserMessage | e.AgentMessage | e.AgentThought, state: SessionState
) -> bool:
    if last.message_id != event.message_id:
        return False
    if type(last) is UserEntry and _prompt_is_last(state):
        return False
    # Without ids, a new turn still begins a new message.
    return event.replay or last.turn_id == _turn_id(state)


def _piece(content: Content) -> str | Content:
    if type(content) is Text and content.annotations is None and content.meta is None:
        return content.text
    return content


# ── tool calls, plans and the rest of the thread ──────────────────────────────────────────────


def _tool_call(state: SessionState, event: e.ToolCallUpdated) -> None:
    call = _indexed(state, event, "tool", event.tool_call_id, ToolCall, id=event.tool_call_id)
    if event.title is not UNSET:
        call.title = event.title or ""
    if event.kind is not UNSET:
        call.kind = event.kind or "other"
    if event.status is not UNSET:
        call.status = event.status or "pending"
    if event.content is not UNSET:
        call.content = list(event.content or ())
    for item in event.more:
        if _is_unread(item):  # each is a whole update, and an agent may send them without end
            call.content = [known for known in call.content if not _is_unread(known)]
        call.content.append(item)
    if event.locations is not UNSET:
        call.locations = event.locations or []
    _patch(call, event, "name", "raw_input", "raw_output", "cancellable")
    if event.forgets_meta:
        call.meta = None
    if event.meta is not None:
        call.meta = _with_meta(call.meta, event.meta)


def _is_unread(item: ToolContent) -> bool:
    return isinstance(item, UnknownItem) and item.kind == UNREAD


def _with_meta(known: dict[str, Any] | None, more: dict[str, Any]) -> dict[str, Any]:
    """Added to in place: an agent may send a key at a time, for as long as it likes. A key that is
    null goes."""
    merged = {} if known is None else known
    merged.update(more)
    for key in [key for key, value in more.items() if value is None]:
        del merged[key]
    return merged


def _plan(state: SessionState, event: e.PlanUpdated) -> None:
    # A plan without an id is replaced in place until the user speaks again.
    index, key = ("plan", event.plan_id) if event.plan_id else ("steps", _last_user(state))
    plan = _indexed(state, event, index, key, PlanEntry, plan_id=event.plan_id)
    plan.steps = event.steps
    plan.markdown = event.markdown
    plan.uri = event.uri


def _last_user(state: SessionState) -> str:
    return f"after {state.places.get(_LAST_USER, 0)}"


def _plan_removed(state: SessionState, event: e.PlanRemoved) -> None:
    """The row stays, empty, so that no other entry's place moves."""
    place = state.places.pop(f"plan:{event.plan_id}", None)
    if place is not None and isinstance(plan := state.entries[place], PlanEntry):
        plan.steps = []
        plan.markdown = plan.uri = None


def _notice(state: SessionState, event: e.Notice) -> None:
    entry = NoticeEntry(
        title=event.title,
        severity=event.severity,
        description=event.description,
        source=event.source,
    )
    _append(state, event, entry)


def _compaction(state: SessionState, event: e.CompactionUpdated) -> None:
    key = event.compaction_id
    entry = _indexed(state, event, "compaction", key, CompactionEntry, id=key)
    entry.status = event.status
    if event.summary is not UNSET:
        entry.summary = list(event.summary or ())
    if event.error is not UNSET:
        entry.error = event.error


def _compaction_summary(state: SessionState, event: e.CompactionSummary) -> None:
    key = event.compaction_id
    entry = _indexed(state, event, "compaction", key, CompactionEntry, id=key)
    entry.summary.append(event.content)


def _peer_message(state: SessionState, event: e.PeerMessageUpdated) -> None:
    key = event.message_id
    entry = _indexed(state, event, "peer", key, PeerMessageEntry, id=key)
    _patch(entry, event, *_PEER_FIELDS)
    if event.content is not UNSET:
        entry.content = list(event.content or ())


_PEER_FIELDS = (
    "sender_session_id",
    "recipient_session_id",
    "sender_message_id",
    "recipient_message_id",
)


def _peer_message_chunk(state: SessionState, event: e.PeerMessageChunk) -> None:
    key = event.message_id
    _indexed(state, event, "peer", key, PeerMessageEntry, id=key).content.append(event.content)


def _activity(state: SessionState, event: e.ActivityChanged) -> None:
    _patch(state, event, "activity", "background")


def _unknown(state: SessionState, event: e.UnknownUpdate) -> None:
    _append(state, event, UnknownEntry(kind=event.kind, raw=event.raw))


# ── facts ─────────────────────────────────────────────────────────────────────────────────────


def _commands(state: SessionState, event: e.CommandsChanged) -> None:
    state.commands = event.commands


def _mode(state: SessionState, event: e.ModeChanged) -> None:
    if event.available is not None:
        state.modes = Modes(event.mode_id, event.available)
    elif state.modes is None:
        state.modes = Modes(event.mode_id, [])
    else:
        state.modes = Modes(event.mode_id, state.modes.available, meta=state.modes.meta)


def _config(state: SessionState, event: e.ConfigChanged) -> None:
    state.config_options = event.options


def _info(state: SessionState, event: e.InfoChanged) -> None:
    _patch(state, event, "title", "updated_at")


def _usage(state: SessionState, event: e.UsageChanged) -> None:
    state.usage = event.usage


def _subagent(state: SessionState, event: e.SubagentUpdated) -> None:
    known = state.subagents.get(event.session_id)
    child = known or Subagent(event.session_id, seq=event.seq, at=event.at)
    state.subagents[event.session_id] = child
    _patch(child, event, *_SUBAGENT_FIELDS)


_SUBAGENT_FIELDS = (
    "title",
    "description",
    "state",
    "cwd",
    "additional_directories",
    "capabilities",
)


# ── what waits for an answer ──────────────────────────────────────────────────────────────────


def _permission_requested(state: SessionState, event: e.PermissionRequested) -> None:
    state.pending[event.request_id] = PendingPermission(
        id=event.request_id,
        options=event.options,
        title=event.title,
        tool_call_id=event.tool_call_id,
        operation=event.operation,
        paths=event.paths,
        argv=event.argv,
        content=event.content,
        description=event.description,
        explanation=event.explanation,
        claimed=event.claimed,
        cwd=event.cwd,
    )
    _turn_waits(state)


def _elicitation_requested(state: SessionState, event: e.ElicitationRequested) -> None:
    state.pending[event.request_id] = PendingElicitation(
        id=event.request_id,
        message=event.message,
        mode=event.mode,
        schema=event.schema,
        url=event.url,
        elicitation_id=event.elicitation_id,
        tool_call_id=event.tool_call_id,
    )
    _turn_waits(state)


def _settled(state: SessionState, event: e.PermissionSettled | e.ElicitationSettled) -> None:
    state.pending.pop(event.request_id, None)
    _turn_waits(state)


def _turn_waits(state: SessionState) -> None:
    turn = state.turn
    if turn is not None and turn.status != "cancelling":
        turn.status = "waiting" if state.pending else "streaming"


def _ignored(state: SessionState, event: e.AccessDecided | e.FileWritten | e.FileReverted) -> None:
    """A record for people and for undoing; the thread shows it through the tool call."""


# ── terminals and the queue ───────────────────────────────────────────────────────────────────


def _terminal_started(state: SessionState, event: e.TerminalStarted) -> None:
    terminal = _terminal(state, event.terminal_id)
    terminal.argv = event.argv
    terminal.cwd = event.cwd
    terminal.command = event.command
    terminal.cancellable = event.cancellable
    terminal.running = True
    terminal.exit_code = terminal.signal = None


def _terminal_output(state: SessionState, event: e.TerminalOutput) -> None:
    terminal = _terminal(state, event.terminal_id)
    if event.replaces:
        terminal.pieces, terminal.size = [], 0
    if event.data:
        terminal.pieces.append(event.data)
    terminal.size += len(event.data)
    # Trimmed when twice too long, so that the copying is paid for by what was printed.
    if terminal.size > 2 * TERMINAL_TAIL:
        terminal.pieces = [terminal.output]
        terminal.size = len(terminal.pieces[0])


def _terminal_exited(state: SessionState, event: e.TerminalExited) -> None:
    terminal = _terminal(state, event.terminal_id)
    terminal.running = terminal.cancellable = False
    terminal.exit_code = event.exit_code
    terminal.signal = event.signal


def _terminal_released(state: SessionState, event: e.TerminalReleased) -> None:
    _terminal(state, event.terminal_id).released = True


def _terminal(state: SessionState, terminal_id: str) -> Terminal:
    return state.terminals.setdefault(terminal_id, Terminal(terminal_id))


def _prompt_queued(state: SessionState, event: e.PromptQueued) -> None:
    for prompt in state.queue:
        if prompt.id == event.queue_id:
            prompt.content = event.content
            return
    state.queue.append(QueuedPrompt(event.queue_id, event.content))


def _prompt_unqueued(state: SessionState, event: e.PromptUnqueued) -> None:
    state.queue = [prompt for prompt in state.queue if prompt.id != event.queue_id]


# ── entries ───────────────────────────────────────────────────────────────────────────────────


def _append(state: SessionState, event: e.Event, entry: AnyEntry) -> None:
    entry.seq = event.seq
    entry.at = event.at
    if not event.replay and state.turns:
        turn = state.turns[-1]
        if turn.status not in OVER_TURNS:
            entry.turn_id = turn.id
    if isinstance(entry, UserEntry):
        state.places[_LAST_USER] = len(state.entries)
    state.entries.append(entry)


def _indexed(
    state: SessionState,
    event: e.Event,
    index: str,
    key: str,
    kind: type[Indexed],
    **fields: Any,
) -> Indexed:
    """The entry with this id, made on first sight whatever comes first."""
    place = state.places.get(f"{index}:{key}")
    if place is not None and isinstance(entry := state.entries[place], kind):
        return entry
    entry = kind(**fields)
    state.places[f"{index}:{key}"] = len(state.entries)
    _append(state, event, entry)
    return entry


def _turn_id(state: SessionState) -> str | None:
    turns = state.turns
    return turns[-1].id if turns and turns[-1].status not in OVER_TURNS else None


def _patch(target: msgspec.Struct, event: e.Event, *fields: str) -> None:
    for field in fields:
        value = getattr(event, field)
        if value is not UNSET:
            setattr(target, field, value)


_STEPS: dict[type[Any], Callable[[SessionState, Any], None]] = {
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
    e.CompactionUpdated: _compaction,
    e.CompactionSummary: _compaction_summary,
    e.SubagentUpdated: _subagent,
    e.PeerMessageUpdated: _peer_message,
    e.PeerMessageChunk: _peer_message_chunk,
    e.ActivityChanged: _activity,
    e.UnknownUpdate: _unknown,
    e.PermissionRequested: _permission_requested,
    e.PermissionSettled: _settled,
    e.AccessDecided: _ignored,
    e.ElicitationRequested: _elicitation_requested,
    e.ElicitationSettled: _settled,
    e.TerminalStarted: _terminal_started,
    e.TerminalOutput: _terminal_output,
    e.TerminalExited: _terminal_exited,
    e.TerminalReleased: _terminal_released,
    e.FileWritten: _ignored,
    e.FileReverted: _ignored,
    e.PromptQueued: _prompt_queued,
    e.PromptUnqueued: _prompt_unqueued,
}

_FROM_AGENT: frozenset[type[Any]] = frozenset(
    {
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
        e.CompactionUpdated,
        e.CompactionSummary,
        e.SubagentUpdated,
        e.PeerMessageUpdated,
        e.PeerMessageChunk,
        e.UnknownUpdate,
    }
)
"""What shows that the agent is at work on a prompt."""
