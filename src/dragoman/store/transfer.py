"""Copies one store into another through their common interface: sessions, events and rules.

Existing data is kept: a copy that is incomplete or out of date is continued. A session that runs,
or is taken or deleted meanwhile, is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import msgspec

from dragoman.errors import LeaseLost, NameTaken, SessionOwned, UnknownSession
from dragoman.store.base import LEASE_SECONDS, Store, renewed_leases
from dragoman.store.records import (
    Batch,
    Lease,
    Owner,
    SessionChange,
    SessionFilter,
    SessionRecord,
    readable_events,
)
from dragoman.store.search_texts import Texts

_PAGE = 1000


class Copied(msgspec.Struct):
    """What was copied; `remarks` says what was not, and why."""

    sessions: int = 0
    events: int = 0
    rules: int = 0
    remarks: list[str] = []


async def copy_store(
    source: Store,
    target: Store,
    owner: Owner,
    home: str | None,
    lease_seconds: float = LEASE_SECONDS,
) -> Copied:
    """`owner` is who copies: it holds each session of the target meanwhile. `home` is where the
    workspaces are of sessions that name no other, in a target that several machines have."""
    copied = Copied()
    async with renewed_leases(target, owner, lease_seconds):
        async for session_id in _sessions(source):
            try:
                record = await _at_rest(source, session_id)
                record.home = None if target.is_local else record.home or home
                await _copy_session(source, target, record, owner, copied, lease_seconds)
            except (SessionOwned, LeaseLost, UnknownSession) as error:
                copied.remarks.append(f"{session_id} was skipped: {error}")
    await asyncio.to_thread(_copy_rules, source, target, copied)
    return copied


def _copy_rules(source: Store, target: Store, copied: Copied) -> None:
    """A rule that allows something on another machine would allow it here in a store without
    machines: it is left out there."""
    known = {stored.rule.id for stored in target.rules.load()}
    for stored in source.rules.load():
        if stored.rule.id in known:
            continue
        if not stored.here and (target.is_local or stored.home is None):
            reason = "it does not apply on this machine"
            copied.remarks.append(f"the rule {stored.rule.id} was skipped: {reason}")
            continue
        target.rules.add(stored.rule, stored.home)
        copied.rules += 1


async def _sessions(store: Store) -> AsyncIterator[str]:
    """Each once, by its id. The list is gone through until it has nothing new: a session in which
    something happens meanwhile comes to its top, and would be passed over."""
    seen: dict[str, None] = {}
    while new := dict.fromkeys(each for each in await _listed(store) if each not in seen):
        seen |= new
        for session_id in new:
            yield session_id


async def _listed(store: Store) -> list[str]:
    found: list[str] = []
    while some := await _behind(store, found):
        found += [record.id for record in some]
    return found


async def _behind(store: Store, found: Sequence[str]) -> list[SessionRecord]:
    """The next page: after the last of those that is still there."""
    for session_id in reversed(found):
        with suppress(UnknownSession):
            return await store.sessions(SessionFilter(limit=_PAGE, before=session_id))
    return await store.sessions(SessionFilter(limit=_PAGE))


async def _at_rest(store: Store, session_id: str) -> SessionRecord:
    """Raises UnknownSession, SessionOwned."""
    if (runs := await store.owner(session_id)) is not None:
        raise SessionOwned(session_id, f"process {runs.pid}")
    record = await store.session(session_id)
    if record is None:
        raise UnknownSession(session_id)
    return record


async def _copy_session(
    source: Store,
    target: Store,
    record: SessionRecord,
    owner: Owner,
    copied: Copied,
    lease_seconds: float,
) -> None:
    there = await target.session(record.id)
    if there is not None and not await _is_beginning(source, target, there):
        copied.remarks.append(f"{record.id} was skipped: another session has that id")
        return
    if there is None:
        there = await _create(target, record, copied)
    elif there.last_seq >= record.last_seq:
        return
    lease = await target.acquire(record.id, owner, seconds=lease_seconds, gone=lambda _: None)
    try:
        copied.events += await _copy_events(source, target, lease, there.last_seq)
        snapshot = await source.snapshot(record.id)
        if snapshot is not None:
            await target.save_snapshot(lease, snapshot)
        await target.change_session(record.id, _standing(record))
    finally:
        await target.release(lease)
    copied.sessions += 1


async def _is_beginning(source: Store, target: Store, there: SessionRecord) -> bool:
    """Whether the last event that is there is the one of the source."""
    if not there.last_seq:
        return True
    last = there.last_seq - 1
    mine = await source.events(there.id, after=last, limit=1)
    theirs = await target.events(there.id, after=last, limit=1)
    return bool(mine and theirs) and mine[0].body == theirs[0].body


async def _create(target: Store, record: SessionRecord, copied: Copied) -> SessionRecord:
    new = msgspec.structs.replace(record, last_seq=0)
    try:
        await target.create_session(new)
    except NameTaken:
        copied.remarks.append(f"{record.id} was copied without its name: {record.name} is taken")
        new.name = None
        await target.create_session(new)
    return new


async def _copy_events(source: Store, target: Store, lease: Lease, known: int) -> int:
    """Those behind `known`; all are looked at, since a message may have begun before it."""
    texts, after = Texts(), 0
    while events := await source.events(lease.session_id, after=after, limit=_PAGE):
        said = texts.feed([*readable_events(event.body for event in events)])
        new = [event for event in events if event.seq > known]
        if new:
            said = [each for each in said if each.seq > known]
            bodies = [event.body for event in new]
            await target.append(lease, Batch(first_seq=new[0].seq, events=bodies, said=said))
        after = events[-1].seq
    if after > known and (said := texts.rest()):
        await target.append(lease, Batch(first_seq=after + 1, events=[], said=said))
    return max(after - known, 0)


def _standing(record: SessionRecord) -> SessionChange:
    return SessionChange(**{name: getattr(record, name) for name in _UNTOLD})


_UNTOLD = ("title", "renamed", "status", "archived", "updated_at", "agent_session_id")
"""The fields of a record that the events do not say."""
