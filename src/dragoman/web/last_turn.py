"""How the last turn of a session ended, from its stored events.

The record of a session does not have it, and a list of sessions must not fold them all: the last
events of each are read once, and then only newer ones.
"""

from __future__ import annotations

import msgspec

from dragoman.session.events import Event, TurnCancelling, TurnEnded
from dragoman.session.state import Ending, ending_of
from dragoman.store.base import Store, events_of_types
from dragoman.store.records import SessionRecord, StoredEvent

_WINDOW = 32
"""A turn's end is at the end of a session at rest, except for a few facts."""
_LOOK_BACK = 20_000
_TYPES = ("turn_cancelling", "turn_ended")


class Ended(msgspec.Struct, frozen=True):
    """How a turn ended, and whether with an error."""

    ending: Ending
    failed: bool


class _Known(msgspec.Struct):
    """How far a session was read, and what was found."""

    seq: int
    last: Ended | None


class Endings:
    """Keeps what it has read of each session that was asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}

    async def last(self, record: SessionRecord) -> Ended | None:
        """None before the first; of a session at work it is not known yet."""
        if record.status in ("running", "waiting"):
            return None
        known = self._known.get(record.id)
        if known is None or known.seq > record.last_seq:
            known = _Known(record.last_seq, await self._read_back(record))
        elif known.seq < record.last_seq:
            since = await self._read(record.id, known.seq, record.last_seq)
            known = _Known(record.last_seq, since or known.last)
        self._known[record.id] = known
        return known.last

    async def _read_back(self, record: SessionRecord) -> Ended | None:
        window, end = _WINDOW, record.last_seq
        while end > max(0, record.last_seq - _LOOK_BACK):
            start = max(0, end - window)
            found = await self._read(record.id, start, end)
            if found is not None:
                return found
            end, window = start, window * 8
        return None

    async def _read(self, session_id: str, after: int, until: int) -> Ended | None:
        """How the last turn ended that did in between; None where none did."""
        found: Ended | None = None
        stopped: str | None = None
        read = events_of_types(self._store, session_id, _TYPES, after=after, until=until)
        async for stored in read:
            match _decoded(stored):
                case TurnCancelling(turn_id):
                    stopped = turn_id
                case TurnEnded() as event:
                    cancelled = event.stop_reason == "cancelled" or event.turn_id == stopped
                    ending = ending_of(event, cancelled=cancelled)
                    found = Ended(ending, event.error is not None)
                case _:
                    pass
        return found


def _decoded(stored: StoredEvent) -> Event | None:
    """One that is damaged, or of another version, says nothing."""
    try:
        return stored.decode()
    except msgspec.DecodeError:
        return None
