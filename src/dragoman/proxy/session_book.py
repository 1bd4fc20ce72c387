"""The sessions that a proxy records: begun or taken up in the store, and given back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from dragoman.data_directory import data_directory
from dragoman.errors import DragomanError
from dragoman.hub.cluster.host_directory import home_of
from dragoman.hub.cluster.owner import has_ended, this_process
from dragoman.hub.running.event_recorder import EventRecorder
from dragoman.hub.session_records import fork_record, new_record
from dragoman.hub.stored.stored_sessions import described, state_to_go_on
from dragoman.session.events import Event
from dragoman.session.reduce import reduce
from dragoman.session.state import ENDED, FORKED, SessionState, loose_ends
from dragoman.store.base import LEASE_SECONDS, Store
from dragoman.store.records import Lease, SessionFilter, SessionRecord

logger = logging.getLogger("dragoman.proxy")


class Page(NamedTuple):
    """A session that is ours to write, as it is now."""

    recording: EventRecorder
    state: SessionState


class SessionBook:
    """In one store, for one process."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._home = home_of(store, data_directory())
        self.owner = this_process(alone=store.is_local, home=self._home)

    async def known(self, agent: str, agent_session_id: str) -> SessionRecord | None:
        """The record of a session by the name that its agent has for it."""
        wanted = SessionFilter(agent=agent, agent_session_id=agent_session_id, limit=1)
        found = await self.store.sessions(wanted)
        return found[0] if found else None

    async def begin(self, agent: str, agent_session_id: str, cwd: str, more: Sequence[str]) -> Page:
        """A new session. Raises StoreError."""
        record = new_record(self._home, agent, cwd, additional_directories=more)
        return await self._begun(record, agent_session_id)

    async def fork(self, parent: SessionRecord, agent_session_id: str, cwd: str) -> Page:
        """A new session, with all that is on record of another. Raises StoreError."""
        record = fork_record(parent, self._home, cwd=cwd)
        return await self._begun(record, agent_session_id)

    async def _begun(self, record: SessionRecord, agent_session_id: str) -> Page:
        lease = await self.store.begin_session(record, self.owner, seconds=LEASE_SECONDS)
        if record.parent is not None:
            await self.store.copy_events(record.parent, lease)
        record.agent_session_id = agent_session_id
        return await self._page(lease, FORKED, agent_session_id)

    async def take_up(self, record: SessionRecord, agent_session_id: str) -> Page:
        """A session that is on record, with what its owner left open ended. Raises SessionOwned
        where another process runs it, and StoreError."""
        gone = partial(has_ended, home=self._home)
        lease = await self.store.acquire(record.id, self.owner, seconds=LEASE_SECONDS, gone=gone)
        return await self._page(lease, ENDED, agent_session_id)

    async def _page(self, lease: Lease, reason: str, agent_session_id: str) -> Page:
        try:
            record = await self.store.session(lease.session_id)
            assert record is not None  # it is ours
            record.agent_session_id = agent_session_id
            state = await state_to_go_on(self.store, lease) if record.last_seq else SessionState()
        except BaseException:
            await self._release(lease)
            raise
        state.session_id = agent_session_id
        recording = EventRecorder(self.store, record, lease, on_stored=_nobody)
        recording.describe = lambda: described(record, state, self.store.now())
        page = Page(recording, state)
        for event in loose_ends(state, reason):
            write(page, event)
        recording.refresh()
        return page

    async def close(self, page: Page) -> None:
        """Give a session back, with what is open in it ended."""
        for event in loose_ends(page.state):
            write(page, event)
        await page.recording.seal()
        await self._release(page.recording.lease)

    async def _release(self, lease: Lease) -> None:
        with suppress(DragomanError):
            await self.store.release(lease)


def write(page: Page, event: Event) -> None:
    """Number an event, record it, and fold it."""
    event.seq = page.state.last_seq + 1
    page.recording.take([event])
    reduce(page.state, event)


def _nobody(session_id: str) -> None:
    """Readers are in other processes, whom the store wakes."""
