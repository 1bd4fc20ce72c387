"""Endpoints for what happened in a session's folders: changes, and the way back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import aclosing
from typing import Literal

from dragoman.host.rules.protected import protection
from dragoman.host.snapshots.folder_changes import ChangedFile, FolderChanges
from dragoman.host.snapshots.line_history import FileComparison
from dragoman.host.workspace.changes import MAX_CHANGES, Change
from dragoman.host.workspace.diffs import MAX_WORK
from dragoman.hub.cluster import commands as c
from dragoman.hub.running.written_files import read_written, told_changes
from dragoman.session.facts import fields_of
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.shapes.session_shapes import (
    ChangesQuery,
    FileChange,
    FileChanges,
    RevertAnswer,
    RevertBody,
    RewindAnswer,
    RewindBody,
)

_LARGEST_TEXT = 1024 * 1024
_LARGEST_ANSWER = 8 * 1024 * 1024
"""Characters of all changes in one answer."""
_ROW = 256
"""What a file counts for in it, in addition to what is reported of it."""
_TOO_MUCH = "Not shown: too large for one response\n"
_OF_ALL_TURNS = "Not shown: too large for one response; request a single turn\n"
_MOST_WORK = 20_000_000
"""Pairs of lines that are compared for one answer: seconds."""


# ── what was changed ──────────────────────────────────────────────────────────────────────────


async def changes(server: Server, session_id: str, query: ChangesQuery) -> FileChanges:
    found = await server.hub.folders.changes(session_id, query.turn_id)
    if not found.tracked:
        shown = await _known(server, session_id, query)
        shown.problems, shown.left_out = found.problems, found.left_out
        return shown
    root = (await server.hub.record(session_id)).cwd
    too_much = _OF_ALL_TURNS if query.turn_id is None else _TOO_MUCH
    return await asyncio.to_thread(_tracked, found, root, too_much)


def _tracked(found: FolderChanges, root: str, too_much: str) -> FileChanges:
    """As many as have room in an answer; the contents and the hunks of a file only if they do."""
    shown = FileChanges(
        changes=[],
        complete=found.complete,
        tracked=True,
        live=found.live,
        problems=found.problems,
        left_out=found.left_out,
    )
    room = _LARGEST_ANSWER
    for file in found.files:
        room -= _ROW + len(file.path)
        if room < 0:
            shown.complete = False
            break
        shape = _file_shape(file, root)
        if 2 * _size(shape) > room:
            shape.before = shape.after = None
            shape.diff, shape.hunks = too_much, []
        room -= 2 * _size(shape)  # the hunks say the same as the diff
        shown.changes.append(shape)
    return shown


def _file_shape(file: ChangedFile, root: str) -> FileChange:
    return FileChange(
        **fields_of(file, FileComparison),
        source=file.source,
        existed=file.existed,
        diff=file.diff(root),
        revertible="imported" not in file.by,
    )


async def _known(server: Server, session_id: str, query: ChangesQuery) -> FileChanges:
    """Without snapshots: what Dragoman wrote, and what the agent told."""
    record = await server.hub.record(session_id)
    written = await read_written(server.hub.store, session_id)
    ours = written.changes(query.turn_id)
    known = {(change.is_imported, change.path) for change in ours}
    cwd = (await server.hub.state(session_id)).cwd
    async with aclosing(server.hub.thread(session_id)) as thread:
        told = await told_changes(record, thread, cwd, query.turn_id, written)
    rest = [each for each in told if (each.is_imported, each.path) not in known]
    too_much = _OF_ALL_TURNS if query.turn_id is None else _TOO_MUCH
    # An agent chooses how much there is to compare.
    shown = await asyncio.to_thread(_shapes, ours, rest, record.cwd, too_much)
    shown.complete = shown.complete and written.complete and len(told) < MAX_CHANGES
    return shown


def _shapes(
    ours: Sequence[Change], told: Sequence[Change], root: str, too_much: str
) -> FileChanges:
    """As many as have room in an answer; the contents and the diff of a file only if they do, else
    `too_much`."""
    work = min(MAX_WORK, _MOST_WORK // max(len(ours) + len(told), 1))
    shapes: list[FileChange] = []
    room = _LARGEST_ANSWER
    for change in (*ours, *told):
        room -= _ROW + len(change.path)
        if room < 0:
            return FileChanges(changes=shapes, complete=False)
        source = "host" if len(shapes) < len(ours) else "agent"
        shape = _shape(change, source, root, work, room, too_much)
        room -= _size(shape)
        shapes.append(shape)
    return FileChanges(changes=shapes)


def _shape(
    change: Change,
    source: Literal["host", "agent"],
    root: str,
    work: int,
    room: int,
    too_much: str,
) -> FileChange:
    by = "imported" if change.is_imported else source
    shape = FileChange(
        path=str(change.path),  # what was opened is a kind of text that JSON does not know
        source=by,
        existed=change.existed,
        diff=too_much,
        status="modified" if change.existed else "added",
        by=[by],
        turns=[] if change.turn is None else [change.turn],
        protected=protection(str(change.path)),
        revertible=by == "host" and change.is_kept,
    )
    if change.is_kept and change.size <= min(_LARGEST_TEXT, room):
        shape.before, shape.after = _text(change.before), _text(change.after)
    diff = change.diff(root, work=work)
    if len(diff) + _size(shape) <= room:
        shape.diff = diff
    return shape


def _size(shape: FileChange) -> int:
    return len(shape.diff) + len(shape.before or "") + len(shape.after or "")


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


# ── the way back ──────────────────────────────────────────────────────────────────────────────


async def revert(server: Server, session_id: str, body: RevertBody) -> RevertAnswer:
    _must_be_absolute(body.paths or ())
    command: c.Command = c.Revert(body.turn_id, body.force, body.paths)
    if body.hunks is not None or body.choices:
        command = c.Restore(
            body.turn_id, body.force, body.paths, hunks=body.hunks, choices=body.choices
        )
    reply = await server.hub.send(session_id, command)
    return RevertAnswer(
        paths=reply["paths"],
        kept=reply.get("kept") or None,
        restore_id=reply.get("restore"),
        waits=reply.get("waits", False),
        delayed=reply.get("delayed"),
    )


def _must_be_absolute(paths: Sequence[str]) -> None:
    for path in paths:
        if not os.path.isabs(path):
            raise RequestFailed(
                400, "invalid", f"expected the absolute path of a file, not {path!r}"
            )


async def rewind(server: Server, session_id: str, body: RewindBody) -> RewindAnswer:
    done = await server.hub.folders.rewind(
        session_id,
        body.turn_id,
        files=body.files,
        conversation=body.conversation,
        summary=body.summary,
        force=body.force,
        choices=body.choices,
    )
    return RewindAnswer(**fields_of(done, RewindAnswer))
