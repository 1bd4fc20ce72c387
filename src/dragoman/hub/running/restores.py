"""Undoes what happened in the folders of a session, at once or after its turn.

One that no process runs is not opened for it: its agent is not needed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Sequence
from contextlib import suppress

import msgspec

from dragoman.client.sessions.folder_tracker import FolderTracker, new_restore_id
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.session_log import SessionLog
from dragoman.data_directory import data_directory
from dragoman.errors import CommandRefused, DragomanError
from dragoman.host.gate import told_of
from dragoman.host.rules.globs import is_within
from dragoman.host.snapshots import timeline as t
from dragoman.host.snapshots.snapshots import Reverted, Snapshots, undo_of
from dragoman.host.snapshots.undo_plan import RevertOptions
from dragoman.host.workspace.changes import Change
from dragoman.host.workspace.files import LocalFiles
from dragoman.host.workspace.jail import found, real_roots
from dragoman.host.workspace.roots import Workspace
from dragoman.hub.cluster import commands as c
from dragoman.hub.running.written_files import TYPES, Written
from dragoman.session import events as e
from dragoman.store.base import Store, events_of_types
from dragoman.store.records import SessionRecord

# What is stored about the folders of a session: its snapshots, and what was written for it.


class FolderHistory(msgspec.Struct):
    """`timeline` has only what this session did on this machine: what an import tells of
    snapshots is someone else's."""

    timeline: t.Timeline
    written: Written


async def read_history(store: Store, record: SessionRecord) -> FolderHistory:
    opened_as = None if record.parent is None else record.agent_session_id
    history = FolderHistory(t.Timeline(opened_as), Written())
    imported = 0 if record.imported is None else record.imported.events
    kinds = tuple(dict.fromkeys((*TYPES, *t.TYPES)))
    async for stored in events_of_types(store, record.id, kinds):
        with suppress(msgspec.DecodeError):  # of another version, or damaged
            event = stored.decode()
            history.written.feed(event)
            if stored.seq > imported:
                history.timeline.feed(event)
    return history


logger = logging.getLogger("dragoman.hub")

_WAITS = "the revert waits for the end of the turn"


class Restores:
    """For one session, with its tracker."""

    def __init__(self, session: Session, tracker: FolderTracker) -> None:
        self._session = session
        self._tracker = tracker
        self._waiting: set[asyncio.Task[None]] = set()

    @property
    def timeline(self) -> t.Timeline:
        return self._tracker.timeline

    async def revert(self, command: c.Revert | c.Restore) -> c.Reply:
        """Raises RevertConflict."""
        restore_id = new_restore_id()
        if not self._session.busy:
            return await self._revert(command, restore_id)
        self._say(_WAITS)
        waiting = asyncio.create_task(self._later(command, restore_id))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        return {"paths": [], "kept": [], "restore": restore_id, "waits": True}

    async def _revert(self, command: c.Revert | c.Restore, restore_id: str) -> c.Reply:
        wanted = _restore(command)
        done = await self._tracker.revert(
            wanted.turn_id, restore_id=restore_id, since=wanted.since, **_options(wanted)
        )
        return _reply(done)

    async def _later(self, command: c.Revert | c.Restore, restore_id: str) -> None:
        try:
            await self._revert(command, restore_id)
        except asyncio.CancelledError:
            step = self.timeline.step(restore_id)
            if step is None or step.left_no_trace:
                self._say("nothing was reverted: the session was closed before the turn ended")
            raise
        except DragomanError as error:
            self._say(str(error))
        except Exception as error:
            logger.exception("a revert failed")
            self._say(f"nothing was reverted: {error}")

    def _say(self, sentence: str) -> None:
        self._session.log.record(e.Notice(sentence, "warning", source="client"))

    async def aclose(self) -> None:
        """What still waits is not done."""
        for task in tuple(self._waiting):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def revert_stored(
    command: c.Revert | c.Restore,
    record: SessionRecord,
    history: FolderHistory,
    log: SessionLog,
    snapshots: Snapshots,
) -> c.Reply:
    """Of a session that is ours and that nobody runs. Raises RevertConflict."""
    wanted, timeline, written = _restore(command), history.timeline, history.written.changes
    roots = tuple(map(os.path.realpath, (record.cwd, *record.additional_directories)))
    if (ended := await snapshots.end_cut(timeline, roots, record.id, written)) is not None:
        log.record(ended)
    undo = undo_of(timeline, wanted.turn_id, since=wanted.since, **_options(wanted))
    done = await snapshots.restore(
        undo, written, restore_id=new_restore_id(), session_id=record.id, record=log.record
    )
    for notice in done.notices():
        log.record(notice)
    return _reply(done)


# ── without snapshots ─────────────────────────────────────────────────────────────────────────

# Where there is no git, or the folder was not watched, what Dragoman wrote for the agent is undone.


async def revert_written(
    command: c.Revert | c.Restore, record: SessionRecord, written: Written, log: SessionLog
) -> c.Reply:
    """Of a session that is ours and that nobody runs. Raises RevertConflict."""
    folders = tuple(record.additional_directories)
    workspace = found(Workspace(record.id, record.cwd, folders))
    must_be_in_place(workspace, written.changes(command.turn_id), command.paths)
    files = LocalFiles(forbidden=[str(data_directory())])
    files.recall(workspace, written.to_undo())
    undone = await files.revert(
        workspace, turn=command.turn_id, paths=command.paths, force=command.force
    )
    for event in told_of(undone, command.turn_id):
        log.record(event)
    return {"paths": [str(change.path) for change in undone]}


def must_be_in_place(
    workspace: Workspace, written: Sequence[Change], paths: Collection[str] | None
) -> None:
    """Raises DragomanError where a folder of what was written is a link by now, which nothing is
    written through, and where all of it is outside the folders of today."""
    wanted = None if paths is None else {*paths, *map(os.path.realpath, paths)}
    own = [each.path for each in written if not each.is_imported]
    chosen = [path for path in own if wanted is None or path in wanted]
    roots = real_roots(workspace)
    outside = [path for path in chosen if not any(is_within(path, root) for root in roots)]
    for root in workspace.roots:
        if any(is_within(path, root) for path in outside):
            why = f"{root} was replaced by a link to another folder"
            raise DragomanError(f"nothing was reverted: {why}")
    if outside and outside == chosen:
        why = f"{outside[0]} is in none of the session's folders"
        raise DragomanError(f"nothing was reverted: {why}")


def must_be_whole_files(
    session_id: str, command: c.Revert | c.Restore, timeline: t.Timeline | None
) -> None:
    """Raises CommandRefused for what only snapshots can do."""
    if not isinstance(command, c.Restore):
        return
    if command.hunks is not None or command.since or command.choices:
        why = _problem(timeline, command) or "there are no snapshots of the folder"
        raise CommandRefused(session_id, "unsupported", f"nothing was reverted: {why}")


def must_be_something(
    session_id: str,
    reply: c.Reply,
    command: c.Revert | c.Restore,
    timeline: t.Timeline | None,
) -> c.Reply:
    """Raises CommandRefused where nothing was undone, and the agent may have done something by
    itself that nobody saw."""
    if not reply["paths"] and (why := _problem(timeline, command)):
        sentence = "nothing was reverted: Dragoman wrote nothing for the agent here, and"
        sentence += f" what the agent did by itself was not seen: {why}"
        raise CommandRefused(session_id, "unsupported", sentence)
    return reply


def _problem(timeline: t.Timeline | None, command: c.Revert | c.Restore) -> str:
    return "" if timeline is None else timeline.problem(command.turn_id)


def _restore(command: c.Revert | c.Restore) -> c.Restore:
    if isinstance(command, c.Restore):
        return command
    return c.Restore(command.turn_id, command.force, command.paths)


def _options(wanted: c.Restore) -> RevertOptions:
    return {
        "paths": wanted.paths,
        "hunks": wanted.hunks,
        "force": wanted.force,
        "choices": wanted.choices,
    }


def _reply(done: Reverted) -> c.Reply:
    return {"paths": done.paths, "kept": done.kept, "restore": done.restore_id, "waits": False}
