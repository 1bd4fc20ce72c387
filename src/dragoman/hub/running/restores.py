"""Undoes what happened in the folders of a session that runs here, at once or after its turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from dragoman.client.sessions.folder_tracker import FolderTracker, new_restore_id
from dragoman.client.sessions.session import Session
from dragoman.errors import DragomanError
from dragoman.host.snapshots.undo_plan import Choice
from dragoman.hub.cluster import commands as c
from dragoman.session import events as e

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
        steps = self._tracker.timeline.steps
        wanted = [each for each in steps if step_id in (None, each.id)]
        return any(root.tree is not None for step in wanted for root in step.start)

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
        hunks: list[str] | None = None
        choices: Mapping[str, Choice] = {}
        since = False
        if isinstance(command, c.Restore):
            hunks, choices, since = command.hunks, command.choices, command.since
        done = await self._tracker.revert(
            command.turn_id,
            paths=command.paths,
            hunks=hunks,
            force=command.force,
            choices=choices,
            restore_id=restore_id,
            since=since,
        )
        return {"paths": done.paths, "kept": done.kept, "restore": done.restore_id, "waits": False}

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
