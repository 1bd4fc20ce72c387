"""Sessions whose prompts wait for the end of a limit: taken up by a host, dropped, handed over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.client.sessions.parking import dropped_parking, scheduled_parking, unsent_parking
from dragoman.errors import (
    AuthRequired,
    CommandRefused,
    DragomanError,
    SessionNotContinued,
    SessionOwned,
)
from dragoman.hub.cluster import commands as c
from dragoman.hub.opener import Opener
from dragoman.hub.session_records import RecordReach
from dragoman.session import events as e
from dragoman.session.facts import Parking
from dragoman.session.state import SessionState
from dragoman.store.records import SessionFilter, SessionRecord

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub

logger = logging.getLogger("dragoman.hub")

_TRY_SECONDS = 60.0
"""Before a session that could not be opened is tried again."""


class ParkedSessions:
    """Those of a hub's store."""

    def __init__(self, hub: Hub, opener: Opener) -> None:
        self._hub = hub
        self._opener = opener
        self.are_taken_up = False
        """Whether this process is a host: it is there for all sessions, and stays."""
        self._tried: dict[str, float] = {}
        """When a session could not be opened."""

    async def take_up(self) -> None:
        """Open sessions whose parked prompts are due and that no process runs: that sends them."""
        if not self.are_taken_up:
            return
        for record in await self._hub.store.sessions(SessionFilter(status="parked")):
            if await self._is_due(record):
                await self._open(record.id)

    async def _open(self, session_id: str) -> None:
        try:
            await self._hub.open(session_id)
        except SessionOwned:
            pass  # its owner waits for the same moment
        except (SessionNotContinued, AuthRequired) as error:
            sentence = str(error)  # trying again would change nothing: a person has to
            with suppress(CommandRefused, SessionOwned):
                await self._change(session_id, lambda parked: unsent_parking(parked.id, sentence))
        except DragomanError as error:
            self._tried[session_id] = time.monotonic()
            logger.warning("session %s cannot be continued: %s", session_id, error)

    async def _is_due(self, record: SessionRecord) -> bool:
        if record.id in self._hub.live or not self._hub.hosts.has(record):
            return False
        tried = self._tried.get(record.id)
        if tried is not None and time.monotonic() - tried < _TRY_SECONDS:
            return False
        parked = (await self._hub.state(record.id)).parked
        at = None if parked is None else parked.resumes_at
        return at is not None and at <= time.time()

    async def put_down(self, session_id: str, command: c.DropParked | c.Note) -> c.Reply:
        """What is done in the record alone, of a session that no process runs. Raises
        CommandRefused."""
        match command:
            case c.DropParked(handed_to):
                await self._change(session_id, lambda parked: dropped_parking(parked.id, handed_to))
            case c.Note(text):
                async with self._hub.running.opening(session_id):
                    note = e.Notice(text, source="client")
                    await self._opener.put_down(session_id, lambda _: note)
        return {}

    async def schedule(self, session_id: str, *, now: bool) -> None:
        """Have the next host send what is parked in a session that no process runs: at once, or
        when the limit is said to end. Raises CommandRefused, SessionOwned."""
        await self._change(session_id, lambda parked: scheduled_parking(parked, now=now))

    async def _change(self, session_id: str, change: Callable[[Parking], e.ParkingChanged]) -> None:
        def changed(state: SessionState) -> e.Event:
            if state.parked is None:
                raise _not_parked(session_id)
            return change(state.parked)

        async with self._hub.running.opening(session_id):
            await self._opener.put_down(session_id, changed)

    async def hand_over(self, session_id: str, agent: str, *, stays: bool = False) -> str:
        """A new session of another agent, which gets the prompt that is parked in this one; its id.
        It works in the same folders and may do no more. It runs in this process if that `stays`,
        else on a host.

        Raises UnknownSession, CommandRefused if nothing is parked or no host is there, and what
        starting the agent raises: then it stays parked.
        """
        hub = self._hub
        record, parked = await hub.record(session_id), (await hub.state(session_id)).parked
        if parked is None:
            raise _not_parked(session_id)
        new_id = await self._begin(record, agent, stays=stays)
        try:
            await hub.send(session_id, c.DropParked(new_id), opens=False)
        except BaseException:
            await hub.send(new_id, c.Close())
            await hub.delete(new_id)
            raise
        await hub.send(new_id, c.TakeOver(session_id, parked))
        return new_id

    async def _begin(self, record: SessionRecord, agent: str, *, stays: bool) -> str:
        hub = self._hub
        given: RecordReach = {
            "additional_directories": record.additional_directories,
            "offer": record.offer,
            "limits": record.limits,
        }
        if stays and hub.hosts.has(record):
            return (await hub.create(agent, record.cwd, **given)).id
        for host in await hub.hosts.all():
            if host.alive and host.home == record.home:
                return await hub.create_on(host, agent, record.cwd, **given)
        raise CommandRefused(
            record.id,
            "host_gone",
            "only a `dragoman serve` can run the new session, and there is none where this one is",
        )


def _not_parked(session_id: str) -> CommandRefused:
    return CommandRefused(session_id, "settled", "no prompt is parked in this session")
