"""The entries of a thread, kept within limits.

Each entry is weighed and found by its key; the oldest are dropped when there are too many.

`reduce` says what an event means, and changes what is kept through this module alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from dragoman.session import events as e
from dragoman.session.content import UNREAD, Content, Text, ToolContent, UnknownItem
from dragoman.session.state import (
    OPEN_STATUSES,
    OVER_TURNS,
    AgentEntry,
    AnyEntry,
    CompactionEntry,
    PeerMessageEntry,
    PlanEntry,
    SessionState,
    ThoughtEntry,
    ToolCall,
    UserEntry,
)
from dragoman.session.state_limits import (
    ID,
    NODE,
    PIECE,
    ROW,
    Limits,
    fitted,
    fitting,
    weigh,
    weigh_struct,
)

LAST_PROMPT = "last prompt"
LAST_USER = "last user entry"
STEPS_PLAN = "steps"
"""Keys of `places` that do not belong to one entry."""

Spoken = UserEntry | AgentEntry | ThoughtEntry
Indexed = TypeVar("Indexed", ToolCall, PlanEntry, CompactionEntry, PeerMessageEntry)


# ── entries ─────────────────────────────────────────────────────────────────────────────────


def append(state: SessionState, event: e.Event, entry: AnyEntry, limits: Limits) -> None:
    entry.seq = event.seq
    entry.at = event.at
    if not event.replay and state.turns:
        turn = state.turns[-1]
        if turn.status not in OVER_TURNS:
            entry.turn_id = turn.id
    if isinstance(entry, UserEntry):
        state.places[LAST_USER] = state.entry_count
    state.entries.append(entry)
    state.size += ROW + entry.size
    if len(state.entries) > limits.entries or state.size > limits.thread:
        forget(state, limits)


def indexed(
    state: SessionState,
    event: e.Event,
    key: str,
    kind: type[Indexed],
    limits: Limits,
    **fields: Any,
) -> Indexed:
    """The entry with this key, made on first sight whatever comes first."""
    if isinstance(known := state.placed(key), kind):
        return known
    entry = kind(**fields)
    entry.size = 2 * len(key)
    state.places[key] = state.entry_count
    append(state, event, entry, limits)
    return entry


def grow(state: SessionState, entry: AnyEntry, by: int) -> None:
    entry.size += by
    state.size += by


def put(state: SessionState, entry: AnyEntry, field: str, value: Any, limits: Limits) -> None:
    """Set a field to as much of a value as has room among the others."""
    room = limits.entry - entry.size
    if old := getattr(entry, field):
        weight = weigh(old)
        room += weight
        grow(state, entry, -weight)
    if value.__class__ is str and value and NODE + len(value) <= room:
        grow(state, entry, NODE + len(value))
    elif value:
        kept, weight = fitted(value, room)
        if kept is not value:
            entry.cut += weigh(value) - weight
        value = kept
        if kept:
            grow(state, entry, weight)
    setattr(entry, field, value)


def put_items(
    state: SessionState, entry: AnyEntry, field: str, items: list[Any], limits: Limits
) -> None:
    """The same for a list of structs."""
    if old := getattr(entry, field):
        grow(state, entry, -_items_weight(old))
    kept, weight = fitting(items, limits.entry - entry.size)
    setattr(entry, field, kept)
    if kept != items:
        entry.cut += _items_weight(items) - weight
    grow(state, entry, weight)


def add_item(
    state: SessionState, entry: AnyEntry, items: list[Any], item: Any, limits: Limits
) -> None:
    """One more of them."""
    kept, weight = fitting([item], limits.entry - entry.size)
    items += kept
    grow(state, entry, weight)
    if kept != [item]:
        entry.cut += weigh_struct(item) - weight


def _items_weight(items: Iterable[Any]) -> int:
    return sum(map(weigh_struct, items))


# ── what is said ────────────────────────────────────────────────────────────────────────────


def add(
    state: SessionState,
    entry: Spoken,
    piece: str | Content,
    limits: Limits,
    *,
    whole: bool = False,
) -> None:
    """Text that comes in pieces is held in pieces of our own, unless it is to stay `whole`."""
    if isinstance(piece, str) and not whole:
        say(state, entry, piece, limits)
        return
    part = Text(piece) if isinstance(piece, str) else piece
    kept, weight = fitting([part], limits.entry - entry.size)
    grow(state, entry, weight)
    entry.pieces += [piece_of(each) for each in kept]
    if kept != [part]:
        entry.cut += weigh_struct(part) - weight


def say(state: SessionState, entry: Spoken, text: str, limits: Limits) -> None:
    length = len(text)
    size = entry.size + length
    if size > limits.entry:
        entry.cut += min(size - limits.entry, length)
        length = max(0, limits.entry - entry.size)
        text, size = text[:length], entry.size + length
    entry.size = size
    state.size += length
    pieces = entry.pieces
    if pieces and type(last := pieces[-1]) is str and len(last) + length <= PIECE:
        pieces[-1] = last + text
    elif 0 < length <= PIECE and not pieces:
        pieces.append(text)
    else:
        join(pieces, text)


def join(pieces: list[Any], text: str) -> None:
    """All but the last piece are of one length: many small ones would cost more than their words,
    and however they came, they are the same in the end."""
    if pieces and type(last := pieces[-1]) is str and len(last) < PIECE:
        text = last + text
        del pieces[-1]
    pieces += [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def piece_of(content: Content) -> str | Content:
    if type(content) is Text and content.annotations is None and content.meta is None:
        return content.text
    return content


def clear(state: SessionState, entry: Spoken) -> None:
    grow(state, entry, 2 * len(entry.message_id or "") - entry.size)
    entry.pieces.clear()
    entry.cut = 0


# ── tool calls ──────────────────────────────────────────────────────────────────────────────


def put_more(state: SessionState, call: ToolCall, more: list[ToolContent], limits: Limits) -> None:
    for item in more:
        # Each is a whole update, and an agent may send them without end: of a row the last stays.
        if _is_unread(item) and call.content and _is_unread(call.content[-1]):
            grow(state, call, -weigh_struct(call.content.pop()))
        kept, weight = fitting([item], limits.entry - call.size)
        call.content += kept
        grow(state, call, weight)
        if kept != [item]:
            call.cut += weigh_struct(item) - weight


def _is_unread(item: ToolContent) -> bool:
    return isinstance(item, UnknownItem) and item.kind == UNREAD


def put_meta(state: SessionState, call: ToolCall, more: dict[str, Any], limits: Limits) -> None:
    """Added to in place: an agent may send a key at a time, for as long as it likes. A key that is
    null goes."""
    kept, weight = fitted(more, limits.entry - call.size)
    if kept is not more:
        call.cut += weigh(more) - weight
    if not call.meta:
        call.meta = {}
        grow(state, call, NODE)
    for key, value in kept.items():
        if key in call.meta:
            grow(state, call, -_member(key, call.meta.pop(key)))
        if value is not None:
            call.meta[key] = value
            grow(state, call, _member(key, value))
    if not call.meta:
        grow(state, call, -NODE)


def _member(key: str, value: Any) -> int:
    return NODE + len(key) + weigh(value)


# ── making room ─────────────────────────────────────────────────────────────────────────────


def forget(state: SessionState, limits: Limits) -> None:
    """Let the oldest entries go when there is too much, a quarter at once, so that it is paid for
    by what was added. The newest stays, and so does a tool call under way until there is twice too
    much: later updates about it would begin another row."""
    entries, size = state.entries, state.size
    count = len(entries)
    if count <= limits.entries and size <= limits.thread:
        return
    urgent = count > 2 * limits.entries or size > 2 * limits.thread
    turn_id, gone = running_turn_id(state), 0
    while gone < len(entries) - 1 and (
        count > limits.entries * 3 // 4 or size > limits.thread * 3 // 4
    ):
        entry = entries[gone]
        if not urgent and turn_id is not None and _is_under_way(entry, turn_id):
            break
        size -= ROW + entry.size
        _unplace(state, entry, state.entries_before + gone)
        count, gone = count - 1, gone + 1
    del entries[:gone]
    state.entries_before += gone
    state.size = size


def forget_all(state: SessionState) -> None:
    """Every entry goes; the thread continues after them."""
    state.entries_before = state.entry_count
    state.entries, state.places, state.size = [], {}, 0


def _is_under_way(entry: AnyEntry, turn_id: str) -> bool:
    if entry.turn_id != turn_id:
        return False
    return isinstance(entry, ToolCall | CompactionEntry) and entry.status in OPEN_STATUSES


def _unplace(state: SessionState, entry: AnyEntry, place: int) -> None:
    key = _key_of(entry)
    if key is not None and state.places.get(key) == place:
        del state.places[key]


def _key_of(entry: AnyEntry) -> str | None:
    """What it is under in `places`."""
    match entry:
        case ToolCall():
            return f"tool:{entry.id}"
        case UserEntry() | AgentEntry() | ThoughtEntry():
            named = entry.message_id is not None
            return f"{type(entry).__name__}:{entry.message_id}" if named else None
        case PlanEntry():
            return f"plan:{entry.plan_id}" if entry.plan_id else STEPS_PLAN
        case CompactionEntry():
            return f"compaction:{entry.id}"
        case PeerMessageEntry():
            return f"peer:{entry.id}"
        case _:
            return None


def running_turn_id(state: SessionState) -> str | None:
    turns = state.turns
    return turns[-1].id if turns and turns[-1].status not in OVER_TURNS else None


def cut_line(text: str | None, limits: Limits) -> str | None:
    return None if text is None else text[: limits.line]


def whole_id(kept: str | None) -> str | None:
    """The id that was kept, unless it may be only the beginning of one."""
    return kept if kept is not None and len(kept) < ID else None


def cut_id(message_id: str | None) -> str | None:
    return None if message_id is None else message_id[:ID]
