"""Exports and imports a session as a file: the lines of its mirror.

What comes in is checked line by line before anything is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing, suppress
from typing import Any

import msgspec

from dragoman.errors import ConfigError, DragomanError, NameTaken, UnknownSession
from dragoman.session.events import Event, FileWritten, SessionOpened
from dragoman.session.limits.spending_limits import NO_LIMITS
from dragoman.session.reduce import fold
from dragoman.session.state import IMPORTED, SessionState, loose_ends
from dragoman.store.base import LEASE_SECONDS, Store, event_pages, renewed_leases
from dragoman.store.earlier_format import SNAKE_CASE
from dragoman.store.mirror_lines import (
    VERSION,
    Header,
    event_lines,
    header_line,
    header_version,
    is_header,
    read_body,
    read_header,
)
from dragoman.store.records import (
    LAST_MOMENT,
    Batch,
    Imported,
    Lease,
    Owner,
    SessionChange,
    SessionFilter,
    SessionRecord,
    decode_event,
    encode_event,
    status_at_rest,
)
from dragoman.store.search_texts import Texts

MAX_LINE = 64 * 1024 * 1024
_PORTION_BYTES = 1024 * 1024
_PORTION_EVENTS = 1_000
_LEFT_BEHIND: dict[str, Any] = {
    "archived": False,
    "home": None,
    "agent_session_id": None,
    "system_prompt": None,
    "limits": NO_LIMITS,
    "parent": None,
    "copied": 0,
}
"""What a record says of the place that it comes from, or may not choose here."""
_HEADER = f'the header of a session, {{"dragoman": {VERSION}, "session": {{…}}}}'


class Archive(msgspec.Struct):
    """The content of a file: the record, and every event as it was written there, in the present
    format."""

    record: SessionRecord
    events: list[bytes]


async def exported(store: Store, session_id: str) -> AsyncIterator[bytes]:
    """The lines of a session, each with its line feed. Raises UnknownSession."""
    record = await store.session(session_id)
    if record is None:
        raise UnknownSession(session_id)
    yield header_line(record)
    async with aclosing(event_pages(store, session_id)) as pages:
        async for events in pages:
            for event in events:
                yield event_lines([event.body])


def read_archive(lines: Iterable[bytes], file: str = "archive") -> Archive:
    """Raises ConfigError with the number of the first line that does not fit."""
    header: Header | None = None
    events: list[bytes] = []
    for number, raw in enumerate(lines, 1):
        place, line = f"line {number}", raw.rstrip(b"\r\n")
        if len(line) > MAX_LINE:
            raise ConfigError(file, place, f"a line of at most {MAX_LINE} bytes")
        if header is None or is_header(line):
            header = _header(line, file, place)
        else:
            body = read_body(line, header.dragoman)
            _check_event(body, len(events) + 1, file, place)
            events.append(body)
    if header is None:
        raise ConfigError(file, "line 1", _HEADER)
    return Archive(header.session, events)


async def import_session(
    store: Store,
    archive: Archive,
    session_id: str,
    owner: Owner,
    *,
    cwd: str = "",
    lease_seconds: float = LEASE_SECONDS,
) -> SessionRecord:
    """Store it under a new id, all or nothing; without its name where that is taken.

    A file does not choose what an agent does. Its system prompt and the prompts that wait in it are
    dropped, and what it left open is ended as interrupted. The folders that it names are not
    opened: it works in `cwd`, and has no workspace until a person gives it one. A conversation with
    the agent that another session here has is not this one's, and it is not a fork of a session
    here.

    Being imported is something that happens in it: it is not forgotten as if nothing had.

    A long one is written bit by bit, so that nobody waits for it. Its events are seen when all are
    there, and with them the agent's id for it: what is left of an import that was killed has
    neither, and is removed like any session that was never begun.
    """
    record = msgspec.structs.replace(
        archive.record,
        id=session_id,
        updated_at=store.now(),
        cwd=cwd,
        additional_directories=[],
        imported=_origin(archive),
        **_LEFT_BEHIND,
    )
    lease = await _begin(store, record, owner, lease_seconds)
    try:
        async with renewed_leases(store, owner, lease_seconds):
            await _fill(store, lease, archive)
    except BaseException:
        with suppress(DragomanError):
            await store.delete_session(session_id, lease)
        raise
    await store.release(lease)
    record = await store.session(session_id)
    if record is None:
        raise UnknownSession(session_id)
    return record


def _origin(archive: Archive) -> Imported:
    """Of one that was imported there too, and never had a folder: where that came from."""
    record = archive.record
    before = "" if record.imported is None else record.imported.cwd
    return Imported(record.cwd or before, len(archive.events))


async def _begin(store: Store, record: SessionRecord, owner: Owner, seconds: float) -> Lease:
    """Never without an owner: what a killed one leaves is found by its lease."""
    try:
        return await store.begin_session(record, owner, seconds=seconds)
    except NameTaken:
        nameless = msgspec.structs.replace(record, name=None)
        return await store.begin_session(nameless, owner, seconds=seconds)


async def _fill(store: Store, lease: Lease, archive: Archive) -> None:
    """A long file is folded in a thread: meanwhile the lease is renewed."""
    state = await asyncio.to_thread(fold, SessionState(), map(decode_event, archive.events))
    ends = _ends(archive, state)
    status = status_at_rest(archive.record.status, fold(state, map(decode_event, ends)))
    theirs = await _own_conversation(store, archive.record)
    change = SessionChange(agent_session_id=theirs, status=status)
    await store.fill(lease, _batches(archive, ends), change)


async def _own_conversation(store: Store, record: SessionRecord) -> str | None:
    """What the agent calls it, unless that is another session that is stored here."""
    if (theirs := record.agent_session_id) is None:
        return None
    wanted = SessionFilter(agent=record.agent, agent_session_id=theirs, limit=1)
    return None if await store.sessions(wanted) else theirs


def _batches(archive: Archive, ends: list[bytes]) -> Iterator[Batch]:
    texts, first = Texts(), 1
    for bodies in _portions(archive.events):
        events = [decode_event(body) for body in bodies]
        told = [_as_told(*each) for each in zip(bodies, events, strict=True)]
        yield Batch(first_seq=first, events=told, said=texts.feed(events))
        first += len(bodies)
    yield Batch(first_seq=first, events=ends, said=texts.rest())


def _portions(bodies: list[bytes]) -> Iterator[list[bytes]]:
    """As much as others may wait for."""
    some, size = list[bytes](), 0
    for body in bodies:
        if some and (size + len(body) > _PORTION_BYTES or len(some) == _PORTION_EVENTS):
            yield some
            some, size = [], 0
        some.append(body)
        size += len(body)
    if some:
        yield some


def _ends(archive: Archive, state: SessionState) -> list[bytes]:
    """A prompt that a file has waiting would run before the importer's first one, and nobody waits
    for an answer to its questions."""
    ends = loose_ends(state, IMPORTED)
    for seq, event in enumerate(ends, len(archive.events) + 1):
        event.seq, event.at = seq, decode_event(archive.events[-1]).at
    return [encode_event(event) for event in ends]


def _as_told(body: bytes, event: Event) -> bytes:
    """A write that a file tells of is nothing to undo: that would write whatever it says. Nor does
    a fence elsewhere hold anything here."""
    match event:
        case FileWritten():
            event.imported = True
        case SessionOpened(fence=str()):
            event.fence = event.network = None
        case _:
            return body
    return encode_event(event)


def _header(line: bytes, file: str, place: str) -> Header:
    version = header_version(line)
    if version is not None and not SNAKE_CASE <= version <= VERSION:
        raise ConfigError(file, place, f"an archive of version {VERSION} or earlier")
    try:
        header = read_header(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(file, place, f"{_HEADER} ({error})") from error
    for moment in (header.session.created_at, header.session.updated_at):
        _check_moment(moment, file, place)
    return header


def _check_event(line: bytes, seq: int, file: str, place: str) -> None:
    try:
        event = decode_event(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(file, place, f"a session event ({error})") from error
    if event.seq != seq:
        raise ConfigError(file, place, f"event number {seq}, not {event.seq}")
    _check_moment(event.at, file, place)


def _check_moment(seconds: float, file: str, place: str) -> None:
    if not 0 <= seconds <= LAST_MOMENT:
        raise ConfigError(file, place, f"a time between 1970 and 9999, not {seconds:g}")
