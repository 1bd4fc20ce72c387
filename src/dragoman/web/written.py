"""What a session had us write, as its events tell it: also in a process that has just begun to run
it, and without what was undone since."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from dragoman.host.changes import Change
from dragoman.session.events import FileReverted, FileWritten, TurnStarted
from dragoman.store.base import Store
from dragoman.web.by_type import events_of_types

_TYPES = ("turn_started", "file_written", "file_reverted")


class Written:
    """Fed with the events of a session in order."""

    def __init__(self) -> None:
        self._turn: str | None = None
        self._writes: dict[str, list[tuple[str | None, FileWritten]]] = {}
        self._ever: set[tuple[str | None, str]] = set()

    def feed(self, event: object) -> None:
        match event:
            case TurnStarted():
                self._turn = event.turn_id
            case FileWritten():
                self._ever.add((self._turn, event.path))
                self._writes.setdefault(event.path, []).append((self._turn, event))
            case FileReverted():
                self._undo(event)
            case _:
                pass

    def _undo(self, event: FileReverted) -> None:
        """Nothing that came behind it is a change any more either."""
        turns = [turn for turn, _ in self._writes.get(event.path, [])]
        if event.turn_id is None:
            self._writes.pop(event.path, None)
        elif event.turn_id in turns:
            del self._writes[event.path][turns.index(event.turn_id) :]

    def has(self, turn_id: str | None, path: str) -> bool:
        """Whether we wrote this file in that turn, whatever became of it."""
        return (turn_id, path) in self._ever

    def changes(self, turn_id: str | None) -> list[Change]:
        """One for each file that is different now: of one turn, or of all."""
        found: dict[str, Change] = {}
        for path, writes in self._writes.items():
            for turn, event in writes:
                if turn_id in (None, turn):
                    note(found, path, event.before, event.after)
        return [change for change in found.values() if change.is_change]


async def read_written(store: Store, session_id: str) -> Written:
    written = Written()
    async for stored in events_of_types(store, session_id, _TYPES):
        with suppress(msgspec.DecodeError):  # of another version, or damaged
            written.feed(stored.decode())
    return written


def note(found: dict[str, Change], path: str, before: str | None, after: str) -> None:
    """Add a change of a file to those before."""
    old = None if before is None else before.encode("utf-8", "replace")
    new = Change(path, old, after.encode("utf-8", "replace"), before is not None)
    found[path] = new if path not in found else found[path].then(new)
