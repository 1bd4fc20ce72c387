"""The state of a session from the store: its snapshot plus later events, and its summary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import cache

import msgspec

from dragoman._version import __version__
from dragoman.session.events import Event
from dragoman.session.reduce import fold
from dragoman.session.state import AnyEntry, SessionState, UserEntry
from dragoman.store.base import Store
from dragoman.store.records import Lease, Snapshot, Status, StoredEvent

logger = logging.getLogger("dragoman.hub")

WORTH_A_SNAPSHOT = 2_000
"""Events that may have to be folded before it pays to have it done once and for all."""

_PAGE = 2_000
_ENTRIES = 200
"""Of a snapshot, that are decoded at once."""

_FOLD = f"{__version__}, one question"
"""Which fold made a snapshot: another one may come to something else."""

# JSON, as the events are: MessagePack has no integers beyond 64 bits, and agents send some.
_encoder = msgspec.json.Encoder()


class _Saved(msgspec.Struct, array_like=True):
    """The entries are apart, some at a time: reading many of them at once would hold up everybody
    else, also from a thread."""

    version: str
    state: msgspec.Raw
    entries: list[msgspec.Raw]


@cache
def _decoder() -> msgspec.json.Decoder[SessionState]:
    """Made when it is first needed: it takes some milliseconds, which a start does not have."""
    return msgspec.json.Decoder(SessionState)


@cache
def _entries_decoder() -> msgspec.json.Decoder[list[AnyEntry]]:
    return msgspec.json.Decoder(list[AnyEntry])


_saved = msgspec.json.Decoder(_Saved)


def snapshot_of(state: SessionState) -> Snapshot:
    entries = state.entries
    parts = [entries[at : at + _ENTRIES] for at in range(0, len(entries), _ENTRIES)]
    saved = _Saved(
        _FOLD,
        msgspec.Raw(_encoder.encode(msgspec.structs.replace(state, entries=[]))),
        [msgspec.Raw(_encoder.encode(part)) for part in parts],
    )
    return Snapshot(state.last_seq, _encoder.encode(saved))


async def stored_state(store: Store, session_id: str) -> SessionState:
    """In pages, so that opening a long session does not hold up the others."""
    return await _folded(store, session_id, await _from_snapshot(store, session_id))


async def state_to_go_on(store: Store, lease: Lease) -> SessionState:
    """The same for an owner, who saves what took long: the next one shall have it sooner."""
    state = await _from_snapshot(store, lease.session_id)
    known = state.last_seq
    await _folded(store, lease.session_id, state)
    if state.last_seq - known >= max(WORTH_A_SNAPSHOT, known // 4):
        snapshot = written_snapshot(lease.session_id, state)
        if snapshot is not None:
            await store.save_snapshot(lease, snapshot)
    return state


def written_snapshot(session_id: str, state: SessionState) -> Snapshot | None:
    """None for a state that cannot be written: it is folded from its events each time, which does
    not make it fail."""
    try:
        return snapshot_of(state)
    except Exception:
        logger.exception("session %s continues without a snapshot", session_id)
        return None


async def _folded(store: Store, session_id: str, state: SessionState) -> SessionState:
    while events := await store.events(session_id, after=state.last_seq, limit=_PAGE):
        fold(state, readable(events))
        state.last_seq = events[-1].seq
    return state


def readable(events: list[StoredEvent]) -> Iterator[Event]:
    for event in events:
        try:
            yield event.decode()
        except (msgspec.DecodeError, RecursionError) as error:
            # Of another version, or torn from a damaged database: kept, and no reason to stop here.
            logger.warning("event %d of %s was skipped: %s", event.seq, event.session_id, error)


async def _from_snapshot(store: Store, session_id: str) -> SessionState:
    snapshot = await store.snapshot(session_id)
    if snapshot is None:
        return SessionState()
    try:
        saved = _saved.decode(snapshot.body)
        if saved.version == _FOLD:
            return await _decoded(saved)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        logger.info("the snapshot of session %s is unreadable and was skipped", session_id)
    return SessionState()  # the events have it all


async def _decoded(saved: _Saved) -> SessionState:
    state = _decoder().decode(saved.state)
    for part in saved.entries:
        state.entries += _entries_decoder().decode(part)
        await asyncio.sleep(0)
    return state


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
