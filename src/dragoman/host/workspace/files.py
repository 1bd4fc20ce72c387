"""Files as an agent sees them: `fs/read_text_file` and `fs/write_text_file` on the real disk.

Whether a request is allowed was decided before; here the jail, the limits and the encoding
have their say. Refusals are `RemoteError`s, ready to be sent. Knows nothing of the wire.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Protocol

import msgspec

from dragoman.errors import InvalidParams, RemoteError
from dragoman.host.rules.globs import is_within
from dragoman.host.serial_worker import Lane
from dragoman.host.workspace.atomic import Existing, existing, read_up_to, replace
from dragoman.host.workspace.changes import Change, Changes, revert
from dragoman.host.workspace.jail import Jail, Target, real_path, real_roots, recognise, refusal
from dragoman.host.workspace.roots import Workspace

MAX_BYTES = 10 << 20
# Reading this much takes less time than handing it to another thread and back.
INLINE_BYTES = 256 << 10
_BLOCK = 4_096
# A session has one workspace, and another for each folder outside that it was let into.
MAX_DESKS = 32

_logger = logging.getLogger("dragoman.host")


class FilesProvider(Protocol):
    """Reads and writes text files for an agent, once that has been allowed.

    Raises ResourceNotFound for a missing file; InvalidParams for a path outside the workspace, or a
    file that is too large or not text; InternalError, with the reason, if the system refuses.
    """

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        """The lines from `line` (the first is 1), at most `limit`, byte for byte."""
        ...

    async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None: ...


class Changed(Exception):
    """The file, or what is around it, is not what it was when someone looked at it; says how."""


class Found(msgspec.Struct, frozen=True):
    """A file as someone was shown it: its text, None where there was no file; or why it cannot
    be shown, and a mark that is another one once the file is."""

    text: str | None
    unseen: str = ""
    mark: tuple[int, ...] | None = None

    def is_still(self, old: Existing | None) -> bool:
        if self.unseen:
            return old is not None and self.mark == _mark(old.status)
        if old is None or self.text is None:
            return old is None and self.text is None
        return old.content == self.text.encode()


class _Desk(msgspec.Struct, frozen=True):
    """What the files of one workspace are worked on with."""

    readable: Jail
    writable: Jail
    lane: Lane
    changes: Changes


class _Session(msgspec.Struct, frozen=True):
    lane: Lane
    changes: Changes
    desks: dict[Workspace, _Desk]


class LocalFiles:
    """The default provider: the disk, beneath the session's roots or beneath `roots`.

    With `read_outside`, or with no root at all, reads may go anywhere but `forbidden`; writes
    never leave the roots, so without a root there are none.
    """

    def __init__(
        self,
        *,
        roots: Sequence[str] | None = None,
        read_outside: bool = False,
        max_bytes: int = MAX_BYTES,
        forbidden: Sequence[str] = (),
    ) -> None:
        self._roots = roots
        self._read_anywhere = read_outside or (roots is not None and not roots)
        self._max_bytes = max_bytes
        self._forbidden = tuple(forbidden)
        recognise(self._forbidden)
        self._sessions: dict[str, _Session] = {}

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        """Beyond the last line there is empty text; the whole file must be text and within the
        limit, whatever part of it is asked for."""
        try:
            _check_window(path, line, limit)
            return await self._read(self._desk(workspace), path, line, limit)
        except RemoteError as error:
            _logger.debug("read refused: %r", error.message)
            raise

    async def write_text_file(
        self,
        workspace: Workspace,
        path: str,
        content: str,
        *,
        written: Callable[[str | None, bool], None] | None = None,
        expected: Found | None = None,
        within: AbstractContextManager[None] | None = None,
    ) -> None:
        """Replace the file as a whole or not at all; writes of a session happen in the order
        in which they are asked for. Raises Changed if it is not what is expected.

        What happens on the disk happens `within` this, when the writes before it are done.

        `written` receives the text that was replaced, if there was any, and whether the file is
        new, once it has happened: also when the caller has given up by then.
        """
        try:
            desk = self._desk(workspace)
            turn = desk.changes.turn
            loop = asyncio.get_running_loop()

            def job() -> int:
                with within or nullcontext():
                    change = self._write(desk, path, content, turn, expected)
                if written is not None:
                    before, created = self._replaced(change), not change.existed
                    with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                        loop.call_soon_threadsafe(written, before, created)
                return len(change.after)

            size = await desk.lane.run(job)
        except RemoteError as error:
            _logger.debug("write refused: %r", error.message)
            raise
        _logger.debug("write %r: %d bytes", path, size)

    def changes(self, workspace: Workspace) -> Changes:
        """What the session has written; set its `turn` when a turn begins."""
        return self._desk(workspace).changes

    def recall(self, workspace: Workspace, earlier: Sequence[Change]) -> None:
        """Have these writes, from before all that was recorded here, listed and undone as well,
        as far as they are inside the workspace."""
        roots = real_roots(workspace)
        inside = [each for each in earlier if any(is_within(each.path, root) for root in roots)]
        self.changes(workspace).follow(inside)

    async def revert(
        self,
        workspace: Workspace,
        *,
        turn: str | None = None,
        paths: Collection[str] | None = None,
        force: bool = False,
    ) -> tuple[Change, ...]:
        """Undo the session's writes, or those of one turn or to some paths; what was undone.

        Raises RevertConflict, and undoes nothing, where someone else has changed a file since.
        """
        desk = self._desk(workspace)
        wanted = None if paths is None else {real_path(path) for path in paths}

        def job() -> tuple[Change, ...]:
            listed = desk.changes.list(turn)
            chosen = tuple(change for change in listed if wanted is None or change.path in wanted)
            revert(desk.writable, desk.changes, chosen, force=force)
            return chosen

        return await desk.lane.run(job)

    def forget(self, session_id: str) -> None:
        """The session is over: let go of what it changed."""
        self._sessions.pop(session_id, None)

    def _desk(self, workspace: Workspace) -> _Desk:
        session = self._sessions.get(workspace.session_id)
        if session is None:
            session = self._sessions[workspace.session_id] = _Session(Lane(), Changes(), {})
        if workspace in session.desks:
            return session.desks[workspace]
        roots = workspace.places if self._roots is None else self._roots
        desk = _Desk(
            Jail(("/",) if self._read_anywhere else roots, forbidden=self._forbidden),
            Jail(roots, forbidden=self._forbidden),
            session.lane,
            session.changes,
        )
        if len(session.desks) < MAX_DESKS:
            session.desks[workspace] = desk
        return desk

    async def _read(self, desk: _Desk, path: str, line: int | None, limit: int | None) -> str:
        # Behind a write that is still under way, so that it is seen.
        if not desk.lane.is_busy:
            descriptor = desk.readable.open_file(path)
            try:
                if os.fstat(descriptor).st_size <= INLINE_BYTES:
                    return _window(self._text(descriptor, path), line, limit)
            finally:
                os.close(descriptor)
        return await desk.lane.run(lambda: _window(self._read_now(desk, path), line, limit))

    def _read_now(self, desk: _Desk, path: str) -> str:
        descriptor = desk.readable.open_file(path)
        try:
            return self._text(descriptor, path)
        finally:
            os.close(descriptor)

    def _text(self, descriptor: int, path: str) -> str:
        self._check_size(path, os.fstat(descriptor).st_size)
        content = read_up_to(descriptor, self._max_bytes + 1)
        self._check_size(path, len(content))
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise refusal(InvalidParams, path, "not text", size=len(content)) from None
        if "\0" in text:
            raise refusal(InvalidParams, path, "not text", size=len(content))
        _logger.debug("read %r: %d bytes", path, len(content))
        return text

    def target(self, workspace: Workspace, path: str) -> AbstractContextManager[Target]:
        """What a write works on, checked as any write is; the folders it needs are made."""
        return self._desk(workspace).writable.target(path, create=True)

    def mark(self, workspace: Workspace, path: str) -> tuple[int, ...] | None:
        """What tells this file from another, or from itself once it is changed; None without."""
        with suppress(RemoteError), self._desk(workspace).writable.target(path) as target:
            return _mark(os.stat(target.name, dir_fd=target.directory, follow_symlinks=False))
        return None

    def _write(
        self, desk: _Desk, path: str, content: str, turn: str | None, expected: Found | None
    ) -> Change:
        try:
            after = content.encode()
        except UnicodeEncodeError:
            raise refusal(InvalidParams, path, "not text") from None
        self._check_size(path, len(after))
        with desk.writable.target(path, create=True) as target:
            # What there is no room for is read one byte too far, so that it is not kept; what
            # was written here before is read whole, so that it is recognised.
            old = existing(target, max(desk.changes.room, self._max_bytes))
            if expected is not None and not expected.is_still(old):
                raise Changed("was changed while the question waited")
            replace(target, after, old)
            before = None if old is None else old.content
            change = Change(target.path, before, after, existed=old is not None, turn=turn)
            desk.changes.record(change, target.made)
        return change

    def _replaced(self, change: Change) -> str | None:
        before = change.before
        if before is None or len(before) > self._max_bytes or b"\0" in before:
            return None
        try:
            return before.decode()
        except UnicodeDecodeError:
            return None

    def _check_size(self, path: str, size: int) -> None:
        if size > self._max_bytes:
            raise refusal(InvalidParams, path, "too large", size=size, limit=self._max_bytes)


def _mark(status: os.stat_result) -> tuple[int, ...]:
    times = status.st_mtime_ns, status.st_ctime_ns
    return status.st_dev, status.st_ino, status.st_size, *times


def _check_window(path: str, line: int | None, limit: int | None) -> None:
    if line is not None and line < 1:
        raise refusal(InvalidParams, path, "line numbers start at 1", line=line)
    if limit is not None and limit < 0:
        raise refusal(InvalidParams, path, "a limit cannot be negative", limit=limit)


def _window(text: str, line: int | None, limit: int | None) -> str:
    start = _after_lines(text, 0, (line or 1) - 1)
    return text[start:] if limit is None else text[start : _after_lines(text, start, limit)]


def _after_lines(text: str, position: int, count: int) -> int:
    """Where so many more lines have ended. Lines are counted by the block, and only those of the
    last block one by one: there may be millions."""
    while count > 0 and position < len(text):
        lines = text.count("\n", position, position + _BLOCK)
        if lines >= count:
            return _after_few_lines(text, position, count)
        count -= lines
        position += _BLOCK
    return min(position, len(text))


def _after_few_lines(text: str, position: int, count: int) -> int:
    for _ in range(count):
        position = text.find("\n", position) + 1
    return position
