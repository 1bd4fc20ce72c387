"""What a session had us write, as its events tell it: also what another process wrote for it, and
without what was undone since."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import msgspec

from dragoman.host.changes import Change, Changes
from dragoman.session.events import FileReverted, FileWritten, TurnStarted
from dragoman.store.base import Store
from dragoman.store.by_type import events_of_types

_TYPES = ("turn_started", "file_written", "file_reverted")


class Written:
    """Fed with the events of a session in order, its journal is the one of whoever wrote."""

    def __init__(self) -> None:
        self.changes = Changes()
        self._ever: set[tuple[str | None, str]] = set()

    def feed(self, event: object) -> None:
        match event:
            case TurnStarted():
                self.changes.turn = event.turn_id
            case FileWritten():
                turn = self.changes.turn
                self._ever.add((turn, event.path))
                change = as_change(event.path, event.before, event.after, turn=turn)
                self.changes.record(change if event.kept else _over_unknown(change))
            case FileReverted():
                listed = self.changes.list(event.turn_id)
                self.changes.forget(change for change in listed if change.path == event.path)
            case _:
                pass

    def has(self, turn_id: str | None, path: str) -> bool:
        """Whether we wrote this file in that turn, whatever became of it."""
        return (turn_id, path) in self._ever


async def read_written(store: Store, session_id: str, *, until: int | None = None) -> Written:
    """Up to the event of that number, or to the last."""
    written = Written()
    async for stored in events_of_types(store, session_id, _TYPES, until=until):
        with suppress(msgspec.DecodeError):  # of another version, or damaged
            written.feed(stored.decode())
    return written


def as_change(path: str, before: str | None, after: str, *, turn: str | None = None) -> Change:
    """A change as it was told, in text."""
    old = None if before is None else before.encode("utf-8", "replace")
    return Change(path, old, after.encode("utf-8", "replace"), before is not None, turn)


def _over_unknown(change: Change) -> Change:
    return replace(change.without_contents(), existed=True)
