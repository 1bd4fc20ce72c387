"""How a session comes to run here: leased, put right, its history read, its agent started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, TypeAlias

from dragoman.client.client import Client
from dragoman.client.dialect import Place
from dragoman.client.session import Session
from dragoman.errors import DragomanError
from dragoman.hub.agents import Agents, Running
from dragoman.hub.live import Live
from dragoman.hub.owner import is_gone
from dragoman.hub.recording import Recording
from dragoman.hub.recovery import loose_ends
from dragoman.hub.states import stored_state
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
        self._store = store
        self._agents = agents
        self._owner = owner
        self._attended = attended
        self._on_stored = on_stored

    async def lease(self, session_id: str) -> Lease:
        """Raises UnknownSession, SessionOwned."""
        return await self._store.acquire(
            session_id, self._owner, seconds=LEASE_SECONDS, gone=is_gone
        )

    # ── the ways to begin ─────────────────────────────────────────────────────────────────────

    async def create(self, record: SessionRecord) -> Live:
        """A new session. When the agent cannot be started there is no trace of it."""

        async def begin(client: Client, place: Place) -> Session:
            return await client.openings.new(place, "new")

        return await self._first(record, begin)

    async def adopt(self, record: SessionRecord, on_reset: OnReset) -> Live:
        """A session that the agent knows and we do not: what it tells of its history is stored."""
        return await self._first(record, _continued(record, on_reset))

    async def fork(
        self, agent_session_id: str, record: SessionRecord, parent: SessionRecord | None
    ) -> Live:
        """A new session that remembers what another did; the events of a parent that is stored
        come before its own."""

        async def begin(client: Client, place: Place) -> Session:
            client.require("fork", "session/fork")
            return await client.openings.fork(agent_session_id, place)

        return await self._first(record, begin, parent)

    async def reopen(self, record: SessionRecord, on_reset: OnReset) -> Live:
        """A session that is stored, continued.

        Raises SessionOwned, and SessionNotContinued when the agent does not remember it.
        """
        lease = await self.lease(record.id)
        try:
            history = await self.put_right(record, lease)
            return await self._begin(record, lease, history, _continued(record, on_reset))
        except BaseException:
            await self._release(lease)
            raise

    async def put_right(self, record: SessionRecord, lease: Lease) -> SessionState:
        """The stored state, after ending what an owner before us left open."""
        state = await stored_state(self._store, record.id)
        record.last_seq = state.last_seq
        # The owner may have ended before it could write down what the agent calls the session.
        record.agent_session_id = record.agent_session_id or state.session_id or None
        if ends := loose_ends(state):
            first = state.last_seq + 1
            for seq, event in enumerate(ends, first):
                event.seq, event.at = seq, time.time()
                reduce(state, event)
            change = SessionChange(status=status_of(state), updated_at=time.time())
            batch = Batch(first_seq=first, events=[encode_event(x) for x in ends], change=change)
            await self._store.append(lease, batch)
            record.last_seq = state.last_seq
            self._on_stored(record.id)
        return state

    # ── what they share ───────────────────────────────────────────────────────────────────────

    async def _first(
        self, record: SessionRecord, begin: Begin, parent: SessionRecord | None = None
    ) -> Live:
        await self._store.create_session(record)
        lease = await self.lease(record.id)
        try:
            history = None
            if parent is not None:
                record.last_seq = await self._store.copy_events(parent.id, lease)
                history = await stored_state(self._store, record.id)
            return await self._begin(record, lease, history, begin)
        except BaseException:
            await self._release(lease)
            with suppress(DragomanError):
                await self._store.delete_session(record.id)
            raise

    async def _begin(
        self, record: SessionRecord, lease: Lease, history: SessionState | None, begin: Begin
    ) -> Live:
        running = await self._agents.use(record.agent, record.cwd)
        recording = Recording(self._store, record, lease, on_stored=self._on_stored)
        try:
            place = self._place(running, record, recording, history)
            session = await begin(running.client, place)
        except BaseException:
            await recording.seal()
            await self._agents.leave(running)
            raise
        session.gate.consent.attended = self._attended
        return Live(self._store, recording, running, session)

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

    async def _release(self, lease: Lease) -> None:
        # The one who asked may be gone: the lease must not outlive this all the same.
        with suppress(DragomanError):
            await asyncio.shield(self._store.release(lease))


def _continued(record: SessionRecord, on_reset: OnReset) -> Begin:
    async def begin(client: Client, place: Place) -> Session:
        if record.agent_session_id is None:
            return await client.openings.new(place, "new")
        return await client.openings.ensure(
            record.agent_session_id, place, allow_new=on_reset == "new"
        )

    return begin
