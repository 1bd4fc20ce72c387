"""How a session comes to run here: leased, put right, its history read, its agent started.

Whoever asked may be cancelled at any moment: what is not finished then is undone, in order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, TypeAlias

from dragoman.client.client import Client
from dragoman.client.dialect import Place
from dragoman.client.session import Session
from dragoman.errors import DragomanError, SessionNotContinued, UnknownSession
from dragoman.hub import commands as c
from dragoman.hub.agents import Agents, Running
from dragoman.hub.live import Live
from dragoman.hub.owner import has_ended
from dragoman.hub.recording import Recording
from dragoman.hub.recovery import ENDED, FORKED, loose_ends
from dragoman.hub.states import state_to_go_on
from dragoman.hub.summary import status_of
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.base import Store
from dragoman.store.records import (
    Batch,
    Lease,
    Owner,
    SessionChange,
    SessionRecord,
    encode_event,
)

logger = logging.getLogger("dragoman.hub")

LEASE_SECONDS = 20.0

OnReset: TypeAlias = Literal["fail", "new"]
"""What to do when the agent does not remember the session."""
Begin: TypeAlias = Callable[[Client, Place], Awaitable[Session]]


class Opener:
    """Makes the live sessions of one owner. `on_stored` is told when a session has more to read;
    with `attended` there is always someone who answers questions."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        owner: Owner,
        *,
        attended: bool,
        on_stored: Callable[[str], None],
    ) -> None:
        self.left: set[str] = set()
        """Sessions that are ours and do not run here: they have to be put right before they are
        given up, and the store did not take that yet."""
        self._store = store
        self._agents = agents
        self._owner = owner
        self._attended = attended
        self._on_stored = on_stored

    # ── leases ────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def holding(self, session_id: str) -> AsyncGenerator[Lease]:
        """The session is ours for as long as this lasts. Raises UnknownSession, SessionOwned."""
        taking = self._taking(session_id)
        try:
            yield await asyncio.shield(taking)
        finally:
            await _to_its_end(self._give_back(taking))

    def _taking(self, session_id: str) -> asyncio.Task[Lease]:
        """Shielded, since a lease that was taken for one who is gone would stay for ever."""

        def gone(owner: Owner) -> bool | None:
            ours = owner.id == self._owner.id and session_id in self.left
            return ours or has_ended(owner)

        taken = self._store.acquire(session_id, self._owner, seconds=LEASE_SECONDS, gone=gone)
        return asyncio.create_task(taken)

    async def _give_back(self, taking: asyncio.Task[Lease]) -> None:
        with suppress(DragomanError):
            lease = await taking
            if lease.session_id not in self.left:
                await self.release(lease)

    async def release(self, lease: Lease) -> None:
        """Give a session up; when that fails, it is tried again."""
        try:
            await self._store.release(lease)
        except DragomanError as error:
            logger.warning("a session could not be given up: %s", error)
            self.left.add(lease.session_id)

    # ── the ways to begin ─────────────────────────────────────────────────────────────────────

    async def create(self, record: SessionRecord) -> Live:
        """A new session. When the agent cannot be started there is no trace of it."""

        async def begin(client: Client, place: Place) -> Session:
            return await client.openings.new(place, "new")

        return await self._first(record, begin)

    async def adopt(self, agent_session_id: str, record: SessionRecord, on_reset: OnReset) -> Live:
        """A session that the agent knows and we do not: what it tells of its history is stored."""
        return await self._first(record, _continued(agent_session_id, record, on_reset))

    async def fork(
        self, agent_session_id: str, record: SessionRecord, parent: SessionRecord | None
    ) -> Live:
        """A new session that remembers what another did; the events of a parent that is stored
        come before its own."""

        async def begin(client: Client, place: Place) -> Session:
            client.require("fork", "session/fork")
            return await client.openings.fork(agent_session_id, place)

        return await self._first(record, begin, parent)

    async def reopen(self, session_id: str, on_reset: OnReset) -> Live:
        """A session that is stored, continued.

        Raises SessionOwned, and SessionNotContinued when the agent does not remember it.
        """
        taking = self._taking(session_id)
        try:
            lease = await asyncio.shield(taking)
            record, history = await self.put_right(lease)
            begin = _continued(record.agent_session_id, record, on_reset)
            return await self._begin(record, lease, history, begin)
        except BaseException:
            await _to_its_end(self._give_back(taking))
            raise

    async def put_right(
        self, lease: Lease, reason: str = ENDED
    ) -> tuple[SessionRecord, SessionState]:
        """What is stored, after ending what an owner before us left open."""
        self.left.add(lease.session_id)
        # Read under the lease: until then another owner may have changed it.
        record = await self._store.session(lease.session_id)
        if record is None or record.status not in ("running", "waiting"):
            self.left.discard(lease.session_id)
        if record is None:
            raise UnknownSession(lease.session_id)
        state = await state_to_go_on(self._store, lease)
        if record.parent is None:
            # The owner may have ended before it could write down what the agent calls it.
            record.agent_session_id = record.agent_session_id or state.session_id or None
        if ends := loose_ends(state, reason):
            await self._append(lease, state, ends)
        record.last_seq = state.last_seq
        self.left.discard(lease.session_id)
        return record, state

    async def _append(self, lease: Lease, state: SessionState, events: list[Any]) -> None:
        first, now = state.last_seq + 1, time.time()
        for seq, event in enumerate(events, first):
            event.seq, event.at = seq, now
            reduce(state, event)
        change = SessionChange(status=status_of(state), updated_at=now)
        bodies = [encode_event(event) for event in events]
        await self._store.append(lease, Batch(first_seq=first, events=bodies, change=change))
        self._on_stored(lease.session_id)

    async def recover(self, session_id: str) -> None:
        """Put a session right that its owner has left. Raises UnknownSession, SessionOwned."""
        async with self.holding(session_id) as lease:
            record, state = await self.put_right(lease)
            # What it was asked for, it did not do; and nobody else should.
            for command in await self._store.take([lease]):
                refusal = c.Refusal("owner_gone", ENDED)
                await self._store.settle(command.id, c.encode_result(refusal))
            if record.agent_session_id is None and (record.parent or not state.turns):
                # It ended while it made the session: nothing had come of it yet.
                await self._store.delete_session(session_id, lease)

    # ── what they share ───────────────────────────────────────────────────────────────────────

    async def _first(
        self, record: SessionRecord, begin: Begin, parent: SessionRecord | None = None
    ) -> Live:
        creating = asyncio.create_task(self._created(record))
        try:
            lease = await asyncio.shield(creating)
            history = None
            if parent is not None:
                await self._store.copy_events(parent.id, lease)
                copied, history = await self.put_right(lease, FORKED)
                record.last_seq = copied.last_seq
            return await self._begin(record, lease, history, begin)
        except BaseException:
            await _to_its_end(self._uncreate(creating))
            raise

    async def _created(self, record: SessionRecord) -> Lease:
        await self._store.create_session(record)
        return await self._taking(record.id)

    async def _uncreate(self, creating: asyncio.Task[Lease]) -> None:
        with suppress(DragomanError):
            lease = await creating
            self.left.add(lease.session_id)
            await self._store.delete_session(lease.session_id, lease)
            self.left.discard(lease.session_id)

    async def _begin(
        self, record: SessionRecord, lease: Lease, history: SessionState | None, begin: Begin
    ) -> Live:
        running = await self._agents.use(record.agent, record.cwd)
        recording = Recording(self._store, record, lease, on_stored=self._on_stored)
        try:
            place = self._place(running, record, recording, history)
            session = await begin(running.client, place)
        except BaseException:
            await _to_its_end(self._abandon(recording, running))
            raise
        session.gate.consent.attended = self._attended
        return Live(self._store, recording, running, session)

    async def _abandon(self, recording: Recording, running: Running) -> None:
        await recording.seal()
        await self._agents.leave(running)

    def _place(
        self,
        running: Running,
        record: SessionRecord,
        recording: Recording,
        history: SessionState | None,
    ) -> Place:
        place = running.client.openings.place(
            record.cwd,
            record.additional_directories,
            self._agents.launcher.mcp_servers(record.agent),
            None,
            None,
        )
        place.history, place.listen = history, recording.listen
        return place


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Even when whoever asked is cancelled once more."""
    await asyncio.shield(asyncio.create_task(work))


def _continued(agent_session_id: str | None, record: SessionRecord, on_reset: OnReset) -> Begin:
    async def begin(client: Client, place: Place) -> Session:
        if agent_session_id is not None:
            allow_new = on_reset == "new"
            return await client.openings.ensure(agent_session_id, place, allow_new=allow_new)
        if not record.last_seq:
            return await client.openings.new(place, "new")
        if on_reset == "fail":
            raise SessionNotContinued(record.id, "no agent was ever told of it")
        return await client.openings.new(place, "reset")

    return begin
