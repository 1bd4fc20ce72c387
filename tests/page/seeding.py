"""Sessions put straight into a store, and told on while a server watches."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import UNSET

from dragoman.host.rules.rule import Rule
from dragoman.hub.cluster.owner import is_gone, this_process
from dragoman.hub.stored.stored_sessions import state_to_go_on
from dragoman.session import events as e
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.records import (
    Batch,
    Lease,
    Said,
    SessionChange,
    SessionRecord,
    Status,
    encode_event,
)


class Teller:
    """Owns a session and says what happens in it."""

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store, self._lease = store, lease
        self._seq = 0

    async def tell(
        self,
        events: Sequence[e.Event],
        *,
        status: Status | None = None,
        at: float | None = None,
        said: Sequence[str] = (),
    ) -> None:
        """Search finds what was `said`, by the agent in the first of the events."""
        first = self._seq + 1
        for event in events:
            self._seq += 1
            event.seq, event.at = self._seq, time.time() if at is None else at
        batch = Batch(
            first_seq=first,
            events=[encode_event(event) for event in events],
            change=SessionChange(status=status or UNSET, updated_at=time.time()),
            said=[Said(first, "agent", text) for text in said],
        )
        await self._store.append(self._lease, batch)

    def remember(self, rule: Rule) -> None:
        self._store.rules.add(rule)

    async def save(self) -> None:
        """Leave a snapshot, as the owner of a session does now and then."""
        await state_to_go_on(self._store, self._lease)


@asynccontextmanager
async def told_session(
    home: Path,
    session_id: str,
    cwd: Path,
    *,
    title: str = "A session",
    name: str | None = None,
    agent: str = "demo",
    parent: str | None = None,
    created_at: float | None = None,
) -> AsyncGenerator[Teller]:
    store = await open_store(home)
    now = time.time()
    record = SessionRecord(
        id=session_id,
        agent=agent,
        cwd=str(cwd),
        created_at=now if created_at is None else created_at,
        updated_at=now,
        title=title,
        name=name,
        parent=parent,
    )
    try:
        await store.create_session(record)
        lease = await store.acquire(session_id, this_process(), seconds=120, gone=is_gone)
        yield Teller(store, lease)
        await store.release(lease)
    finally:
        await store.aclose()
