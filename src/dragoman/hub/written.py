"""What a session had us write, as its events tell it: also what another process wrote for it, and
without what was undone since."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from dragoman.host.changes import MAX_CHANGES, MAX_KEPT_BYTES, Change
from dragoman.session.events import (
    FileReverted,
    FileWritten,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from dragoman.session.state import AnyEntry, ToolCall
from dragoman.store.base import Store
from dragoman.store.by_type import events_of_types
from dragoman.store.records import SessionRecord

Found: TypeAlias = dict[tuple[bool, str], Change]
"""By whether an import tells of it, and the path."""
_TYPES = ("session_opened", "turn_started", "turn_ended", "file_written", "file_reverted")


class Written:
    """Fed with the events of a session in order. With `opened_as`, only what came behind the first
    opening under that id: a fork begins with what another session did."""

    def __init__(self, opened_as: str | None = None) -> None:
        self._opened_as = opened_as
        self._is_own = opened_as is None
        self._turn: str | None = None
        self._writes: list[tuple[str | None, FileWritten]] = []
        self._ever: set[tuple[str | None, str]] = set()

    def feed(self, event: object) -> None:
        match event:
            case SessionOpened():
                self._is_own = self._is_own or event.session_id == self._opened_as
            case TurnStarted():
                self._turn = event.turn_id
            case TurnEnded():
                self._turn = None
            case FileWritten() if self._is_own:
                self._ever.add((self._turn, event.path))
                self._writes.append((self._turn, event))
            case FileReverted():
                self._undo(event)
            case _:
                pass

    def _undo(self, event: FileReverted) -> None:
        """Nothing that came behind it is a change any more either."""
        numbers = [
            number
            for number, (turn, write) in enumerate(self._writes)
            if write.path == event.path and event.turn_id in (None, turn)
        ]
        if numbers:
            first, *_ = numbers
            rest = [each for each in self._writes[first:] if each[1].path != event.path]
            self._writes[first:] = rest

    def has(self, turn_id: str | None, path: str) -> bool:
        """Whether we wrote this file in that turn, whatever became of it."""
        return (turn_id, path) in self._ever

    def changes(self, turn_id: str | None) -> list[Change]:
        """One for each file that is different now: of one turn, or of all. What an import tells
        of a file stands for itself."""
        found: Found = {}
        for turn, write in self._writes:
            if turn_id in (None, turn):
                note(found, _change(turn, write))
        return [change for change in found.values() if change.is_change]

    def to_undo(self) -> list[Change]:
        """Each write, in order; what an import tells is not known to have happened."""
        changes = (_change(turn, write) for turn, write in self._writes)
        return [each.without_contents() if each.is_imported else each for each in changes]


async def read_written(
    store: Store, session_id: str, *, until: int | None = None, opened_as: str | None = None
) -> Written:
    """Up to the event of that number, or to the last."""
    written = Written(opened_as)
    async for stored in events_of_types(store, session_id, _TYPES, until=until):
        with suppress(msgspec.DecodeError):  # of another version, or damaged
            written.feed(stored.decode())
    return written


async def told_changes(
    record: SessionRecord,
    thread: AsyncIterable[AnyEntry],
    cwd: str,
    turn_id: str | None,
    written: Written,
) -> list[Change]:
    """What the agent says it changed, without what it had us write: that is known for certain. The
    contents of more than `MAX_KEPT_BYTES`, and of more than `MAX_CHANGES` files, are left out."""
    found: Found = {}
    room = MAX_KEPT_BYTES
    imported = 0 if record.imported is None else record.imported.events
    async for call in thread:
        if not isinstance(call, ToolCall) or call.status != "completed":
            continue
        for diff in call.diffs if turn_id in (None, call.turn_id) else ():
            path = _absolute(cwd, diff.path)
            if not written.has(call.turn_id, path) and len(found) < MAX_CHANGES:
                by_file = call.seq <= imported
                change = as_change(path, diff.old_text, diff.new_text, imported=by_file)
                room -= change.size
                note(found, change if room > 0 else change.without_contents())
    return [change for change in found.values() if change.is_change]


def _absolute(cwd: str, path: str) -> str:
    return os.path.normpath(os.path.join(cwd, path))


def as_change(path: str, before: str | None, after: str, *, imported: bool) -> Change:
    """A change as it was told, in text."""
    old = None if before is None else before.encode("utf-8", "replace")
    new = after.encode("utf-8", "replace")
    return Change(path, old, new, before is not None, is_imported=imported)


def note(found: Found, change: Change) -> None:
    """Add a change of a file to those before."""
    key = (change.is_imported, change.path)
    found[key] = change if key not in found else found[key].then(change)


def _change(turn: str | None, write: FileWritten) -> Change:
    told = as_change(write.path, write.before, write.after, imported=write.imported)
    change = msgspec.structs.replace(told, turn=turn)
    if write.before is not None or write.created:
        return change
    return msgspec.structs.replace(change.without_contents(), existed=True)
