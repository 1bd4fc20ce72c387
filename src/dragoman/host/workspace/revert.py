"""Undoes what a session wrote, through the same jail, and only what is still as it was left.

All files are looked at before any is touched; if one fails half way, those already undone are
put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from dragoman.errors import RemoteError, ResourceNotFound, RevertConflict
from dragoman.host.workspace.atomic import existing, remove, replace
from dragoman.host.workspace.changes import Change, Changes
from dragoman.host.workspace.jail import Jail, Resolved

_NOT_KEPT = "the original was too large to keep, or not text"
_GROWN = "someone else's changes made it too large to revert"
_CHANGED = "it has changed since"
_DISTURBED = "someone else changed it between the agent's writes"

# How much larger than both of its known contents a file may be and still be undone by force.
_ROOM = 1 << 20


class _Undo(msgspec.Struct, frozen=True):
    """A change to take back, what is in its place now, and what speaks against it."""

    change: Change
    now: bytes | None
    objection: str = ""


def revert(jail: Jail, journal: Changes, changes: Sequence[Change], *, force: bool = False) -> None:
    """Give every file of `changes` the content it had before. With `force`, also those that
    someone else has changed."""
    undos = [_look(jail, change, force) for change in changes]
    reasons = {undo.change.path: undo.objection for undo in undos if undo.objection}
    if reasons:
        raise RevertConflict(reasons)
    _apply(jail, undos)
    gone = [change.path for change in changes if not change.existed]
    removed = jail.remove_directories(journal.directories_above(gone))
    journal.forget(changes, removed)


def _look(jail: Jail, change: Change, force: bool) -> _Undo:
    if not change.is_kept:
        return _Undo(change, None, _NOT_KEPT)
    most = change.size + _ROOM
    try:
        now = _content(jail, change.path, most)
    except RemoteError as error:
        return _Undo(change, None, error.message)
    if now == change.before or (now == change.after and not change.is_disturbed):
        return _Undo(change, now)
    if now is not None and len(now) > most:
        return _Undo(change, None, _GROWN)
    if force:
        return _Undo(change, now)
    return _Undo(change, None, _DISTURBED if now == change.after else _CHANGED)


def _apply(jail: Jail, undos: Sequence[_Undo]) -> None:
    done: list[_Undo] = []
    try:
        for undo in undos:
            _set_content(jail, undo.change.path, undo.change.before, expected=undo.now)
            done.append(undo)
    except BaseException:
        for undo in reversed(done):
            with suppress(RemoteError, RevertConflict):
                _set_content(jail, undo.change.path, undo.now, expected=undo.change.before)
        raise


def _content(jail: Jail, path: str, most: int) -> bytes | None:
    """What is there now, None for nothing; one byte more than `most` when it is larger."""
    try:
        with jail.target(Resolved(path)) as target:
            old = existing(target, most)
    except ResourceNotFound:
        return None
    return None if old is None else old.content


def _set_content(jail: Jail, path: str, content: bytes | None, *, expected: bytes | None) -> None:
    if content == expected:
        return
    with jail.target(Resolved(path), create=content is not None) as target:
        old = existing(target, len(expected or b""))
        if (None if old is None else old.content) != expected:
            raise RevertConflict({path: _CHANGED})
        if content is None:
            remove(target)
        else:
            replace(target, content, old)
