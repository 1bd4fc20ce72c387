"""Has the folders of a session read before and after each turn, and what turns did undone.

A session without one knows only what Dragoman wrote for its agent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

from dragoman.data_directory import data_directory
from dragoman.errors import Unsupported
from dragoman.host.gate import Gate
from dragoman.host.workspace.changes import Change
from dragoman.session import events as e
from dragoman.session.facts import RootSnapshot
from dragoman.session.state import SessionState, ToolCall

if TYPE_CHECKING:
    from dragoman.client.sessions.session import Session
    from dragoman.client.sessions.turn import Turn
    from dragoman.host.snapshots.folder_changes import FolderChanges
    from dragoman.host.snapshots.snapshots import Reverted, Snapshots, TurnMark
    from dragoman.host.snapshots.timeline import Step, Timeline
    from dragoman.host.snapshots.undo_plan import RevertOptions

_HARMLESS = frozenset(("read", "search", "think", "fetch", "switch_mode"))
_SHARED = "another session worked in the same folder"
_NOTHING_DONE = "the agent reported nothing that could have done it"
_END_SECONDS = 20.0
"""How long the end of a session waits for the folder to be read."""


class FolderTracker:
    """The snapshots of one session, kept under `key`; `timeline` has those from before. If they
    are temporary, they end with the session."""

    def __init__(
        self,
        session: Session,
        snapshots: Snapshots,
        key: str,
        timeline: Timeline | None = None,
        *,
        is_temporary: bool = False,
    ) -> None:
        from dragoman.host.snapshots.timeline import Timeline

        self.snapshots = snapshots
        self.key = key
        self._is_temporary = is_temporary
        self.timeline = timeline or Timeline()
        self._session = session
        self._mark: TurnMark | None = None
        self._ending: asyncio.Task[None] | None = None
        self._packing: asyncio.Task[None] | None = None
        self._restoring = asyncio.Lock()
        self._restores: dict[asyncio.Event, Turn | None] = {}
        """Those that are not done, and the turn that each waits for."""

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """By their real paths, once: an agent may put a link in place of one."""
        return tuple(map(os.path.realpath, self._session.gate.workspace.roots))

    def record(self, event: e.WorkspaceSnapshot | e.FileReverted) -> None:
        self.timeline.feed(event)
        self._session.log.record(event)

    def prepare(self) -> None:
        """Read the folders for the first time, or after a process that ended in a turn, without
        anyone waiting for it."""
        self._ending = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        ended = await self.snapshots.end_cut(self.timeline, self.roots, self.key, self.written)
        if ended is None:
            await self.snapshots.read_ahead(self.roots)
        else:
            self.record(ended)

    async def is_as_before(self, turn_id: str) -> bool:
        """Whether the folders are now, after a turn that was cut short, what they were before it.
        False where nobody can say."""
        await self.settled()
        step = self.timeline.step(turn_id)
        return step is not None and step.left_no_trace

    # ── around a turn ─────────────────────────────────────────────────────────────────────────

    async def before(self, turn: Turn) -> None:
        """The prompt waits for this: what the agent writes must come after it."""
        await self._after_restores(turn)
        await self.settled()
        async with self._restoring:
            with suppress(OSError):
                self._mark = self.snapshots.begin_turn(self.key, self.roots)
            found = await self.snapshots.take(self.roots, self.key)
            self.record(e.WorkspaceSnapshot("turn_start", turn.id, found))

    async def _after_restores(self, turn: Turn) -> None:
        """What was asked for before the turn is done before its prompt is sent."""
        for done in [done for done, first in self._restores.items() if first is not turn]:
            await done.wait()

    def after(self, turn: Turn) -> None:
        """Nobody waits for this but the next turn, and the end of the session."""
        step = self.timeline.step(turn.id)
        if step is not None and step.end is None:
            # Not one of the session's tasks: those are cancelled when it ends.
            self._ending = asyncio.create_task(self._end(turn.id, step))

    async def _end(self, turn_id: str, step: Step) -> None:
        mark, self._mark = self._mark, None
        found = await self.snapshots.take(self.roots, self.key)
        doubt = self._doubt(turn_id, mark)
        self.record(await self.snapshots.end_turn(step, found, doubt, self.written))
        if self._packing is None or self._packing.done():
            self._packing = asyncio.create_task(self.snapshots.pack(self.roots))

    def _doubt(self, turn_id: str, mark: TurnMark | None) -> str:
        """Why it is not certain that the agent did it."""
        is_shared = False
        with suppress(OSError):
            is_shared = mark is not None and mark.end()
        if is_shared:
            return _SHARED
        return "" if _acted(self._session.state, turn_id) else _NOTHING_DONE

    async def settled(self) -> None:
        """Until what has ended is on record; not for long."""
        if self._ending is not None:
            await asyncio.wait([self._ending], timeout=_END_SECONDS)

    async def restored(self) -> None:
        """Until the restores whose turn is over are done, too; not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                for done, turn in list(self._restores.items()):
                    if turn is None or turn.done:
                        await done.wait()

    # ── what happened, and the way back ───────────────────────────────────────────────────────

    def written(self, turn_id: str) -> Sequence[Change]:
        return written_by(self._session.gate, turn_id)

    def _steps(self, step_id: str | None) -> list[Step]:
        """Raises KeyError for one that is unknown."""
        if step_id is None:
            return self.timeline.steps
        step = self.timeline.step(step_id)
        if step is None:
            raise KeyError(step_id)
        return [step]

    async def changes(self, step_id: str | None) -> FolderChanges:
        """Of one turn or restore, or of all. Raises KeyError for one without snapshots."""
        await self.settled()
        steps = self._steps(step_id)
        last: list[RootSnapshot] = []
        if steps and steps[-1].end is None:
            last = await self.snapshots.take(self.roots, None)
        return await self.snapshots.changes(steps, self.written, last)

    async def revert(
        self,
        step_id: str | None,
        *,
        restore_id: str | None = None,
        since: bool = False,
        **which: Unpack[RevertOptions],
    ) -> Reverted:
        """Once no turn runs. With `since`, that step and all after it. Raises KeyError,
        RevertConflict."""
        from dragoman.host.snapshots.snapshots import undo_of

        async with self._between_turns():
            undo = undo_of(self.timeline, step_id, since=since, **which)
            done = await self.snapshots.restore(
                undo,
                self.written,
                restore_id=restore_id or new_restore_id(),
                session_id=self.key,
                record=self.record,
            )
        for notice in done.notices():
            self._session.log.record(notice)
        return done

    @asynccontextmanager
    async def _between_turns(self) -> AsyncGenerator[None]:
        """After the turn that runs, and before the prompt of the next one."""
        done, turn = asyncio.Event(), self._session.running
        self._restores[done] = turn
        try:
            while turn is not None and not turn.done:
                await turn.settled_within(3600.0)
            await self.settled()
            async with self._restoring:
                yield
        finally:
            del self._restores[done]
            done.set()

    async def aclose(self) -> None:
        """At the end of the session, once the last turn is on record."""
        await self.settled()
        if self._packing is not None:
            self._packing.cancel()
            with suppress(asyncio.CancelledError):
                await self._packing
        if self._mark is not None:
            with suppress(OSError):
                self._mark.end()
        if self._is_temporary:
            await self.snapshots.forget(self.key)


def new_restore_id() -> str:
    return f"restore-{os.urandom(8).hex()}"


def written_by(gate: Gate, turn_id: str) -> Sequence[Change]:
    try:
        return gate.changes(turn_id)
    except Unsupported:
        return ()


def _acted(state: SessionState, turn_id: str) -> bool:
    """Whether the agent reported anything in this turn that can change a file."""
    if state.subagents or state.terminals:
        return True
    return any(
        isinstance(entry, ToolCall) and entry.turn_id == turn_id and entry.kind not in _HARMLESS
        for entry in reversed(state.entries)
    )


# ── with or without snapshots ─────────────────────────────────────────────────────────────────


def of_its_own(session: Session) -> FolderTracker:
    """One whose snapshots end with the session. Raises Unsupported for an agent whose files are
    not on this machine."""
    from dragoman.host.snapshots.snapshots import Snapshots

    if not session.files_are_here:
        raise Unsupported("tracking changes of an agent on another machine")
    directory = data_directory()
    kept = Snapshots(directory / "snapshots", closed=[str(directory)])
    return FolderTracker(session, kept, f"library-{os.urandom(8).hex()}", is_temporary=True)


async def changes_of(session: Session, turn: Turn | str | None) -> FolderChanges:
    turn_id = _id_of(turn)
    if session.tracker is not None:
        return await session.tracker.changes(turn_id)
    from dragoman.host.snapshots.folder_changes import known_changes

    return known_changes([("host", each) for each in session.gate.changes(turn_id)])


async def revert(
    session: Session, turn: Turn | str | None, **which: Unpack[RevertOptions]
) -> Reverted:
    turn_id = _id_of(turn)
    if session.tracker is not None:
        return await session.tracker.revert(turn_id, **which)
    from dragoman.host.snapshots.snapshots import Reverted

    if which.get("hunks") is not None:
        raise Unsupported("reverting hunks without snapshots: call track_changes first")
    force = which.get("force", False)
    undone = await session.gate.revert(turn_id, paths=which.get("paths"), force=force)
    return Reverted(paths=[str(change.path) for change in undone])


def _id_of(turn: Turn | str | None) -> str | None:
    return turn if turn is None or isinstance(turn, str) else turn.id
