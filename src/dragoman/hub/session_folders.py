"""What happened in the folders of sessions: changes, the way back, and what is kept for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.client.sessions.session_log import SessionLog
from dragoman.errors import (
    CommandRefused,
    DragomanError,
    SessionBusy,
    SessionElsewhere,
    SessionOwned,
)
from dragoman.host.snapshots.folder_changes import ChangedFile, FolderChanges, known_changes
from dragoman.host.snapshots.journal import RestoreJournal
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.host.snapshots.undo_plan import Choice
from dragoman.host.workspace.changes import MAX_CHANGES, Change
from dragoman.hub.cluster import commands as c
from dragoman.hub.opener import Opener
from dragoman.hub.rewound_sessions import (
    Before,
    Continuity,
    Rewound,
    begun_again,
    forked,
    said_before,
)
from dragoman.hub.running.event_recorder import EventRecorder
from dragoman.hub.running.restores import (
    FolderHistory,
    must_be_something,
    must_be_whole_files,
    read_history,
    revert_stored,
    revert_written,
)
from dragoman.hub.running.running_session import RunningSession, refused
from dragoman.hub.running.written_files import read_own, told_changes
from dragoman.hub.stored.stored_sessions import status_of
from dragoman.session import events as e
from dragoman.session.facts import Author, RootSnapshot
from dragoman.store.records import SessionChange, SessionRecord

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub


logger = logging.getLogger("dragoman.hub")

_PEEK_SECONDS = 2.0
"""How long a look at a folder that an agent works in is good for."""


_FINISHED = "a revert was interrupted when its process ended, and has been finished now"


class Folders:
    """For the sessions of one hub; without `snapshots`, only what passed through it is known."""

    def __init__(self, hub: Hub, opener: Opener, snapshots: Snapshots | None) -> None:
        self.snapshots = snapshots
        self._hub = hub
        self._opener = opener
        self._peeks: dict[str, tuple[float, list[RootSnapshot]]] = {}
        self._finishing: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.snapshots is not None:
            self._finishing = asyncio.create_task(self._finish(self.snapshots))

    async def _finish(self, snapshots: Snapshots) -> None:
        """Restores that a killed process left half done; then what is due."""
        try:
            for journal in await snapshots.finish_left():
                await self._tell_finished(journal)
        except Exception:
            logger.exception("a restore could not be finished")
        await self.maintain()

    async def _tell_finished(self, journal: RestoreJournal) -> None:
        """On record of its session, if that is stored here."""
        left = [f"{path} was not restored: {reason}" for path, reason in journal.left.items()]
        with suppress(DragomanError):
            for sentence in (_FINISHED, *left):
                await self._tell(journal.session_id, sentence, "warning")

    async def maintain(self) -> None:
        """Once a day, drop snapshots that are too old, and pack what is left."""
        try:
            if self.snapshots is not None:
                await self.snapshots.maintain()
        except Exception:
            logger.exception("old snapshots could not be deleted")

    async def aclose(self) -> None:
        if self._finishing is not None:
            self._finishing.cancel()
            with suppress(asyncio.CancelledError):
                await self._finishing

    # ── what changed ──────────────────────────────────────────────────────────────────────────

    async def changes(self, session_id: str, turn_id: str | None = None) -> FolderChanges:
        """In the whole session, or in one turn or restore. Raises UnknownSession."""
        record = await self._hub.record(session_id)
        live = self._hub.live.get(session_id)
        if live is not None and live.session.tracker is not None:
            await live.session.tracker.settled()
            await live.session.tracker.restored()
            await live.recording.shown()
        history = await read_history(self._hub.store, record)
        known = await self._known(record, turn_id, history)
        found = await self._tracked(record, turn_id, history, live)
        if found is None:
            return known
        return _joined(found, known)

    async def _tracked(
        self,
        record: SessionRecord,
        turn_id: str | None,
        history: FolderHistory,
        live: RunningSession | None,
    ) -> FolderChanges | None:
        """None where there are no snapshots."""
        steps = [each for each in history.timeline.steps if turn_id in (None, each.id)]
        if self.snapshots is None or not steps or not self._hub.hosts.has(record):
            return None
        last = await self._peek(live) if steps[-1].end is None else []
        found = await self.snapshots.changes(steps, history.written.changes, last)
        found.live = live is not None and bool(last)
        was_read = any(root.tree for step in steps for root in step.start)
        # Without its snapshots, what is known otherwise is all there is.
        found.tracked = was_read and (bool(found.files) or not found.problems)
        return found

    async def _peek(self, live: RunningSession | None) -> list[RootSnapshot]:
        """The folders of a turn that runs, as they are now or were a moment ago."""
        tracker = None if live is None else live.session.tracker
        if live is None or tracker is None:
            return []
        at, found = self._peeks.get(live.id, (0.0, []))
        if time.monotonic() - at > _PEEK_SECONDS:
            found = await tracker.snapshots.take(tracker.roots, None)
            self._peeks[live.id] = (time.monotonic(), found)
        return found

    async def _known(
        self, record: SessionRecord, turn_id: str | None, history: FolderHistory
    ) -> FolderChanges:
        """What Dragoman wrote, and what the agent told of its own edits."""
        ours = history.written.changes(turn_id)
        paths = {(each.is_imported, each.path) for each in ours}
        cwd = (await self._hub.state(record.id)).cwd
        async with aclosing(self._hub.thread(record.id)) as thread:
            told = await told_changes(record, thread, cwd, turn_id, history.written)
        rest = [each for each in told if (each.is_imported, each.path) not in paths]
        known = [*(("host", each) for each in ours), *(("agent", each) for each in rest)]
        labelled: list[tuple[Author, Change]] = [
            (_author(by, change), change) for by, change in known
        ]
        found = await asyncio.to_thread(known_changes, labelled)
        found.complete = history.written.complete and len(told) < MAX_CHANGES
        return found

    # ── the way back ──────────────────────────────────────────────────────────────────────────

    async def revert_stored(self, session_id: str, command: c.Command) -> c.Reply | None:
        """Undo what a session did that no process runs: its agent is not started, which may not
        remember it. None for another command, and for a session without a folder.

        Raises SessionOwned, CommandRefused.
        """
        if not isinstance(command, c.Revert | c.Restore):
            return None
        async with self._hub.running.opening(session_id):
            if session_id in self._hub.live:  # someone here was quicker
                return None
            async with self._stored(session_id) as (record, log):
                if not record.cwd:
                    return None
                try:
                    return await self._revert_stored(command, record, log)
                except DragomanError as error:
                    raise refused(session_id, error) from error

    async def _revert_stored(
        self, command: c.Revert | c.Restore, record: SessionRecord, log: SessionLog
    ) -> c.Reply:
        history = await read_history(self._hub.store, record)
        timeline = history.timeline
        if self.snapshots is not None and timeline.has_snapshots(command.turn_id):
            return await revert_stored(command, record, history, log, self.snapshots)
        must_be_whole_files(record.id, command, timeline)
        written = await read_own(self._hub.store, record)
        reply = await revert_written(command, record, written, log)
        return must_be_something(record.id, reply, command, timeline)

    @asynccontextmanager
    async def _stored(self, session_id: str) -> AsyncGenerator[tuple[SessionRecord, SessionLog]]:
        """A session that no process runs, to be written to. Raises SessionOwned, and
        CommandRefused if it cannot be stored."""
        store = self._hub.store
        async with self._opener.holding(session_id) as lease:
            record, state = await self._opener.recovered(lease)
            recording = EventRecorder(store, record, lease, on_stored=self._hub.news.tell)
            closed = record.status == "closed"  # which need not be among its events
            recording.describe = lambda: SessionChange(
                status="closed" if closed else status_of(state), updated_at=store.now()
            )
            log = SessionLog((), replaying=False, recorder=recording.take, history=state)
            try:
                yield record, log
            finally:
                await recording.seal()
            if recording.error is not None:
                raise refused(session_id, recording.error)

    async def rewind(
        self,
        session_id: str,
        turn_id: str,
        *,
        files: bool = True,
        conversation: bool = True,
        summary: bool = False,
        force: bool = False,
        choices: Mapping[str, Choice] | None = None,
    ) -> Rewound:
        """To before this turn: its files, its conversation, or both. Another session continues: a
        fork where the agent can fork at that point; else a new one, and with a `summary`, that is
        its first prompt.

        Raises UnknownSession, SessionElsewhere, SessionBusy, and CommandRefused: `unknown_turn`,
        `conflict` as for a revert, `unsupported` without snapshots.
        """
        record = await self._idle_here(session_id)
        async with aclosing(self._hub.thread(session_id)) as thread:
            before = await said_before(thread, turn_id)
        if not before.seq:
            sentence = f"no turn {turn_id} in this session"
            raise CommandRefused(session_id, "unknown_turn", sentence)
        reply: c.Reply = {}
        if files:
            command = c.Restore(turn_id, force, choices=dict(choices or {}), since=True)
            reply = await self._hub.send(session_id, command)
        following = Rewound(session=record.id, prompt=before.prompt)
        if conversation:
            try:
                following = await self._following(record, before, summary=summary)
            except DragomanError:
                await self._undo(record.id, reply.get("restore"))
                raise
        return msgspec.structs.replace(
            following,
            paths=reply.get("paths", []),
            kept=reply.get("kept", []),
            restore_id=reply.get("restore"),
        )

    async def _undo(self, session_id: str, restore_id: str | None) -> None:
        """The files go with the conversation: both go back, or neither."""
        if restore_id is not None:
            with suppress(DragomanError):
                await self._hub.send(session_id, c.Revert(restore_id))

    async def _idle_here(self, session_id: str) -> SessionRecord:
        """The record of a session that belongs here and has no turn. Raises SessionElsewhere,
        SessionBusy."""
        record = await self._hub.record(session_id)
        if not self._hub.hosts.has(record):
            raise SessionElsewhere(record.id, await self._hub.hosts.name_of(record.home))
        if (live := self._hub.live.get(session_id)) is not None and live.session.busy:
            raise SessionBusy(session_id)
        return record

    async def _following(self, record: SessionRecord, before: Before, *, summary: bool) -> Rewound:
        new = await forked(self._hub, self._opener, record, before)
        continuity: Continuity = "continued"
        reason: str | None = None
        if isinstance(new, str):
            continuity, reason = "reset", new
            new = await begun_again(self._hub, record, before.summary if summary else "")
        await self._tell(record.id, f"this session was rewound; it continues as {new.id}")
        return Rewound(session=new.id, continuity=continuity, reason=reason, prompt=before.prompt)

    async def _tell(
        self, session_id: str, sentence: str, severity: Literal["info", "warning"] = "info"
    ) -> None:
        """Unless another process runs it."""
        notice = e.Notice(sentence, severity, source="client")
        async with self._hub.running.opening(session_id):
            if (live := self._hub.live.get(session_id)) is not None:
                live.session.log.record(notice)
                return
            with suppress(SessionOwned):
                async with self._stored(session_id) as (_, log):
                    log.record(notice)

    # ── letting go ────────────────────────────────────────────────────────────────────────────

    async def prune(self) -> None:
        """Drop snapshots that are too old, now."""
        if self.snapshots is not None:
            await self.snapshots.prune(time.time())

    async def forget(self, session_id: str) -> None:
        """Its snapshots, with the session."""
        self._peeks.pop(session_id, None)
        if self.snapshots is not None:
            with suppress(DragomanError):
                await self.snapshots.forget(session_id)


def _author(by: str, change: Change) -> Author:
    if change.is_imported:
        return "imported"
    return "host" if by == "host" else "agent"


def _joined(found: FolderChanges, known: FolderChanges) -> FolderChanges:
    """Where there were no snapshots, or an import tells of it, what is known otherwise."""
    paths = {file.path for file in found.files}

    def is_missing(file: ChangedFile) -> bool:
        return "imported" in file.by or (not found.tracked and file.path not in paths)

    found.files += [file for file in known.files if is_missing(file)]
    found.complete = found.complete and known.complete
    return found
