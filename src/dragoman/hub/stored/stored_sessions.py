"""Finds a stored session, and folds its events: its state, its summary, its earlier entries.

Each is as it was when it left the state: later updates about it began another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import cache, partial
from typing import TypeVar

import msgspec

from dragoman._version import __version__
from dragoman.errors import AmbiguousSession, UnknownSession
from dragoman.session.events import Event
from dragoman.session.reduce import fold, reduce
from dragoman.session.state import AnyEntry, SessionState, UserEntry
from dragoman.session.state_limits import LIMITS, ROW, Limits
from dragoman.store.base import Store, event_pages
from dragoman.store.records import (
    Lease,
    SessionChange,
    SessionFilter,
    SessionRecord,
    Snapshot,
    Status,
    StoredEvent,
    decode_events,
)

logger = logging.getLogger("dragoman.hub")

T = TypeVar("T")

WORTH_A_SNAPSHOT = 2_000
"""Events that may have to be folded before it pays to have it done once and for all."""

_PORTION = 64 << 10
_EVENT = 512
"""What is decoded and folded at once: so many bytes, where each event and each entry costs
something in addition to its own. Many small values are the dearest: some ten milliseconds."""

_FOLD = f"{__version__}, camelCase"
"""Which fold made a snapshot: another one may come to something else."""

MOST_SAVED = 2 * LIMITS.thread
"""Bytes of the entries in a snapshot. A session with more has none and is folded from its events:
to save characters that take two to six bytes in JSON would take several times what they do."""

# JSON, as the events are: MessagePack has no integers beyond 64 bits, and agents send some.
_encoder = msgspec.json.Encoder()


class _Saved(msgspec.Struct, array_like=True):
    """The entries are apart, some at a time: reading many of them at once would hold up everyone
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


class _TooMuchToSave(Exception):
    pass


def snapshot_of(state: SessionState) -> Snapshot:
    """The JSON of a `_Saved`, written in one place: encoded at once it would be there twice."""
    body = bytearray(_encoder.encode([_FOLD]))
    body[-1:] = b","
    _encoder.encode_into(msgspec.structs.replace(state, entries=[]), body, -1)
    body += b",["
    most = len(body) + MOST_SAVED
    separator = b""
    for part in _portions(state.entries, lambda entry: _EVENT + entry.size):
        body += separator
        separator = b","
        _encoder.encode_into(part, body, -1)
        if len(body) > most:
            raise _TooMuchToSave
    body += b"]]"
    return Snapshot(state.last_seq, body)


async def stored_state(store: Store, session_id: str) -> SessionState:
    """In pages, so that opening a long session does not hold up the others."""
    return await _folded(store, session_id, await _from_snapshot(store, session_id))


class StoredStates:
    """States for readers, who do not change them: those who ask at the same time share one fold."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folding: dict[str, asyncio.Task[SessionState]] = {}

    async def of(self, record: SessionRecord) -> SessionState:
        """At least as new as a record that was just read."""
        if (begun := self._folding.get(record.id)) is not None:
            state = await asyncio.shield(begun)
            if state.last_seq >= record.last_seq:
                return state
        return await asyncio.shield(self._folding.get(record.id) or self._begin(record.id))

    def _begin(self, session_id: str) -> asyncio.Task[SessionState]:
        """Not cancelled with one who asked for it: others may wait for it too."""
        task = asyncio.create_task(stored_state(self._store, session_id))
        self._folding[session_id] = task
        task.add_done_callback(partial(self._ended, session_id))
        return task

    def _ended(self, session_id: str, task: asyncio.Task[SessionState]) -> None:
        del self._folding[session_id]
        if not task.cancelled():
            task.exception()  # all who waited may be gone

    async def aclose(self) -> None:
        folding = list(self._folding.values())
        for task in folding:
            task.cancel()
        await asyncio.gather(*folding, return_exceptions=True)


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
    """None for a state that is too large or cannot be written: it is folded from its events each
    time, which does not make it fail."""
    try:
        return snapshot_of(state)
    except _TooMuchToSave:
        return None
    except Exception:
        logger.exception("session %s continues without a snapshot", session_id)
        return None


async def _folded(store: Store, session_id: str, state: SessionState) -> SessionState:
    async for events in event_pages(store, session_id, after=state.last_seq):
        for portion in _portions(events, _cost):
            await _in_turn(lambda some: fold(state, readable(some)), portion)
        state.last_seq = events[-1].seq
    return state


async def _in_turn(work: Callable[[Sequence[StoredEvent]], T], portion: Sequence[StoredEvent]) -> T:
    """After others have had theirs; what is large in a thread, where they have it meanwhile."""
    if _cost(portion[0]) > _PORTION:
        return await asyncio.to_thread(work, portion)
    await asyncio.sleep(0)
    return work(portion)


def _cost(event: StoredEvent) -> int:
    return _EVENT + len(event.body)


def _portions(items: Sequence[T], cost: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Between them others have their turn; what is large is alone in one."""
    first = size = 0
    for at, each in enumerate(map(cost, items)):
        if size + each > _PORTION and at > first:
            yield items[first:at]
            first, size = at, 0
        size += each
    if items:
        yield items[first:]


def readable(events: Sequence[StoredEvent]) -> Iterable[Event]:
    try:
        return decode_events(events)
    except (msgspec.DecodeError, RecursionError):
        return _readable_ones(events)


def _readable_ones(events: Iterable[StoredEvent]) -> Iterator[Event]:
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
    if state.parked is not None:
        return "waiting" if state.parked.resumes_at is None else "parked"
    return "interrupted" if state.turns and state.turns[-1].interrupted else "idle"


def title_of(state: SessionState) -> str | None:
    """What the agent calls the session, else the beginning of what was first asked for, as long as
    that is at hand."""
    if state.title or state.entries_before:
        return state.title
    first = next((entry for entry in state.entries if isinstance(entry, UserEntry)), None)
    line = "" if first is None else first.text.strip().split("\n", 1)[0]
    return f"{line[: _MAX_TITLE - 1]}…" if len(line) > _MAX_TITLE else line or None


def described(record: SessionRecord, state: SessionState, now: float) -> SessionChange:
    """What the list of sessions should say, in the record too."""
    record.status = status_of(state)
    record.updated_at = now
    record.agent_session_id = state.session_id or record.agent_session_id
    if not record.renamed:
        record.title = title_of(state) or record.title
    return SessionChange(
        status=record.status,
        updated_at=record.updated_at,
        agent_session_id=record.agent_session_id,
        title=record.title,
    )


KEPT_SECONDS = 60.0
"""How long the entries that someone asked for stay at hand, since he may continue to older ones."""


async def whole_thread(
    store: Store, session_id: str, limits: Limits = LIMITS, subagent: str | None = None
) -> AsyncGenerator[AnyEntry]:
    """All entries of a session, or of a subagent of it, from its first on, however many: no more
    are held than a state does."""
    state, nothing = SessionState(), SessionState()
    held: deque[AnyEntry] = deque()
    given = 0

    def gone(portion: Sequence[StoredEvent]) -> list[AnyEntry]:
        """What leaves the state with these events."""
        first, thread = given, state if subagent is None else nothing
        for event in readable(portion):
            reduce(state, event, limits)
            if subagent is not None:
                child = state.subagents.get(subagent)
                thread = nothing if child is None else child.thread
            fresh = thread.entry_count - first - len(held)
            held.extend(thread.entries[len(thread.entries) - fresh :] if fresh > 0 else ())
        return [held.popleft() for _ in range(thread.entries_before - first)]

    async with aclosing(event_pages(store, session_id)) as pages:
        async for events in pages:
            for portion in _portions(events, _cost):
                for entry in await _in_turn(gone, portion):
                    given += 1
                    yield entry
    for entry in held:
        yield entry


class Past:
    """Reads earlier entries on request; the range that was read last is cached for a while."""

    def __init__(self, store: Store, limits: Limits = LIMITS) -> None:
        self._store = store
        self._limits = limits
        self._key: tuple[str, str | None] | None = None
        self._first = 0
        self._entries: list[AnyEntry] = []
        self._reading = asyncio.Lock()
        self._forgetting: asyncio.TimerHandle | None = None

    async def entries(
        self, session_id: str, before: int, count: int, subagent: str | None = None
    ) -> Sequence[AnyEntry]:
        """At most so many entries, the last of those before the one numbered `before`; only for
        those that have left the state."""
        async with self._reading:
            if not self._has((session_id, subagent), before):
                await self._read((session_id, subagent), before)
            self._keep_a_while()
            end = before - self._first
            return self._entries[max(0, end - count) : end]

    def _has(self, key: tuple[str, str | None], before: int) -> bool:
        last = self._first + len(self._entries)
        return key == self._key and self._first < before <= last

    async def _read(self, key: tuple[str, str | None], before: int) -> None:
        """As much as a state would hold."""
        self.forget()
        found: deque[AnyEntry] = deque()
        size = number = 0
        told = whole_thread(self._store, key[0], self._limits, key[1])
        async with aclosing(told) as thread:
            async for entry in thread:
                if number == before:
                    break
                number += 1
                found.append(entry)
                size += ROW + entry.size
                while len(found) > self._limits.entries or size > self._limits.thread:
                    if len(found) == 1:
                        break
                    size -= ROW + found.popleft().size
        self._key, self._entries = key, list(found)
        self._first = number - len(found)

    def _keep_a_while(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
        loop = asyncio.get_running_loop()
        self._forgetting = loop.call_later(KEPT_SECONDS, self.forget)

    def forget(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
            self._forgetting = None
        self._key, self._first, self._entries = None, 0, []


_MANY = 10_000
_SHORTEST_BEGINNING = 4


async def find_session(store: Store, word: str, cwd: str | None = None) -> SessionRecord:
    """By what is most exact; a name counts in its folder, and elsewhere when it is the only one.

    Of several records of the agent's session the one used last is meant. Raises UnknownSession
    when there is none, AmbiguousSession when there is more than one.
    """
    if (record := await store.session(word)) is not None:
        return record
    if cwd is not None and (found := await store.sessions(SessionFilter(name=word, cwd=cwd))):
        return found[0]
    if found := await store.sessions(SessionFilter(agent_session_id=word)):
        return found[0]
    named = await store.sessions(SessionFilter(name=word))
    return _only(word, named or await _by_beginning(store, word))


def _only(word: str, found: list[SessionRecord]) -> SessionRecord:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownSession(word)
    ids = ", ".join([*(record.id for record in found[:3]), *("…" for _ in found[3:4])])
    raise AmbiguousSession(word, f"{word} matches {len(found)} sessions: {ids}")


async def _by_beginning(store: Store, word: str) -> list[SessionRecord]:
    everything = await store.sessions(SessionFilter(limit=_MANY))
    found = [record for record in everything if record.id.startswith(word)]
    if found and len(word) < _SHORTEST_BEGINNING:
        begin = "a session begins" if len(found) == 1 else f"{len(found)} sessions begin"
        raise AmbiguousSession(word, f"{word} is ambiguous: {begin} with it")
    return found
