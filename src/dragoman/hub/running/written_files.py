"""The files written for a session, according to its events.

They include what another process wrote for it, and leave out what was reverted since.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from dragoman.host.workspace.changes import MAX_CHANGES, MAX_KEPT_BYTES, Change
from dragoman.session.events import (
    FileReverted,
    FileWritten,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from dragoman.session.state import AnyEntry, ToolCall
from dragoman.store.base import Store, events_of_types
from dragoman.store.records import SessionRecord

Found: TypeAlias = dict[tuple[bool, str], Change]
"""By whether an import tells of it, and the path."""
MAX_PATH = 4096
"""Characters: no file has a longer name."""
TYPES = ("session_opened", "turn_started", "turn_ended", "file_written", "file_reverted")


class Written:
    """The files a session wrote, from its events in order. With `opened_as`, only those after the
    session was first opened under that id: a fork starts with the events of its parent.

    Beyond `max_kept_bytes`, the oldest contents are dropped. Beyond `MAX_CHANGES`, the newest
    changes are left out, and it is not `complete`.
    """

    def __init__(
        self, opened_as: str | None = None, *, max_kept_bytes: int = MAX_KEPT_BYTES
    ) -> None:
        self.complete = True
        self._opened_as = opened_as
        self._is_own = opened_as is None
        self._turn: str | None = None
        self._room = max_kept_bytes
        self._count = 0
        self._sequence = 0
        self._files: dict[tuple[bool, str], list[Change]] = {}
        """What became of each file, in order: one change for all writes of a turn."""
        self._kept: deque[tuple[bool, str]] = deque()
        """The file of each change, the oldest first: as often as it has contents that are kept."""
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
                self._note(event)
            case FileReverted():
                self._undo(event)
            case _:
                pass

    def _note(self, write: FileWritten) -> None:
        if len(write.path) > MAX_PATH:
            return
        if len(self._ever) < MAX_CHANGES:
            self._ever.add((self._turn, write.path))
        key = (write.imported, write.path)
        changes = self._files.get(key, [])
        if changes and changes[-1].turn == self._turn:
            self._set(changes, -1, changes[-1].then(_change(self._turn, write)))
        elif self._count < MAX_CHANGES:
            self._add(key, _change(self._turn, write))
        else:
            self.complete = False
            if changes:  # what it became is not known
                self._set(changes, -1, changes[-1].without_contents())
        while self._room < 0:
            self._let_go_of_oldest()

    def _add(self, key: tuple[bool, str], change: Change) -> None:
        self._count += 1
        self._sequence += 1
        self._room -= change.size
        self._kept.append(key)
        change = msgspec.structs.replace(change, sequence=self._sequence)
        self._files.setdefault(key, []).append(change)

    def _set(self, changes: list[Change], at: int, change: Change) -> None:
        self._room += changes[at].size - change.size
        changes[at] = change

    def _let_go_of_oldest(self) -> None:
        changes = self._files.get(self._kept.popleft(), [])
        kept = (at for at, change in enumerate(changes) if change.is_kept)
        if (oldest := next(kept, None)) is not None:
            self._set(changes, oldest, changes[oldest].without_contents())

    def _undo(self, event: FileReverted) -> None:
        """Nothing that came after it counts as a change either."""
        for is_imported in (False, True):
            changes = self._files.get((is_imported, event.path), [])
            turns = (at for at, each in enumerate(changes) if event.turn_id in (None, each.turn))
            if (first := next(turns, None)) is not None:
                self._room += sum(change.size for change in changes[first:])
                self._count -= len(changes) - first
                del changes[first:]

    def has(self, turn_id: str | None, path: str) -> bool:
        """Whether we wrote this file in that turn, whatever became of it."""
        return (turn_id, path) in self._ever

    def changes(self, turn_id: str | None) -> list[Change]:
        """One for each file that is different now: of one turn, or of all. What an import tells
        of a file stands for itself."""
        found: Found = {}
        for change in self._in_order():
            if turn_id in (None, change.turn):
                note(found, change)
        return [change for change in found.values() if change.is_change]

    def to_undo(self) -> list[Change]:
        """Each change, in order; what an import tells is not known to have happened."""
        changes = self._in_order()
        return [each.without_contents() if each.is_imported else each for each in changes]

    def _in_order(self) -> list[Change]:
        changes = (change for file in self._files.values() for change in file)
        return sorted(changes, key=lambda change: change.sequence)


async def read_own(store: Store, record: SessionRecord, *, until: int | None = None) -> Written:
    """Of a fork, not what the session wrote that it came from."""
    opened_as = None if record.parent is None else record.agent_session_id
    return await read_written(store, record.id, until=until, opened_as=opened_as)


async def read_written(
    store: Store, session_id: str, *, until: int | None = None, opened_as: str | None = None
) -> Written:
    """Up to the event of that number, or to the last."""
    written = Written(opened_as)
    async for stored in events_of_types(store, session_id, TYPES, until=until):
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
            if len(path) > MAX_PATH or len(found) >= MAX_CHANGES:
                continue
            if not written.has(call.turn_id, path):
                by_file = call.seq <= imported
                change = as_change(path, diff.old_text, diff.new_text, imported=by_file)
                room -= change.size
                note(found, change if room > 0 else change.without_contents())
    return [change for change in found.values() if change.is_change]


def _absolute(cwd: str, path: str) -> str:
    return os.path.normpath(os.path.join(cwd, path))


def as_change(path: str, before: str | None, after: str, *, imported: bool) -> Change:
    """A change as reported, in text."""
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
