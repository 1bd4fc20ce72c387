"""Whether the last turn of a session failed, from how its turns ended on record.

No record of a session says it, and a list of sessions must not fold them: the end of each is read,
once, and then only what came since.
"""

from __future__ import annotations

import msgspec

from dragoman.session.events import TurnEnded
from dragoman.store.base import Store
from dragoman.store.by_type import events_of_types
from dragoman.store.records import SessionRecord, StoredEvent

_WINDOW = 32
"""A turn's end stands at the end of a session at rest, but for a few facts."""
_LOOK_BACK = 20_000


class _Known(msgspec.Struct):
    """How far a session was read, and what was found."""

    seq: int
    failed: bool


class Endings:
    """Keeps what it has read of each session that was asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}

    async def failed(self, record: SessionRecord) -> bool:
        """Of a session at work it is not known yet."""
        if record.status in ("running", "waiting"):
            return False
        known = self._known.get(record.id)
        if known is None or known.seq > record.last_seq:
            known = _Known(record.last_seq, await self._read_back(record))
        elif known.seq < record.last_seq:
            since = await self._read(record.id, known.seq, record.last_seq)
            known = _Known(record.last_seq, known.failed if since is None else since)
        self._known[record.id] = known
        return known.failed

    async def _read_back(self, record: SessionRecord) -> bool:
        window, end = _WINDOW, record.last_seq
        while end > max(0, record.last_seq - _LOOK_BACK):
            start = max(0, end - window)
            found = await self._read(record.id, start, end)
            if found is not None:
                return found
            end, window = start, window * 8
        return False

    async def _read(self, session_id: str, after: int, until: int) -> bool | None:
        """What the last turn that ended in between says; None where none did."""
        found: bool | None = None
        ended = events_of_types(self._store, session_id, ["turn_ended"], after=after, until=until)
        async for stored in ended:
            found = _has_failed(stored)
        return found


def _has_failed(stored: StoredEvent) -> bool:
    """One that is damaged, or of another version, says nothing of a failure."""
    try:
        event = stored.decode()
    except msgspec.DecodeError:
        return False
    return isinstance(event, TurnEnded) and event.error is not None
