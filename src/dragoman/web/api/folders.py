"""Endpoints for what happened in a session's folders: changes, and the way back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from dragoman.host.snapshots.folder_changes import ChangedFile, FolderChanges
from dragoman.host.snapshots.line_history import FileComparison
from dragoman.hub.cluster import commands as c
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

_LARGEST_ANSWER = 8 * 1024 * 1024
"""Characters of all changes in one answer."""
_ROW = 256
"""What a file counts for in it, in addition to what is reported of it."""
_TOO_MUCH = "Not shown: too large for one response\n"
_OF_ALL_TURNS = "Not shown: too large for one response; request a single turn\n"


# ── what was changed ──────────────────────────────────────────────────────────────────────────


async def changes(server: Server, session_id: str, query: ChangesQuery) -> FileChanges:
    found = await server.hub.folders.changes(session_id, query.turn_id)
    root = (await server.hub.record(session_id)).cwd
    too_much = _OF_ALL_TURNS if query.turn_id is None else _TOO_MUCH
    return await asyncio.to_thread(_shapes, found, root, too_much)


def _shapes(found: FolderChanges, root: str, too_much: str) -> FileChanges:
    """As many as have room in an answer; the contents and the hunks of a file only if they do."""
    fields = fields_of(found, FolderChanges)
    files: list[ChangedFile] = fields.pop("files")
    shown = FileChanges(changes=[], **fields)
    room = _LARGEST_ANSWER
    for file in files:
        room -= _ROW + len(file.path)
        if room < 0:
            shown.complete = False
            break
        shape = _file_shape(file, root, is_tracked=found.tracked)
        if 2 * _size(shape) > room:
            shape.before = shape.after = None
            shape.diff, shape.hunks = too_much, []
        room -= 2 * _size(shape)  # the hunks say the same as the diff
        shown.changes.append(shape)
    return shown


def _file_shape(file: ChangedFile, root: str, *, is_tracked: bool) -> FileChange:
    """Without snapshots only whole files that Dragoman wrote can be undone."""
    fields = fields_of(file, FileComparison)
    if not is_tracked:
        fields["hunks"] = []
    return FileChange(
        **fields,
        source=file.source,
        existed=file.existed,
        diff=file.diff(root),
        revertible="imported" not in file.by and (is_tracked or _is_ours(file)),
    )


def _is_ours(file: ChangedFile) -> bool:
    return file.source == "host" and not file.binary


def _size(shape: FileChange) -> int:
    return len(shape.diff) + len(shape.before or "") + len(shape.after or "")


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
