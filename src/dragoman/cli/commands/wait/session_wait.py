"""The wait for the end of a session's turns: what it prints, and its exit code."""

from __future__ import annotations

import argparse
import asyncio

from dragoman.cli.exit_codes import Exit, ended_with, tell
from dragoman.cli.render.event_text import ALL_REFUSED, Tally
from dragoman.cli.run.hub_access import opened_session
from dragoman.errors import UnknownSession
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.hub import Hub
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.safe_text import sanitise
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState, answer_of
from dragoman.store.records import SessionRecord, decode_events

_LOOK_SECONDS = 1.0


async def wait(options: argparse.Namespace) -> int:
    """Wait, print the answer, and return the exit code of the session's last turn."""
    async with opened_session(options) as (hub, record):
        try:
            async with asyncio.timeout(options.timeout):
                waiting = _Waiting(hub, record)
                await waiting.run()
        except TimeoutError:
            tell(f"session {record.id} is still at work")
            return Exit.NO_PROGRESS
    return waiting.outcome()


class _Waiting:
    """One session, from its last turn on."""

    def __init__(self, hub: Hub, record: SessionRecord) -> None:
        self._hub = hub
        self._id = record.id
        self._state: SessionState | None = None
        self._tally = Tally()

    async def run(self) -> None:
        """Until there is nothing left to wait for. Raises UnknownSession if it is deleted."""
        following = asyncio.create_task(self._follow())
        try:
            while not (await asyncio.wait({following}, timeout=_LOOK_SECONDS))[0]:
                # What a process that has died left open ends here, and what it left queued stays.
                await self._hub.maintenance.recover()
                if await self._is_left():
                    return
            following.result()
        finally:
            following.cancel()

    async def _is_left(self) -> bool:
        owner = await self._hub.store.owner(self._id)
        is_idle = self._state is not None and self._state.turn is None
        return is_idle and (owner is None or is_gone(owner))

    async def _follow(self) -> None:
        state = self._state = await stored_state(self._hub.store, self._id)
        known = state.last_seq
        since = state.turns[-1].seq - 1 if state.turns else known
        self._tally = Tally()
        if since == known and self._is_idle:
            return
        async for page in self._hub.watch(self._id, since):
            for event in decode_events(page):
                if event.seq > known:
                    reduce(state, event)
                if isinstance(event, e.TurnStarted):
                    self._tally = Tally()
                self._tally.count(event)
            if page and page[-1].seq >= known and self._is_idle:
                return
        raise UnknownSession(self._id)

    @property
    def _is_idle(self) -> bool:
        state = self._state
        return state is not None and not (state.turn or state.queue or state.parked)

    def outcome(self) -> int:
        """Print the answer; the exit code of the turn."""
        state, tally = self._state, self._tally
        assert state is not None
        if not state.turns:
            return Exit.DONE
        turn = state.turns[-1]
        if said := answer_of(state, turn.id):
            print(sanitise(said))
        if tally.limited:
            return Exit.LIMIT
        if turn.status == "cancelled":
            return Exit.CANCELLED
        if turn.error is not None or turn.interrupted:
            tell(turn.error or "the turn was interrupted")
            return Exit.FAILED
        if tally.all_refused:
            tell(ALL_REFUSED)
            return Exit.REFUSED
        return ended_with(turn.stop_reason)
