"""Undoes what happened in the folders of a session, at once or after its turn.

One that no process runs is not opened for it: its agent is not needed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import msgspec

from dragoman.client.sessions.folder_tracker import FolderTracker, new_restore_id
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.session_log import SessionLog
from dragoman.errors import DragomanError
from dragoman.host.snapshots import timeline as t
from dragoman.host.snapshots.snapshots import Reverted, Snapshots, undo_of
from dragoman.host.snapshots.undo_plan import Choices
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
    found = FolderHistory(t.Timeline(opened_as), Written())
    imported = 0 if record.imported is None else record.imported.events
    kinds = tuple(dict.fromkeys((*TYPES, *t.TYPES)))
    async for stored in events_of_types(store, record.id, kinds):
        with suppress(msgspec.DecodeError):  # of another version, or damaged
            event = stored.decode()
            found.written.feed(event)
            if stored.seq > imported:
                found.timeline.feed(event)
    return found


logger = logging.getLogger("dragoman.hub")

_WAITS = "the revert waits for the end of the turn"


class Restores:
    """For one session, with its tracker."""

    def __init__(self, session: Session, tracker: FolderTracker) -> None:
        self._session = session
        self._tracker = tracker
        self._waiting: set[asyncio.Task[None]] = set()

    def has(self, step_id: str | None) -> bool:
        """Whether there are snapshots of this turn or restore, or of any."""
        return self._tracker.timeline.has_snapshots(step_id)

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
            wanted.turn_id,
            paths=wanted.paths,
            hunks=wanted.hunks,
            force=wanted.force,
            choices=wanted.choices,
            restore_id=restore_id,
            since=wanted.since,
        )
        return _reply(done)

    async def _later(self, command: c.Revert | c.Restore, restore_id: str) -> None:
        try:
            await self._revert(command, restore_id)
        except asyncio.CancelledError:
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
    roots = (record.cwd, *record.additional_directories)
    if (ended := await snapshots.end_cut(timeline, roots, record.id, written)) is not None:
        log.record(ended)
    undo = undo_of(
        timeline,
        wanted.turn_id,
        paths=wanted.paths,
        hunks=wanted.hunks,
        choices=Choices(wanted.choices, wanted.force),
        since=wanted.since,
    )
    done = await snapshots.restore(
        undo, written, restore_id=new_restore_id(), session_id=record.id, record=log.record
    )
    for notice in done.notices():
        log.record(notice)
    return _reply(done)


def _restore(command: c.Revert | c.Restore) -> c.Restore:
    if isinstance(command, c.Restore):
        return command
    return c.Restore(command.turn_id, command.force, command.paths)


def _reply(done: Reverted) -> c.Reply:
    return {"paths": done.paths, "kept": done.kept, "restore": done.restore_id, "waits": False}
