"""The changes of a session: what its writes replaced, kept for diffs and reverts.

Pure memory, within a bound: what does not fit is listed but cannot be undone. The code that writes
a file records it here; `revert` has the way back. Safe to use from several threads.

All files are looked at before any is touched; if one fails half way, those already undone are
put back.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

import msgspec

from dragoman.errors import RemoteError, ResourceNotFound, RevertConflict
from dragoman.host.workspace.atomic import existing, remove, replace
from dragoman.host.workspace.diffs import unified_diff
from dragoman.host.workspace.jail import Jail, Resolved, reason_of

MAX_KEPT_BYTES = 64 << 20
MAX_CHANGES = 10_000


class Change(msgspec.Struct, frozen=True):
    """One file before and after. `before` is None if there was no file.

    If `is_kept` is false, both contents are missing, because they were too large. `is_disturbed`
    says that someone else changed the file between two of the writes. `is_imported` says that only
    an imported file reports the change.
    """

    path: str
    before: bytes | None
    after: bytes
    existed: bool
    turn: str | None = None
    sequence: int = 0
    is_kept: bool = True
    is_disturbed: bool = False
    is_imported: bool = False

    @property
    def is_change(self) -> bool:
        """Whether the file differs at the end."""
        return not self.is_kept or self.before != self.after

    @property
    def size(self) -> int:
        return len(self.before or b"") + len(self.after)

    def then(self, later: Change) -> Change:
        """Both as one change: `before` of this one, and `after` of the later one."""
        if not (self.is_kept and later.is_kept):
            return self.without_contents()
        disturbed = self.is_disturbed or later.is_disturbed or later.before != self.after
        return msgspec.structs.replace(self, after=later.after, is_disturbed=disturbed)

    def without_contents(self) -> Change:
        return msgspec.structs.replace(self, before=None, after=b"", is_kept=False)

    def diff(self, root: str = "", *, work: int | None = None) -> str:
        """A unified diff, with names relative to `root` if they are beneath it."""
        name = _name(self.path, root.rstrip("/") + "/")
        old_name = f"a/{name}" if self.existed else "/dev/null"
        if not self.is_kept:
            return f"Contents of b/{name} were not kept: too large, or not text\n"
        try:
            before, after = (self.before or b"").decode(), self.after.decode()
        except UnicodeDecodeError:
            return f"Binary files {old_name} and b/{name} differ\n"
        return unified_diff(before, after, old_name, f"b/{name}", work=work)


class Changes:
    """The changes of one session, in the order in which each file was first written.

    `turn` labels what is written from now on; `omitted` counts files beyond the bound.
    """

    def __init__(self, *, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self.turn: str | None = None
        self.omitted = 0
        self._max_kept_bytes = max_kept_bytes
        self._kept_bytes = 0
        self._sequence = 0
        self._by_turn_and_path: dict[tuple[str | None, str], Change] = {}
        self._directories: dict[str, None] = {}
        self._lock = threading.Lock()

    @property
    def room(self) -> int:
        """How many bytes can still be kept."""
        return self._max_kept_bytes - self._kept_bytes

    def record(self, change: Change, directories: Sequence[str] = ()) -> None:
        """Note a write that has happened, and the directories that were made for it."""
        key = (change.turn, change.path)
        with self._lock:
            is_new = key not in self._by_turn_and_path
            if is_new and len(self._by_turn_and_path) >= MAX_CHANGES:
                self.omitted += 1
                return
            self._sequence += 1
            self._directories.update(dict.fromkeys(directories))
            self._add(msgspec.structs.replace(change, sequence=self._sequence))

    def follow(self, earlier: Sequence[Change]) -> None:
        """Put these writes, in their order, before all that was recorded here. A file is left out
        when not everything about it is there, or fits: it could not be put back."""
        with self._lock:
            fitting = self._fitting(earlier)
            later, self._by_turn_and_path = self._by_turn_and_path, {}
            for number, change in enumerate(fitting, 1):
                self._add(msgspec.structs.replace(change, sequence=number))
            for change in later.values():
                self._kept_bytes -= change.size
                self._add(msgspec.structs.replace(change, sequence=change.sequence + len(fitting)))
            self._sequence += len(fitting)

    def _fitting(self, earlier: Sequence[Change]) -> Sequence[Change]:
        left_out = {change.path for change in earlier if not change.is_kept}
        room, places = self.room, MAX_CHANGES - len(self._by_turn_and_path)
        for change in reversed(earlier):
            room, places = room - change.size, places - 1
            if room < 0 or places < 0:
                left_out.add(change.path)
        return [change for change in earlier if change.path not in left_out]

    def _add(self, change: Change) -> None:
        known = self._by_turn_and_path.get((change.turn, change.path))
        self._keep(known, change if known is None else known.then(change))

    def list(self, turn: str | None = None) -> tuple[Change, ...]:
        """One change for each file that is different now: of one turn, or of all."""
        with self._lock:
            changes = [
                change
                for change in self._by_turn_and_path.values()
                if turn is None or change.turn == turn
            ]
        return tuple(change for change in _merged(changes) if change.is_change)

    def diff(self, turn: str | None = None, *, root: str = "") -> str:
        """All of it as one unified diff."""
        return "".join(change.diff(root) for change in self.list(turn))

    def directories_above(self, paths: Collection[str]) -> tuple[str, ...]:
        """Those made for writes that hold one of `paths`, outer ones first."""
        with self._lock:
            made = [d for d in self._directories if any(p.startswith(f"{d}/") for p in paths)]
        return tuple(sorted(made, key=len))

    def forget(self, changes: Iterable[Change], directories: Collection[str] = ()) -> None:
        """Forget changes that were undone, and everything that came after them."""
        undone = {change.path: change.sequence for change in changes}
        with self._lock:
            for directory in directories:
                self._directories.pop(directory, None)
            for key, change in tuple(self._by_turn_and_path.items()):
                if change.path in undone and change.sequence >= undone[change.path]:
                    del self._by_turn_and_path[key]
                    self._kept_bytes -= change.size

    def _keep(self, earlier: Change | None, change: Change) -> None:
        self._kept_bytes -= earlier.size if earlier else 0
        if self._kept_bytes + change.size > self._max_kept_bytes:
            change = change.without_contents()
        self._kept_bytes += change.size
        self._by_turn_and_path[change.turn, change.path] = change


def _name(path: str, prefix: str) -> str:
    name = path.removeprefix(prefix).lstrip("/")
    # A line feed in a name must not pass for a line of the diff.
    return name if name.isprintable() else ascii(name)


def _merged(changes: Iterable[Change]) -> Iterable[Change]:
    by_path: dict[str, Change] = {}
    for change in changes:
        earlier = by_path.get(change.path)
        by_path[change.path] = change if earlier is None else earlier.then(change)
    return by_path.values()


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
        can_be_forced = {_CHANGED, _DISTURBED}.issuperset(reasons.values())
        raise RevertConflict(reasons, by_force=can_be_forced)
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
        return _Undo(change, None, reason_of(error))
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
