"""Stores to test, and what to put into them. Another kind of store is one more line in KINDS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from support.clients import until
from support.postgres import empty_database

from dragoman.session.content import Text
from dragoman.session.events import AgentMessage
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import (
    Batch,
    Lease,
    Owner,
    Said,
    SessionChange,
    SessionRecord,
    StoredEvent,
    encode_event,
)
from dragoman.store.sqlite.database import FILE_NAME, Database
from dragoman.store.sqlite.store import SqliteStore
from dragoman.store.store_limits import StoreLimits

Opens: TypeAlias = Callable[..., AbstractAsyncContextManager[Store]]
"""May be called with limits."""

ME = Owner("me", "machine", 1, "today", "here")
YOU = Owner("you", "machine", 2, "today", "there")


@asynccontextmanager
async def on_disk(
    directory: Path, limits: StoreLimits | None = None
) -> AsyncGenerator[SqliteStore]:
    store = await open_store(directory, limits)
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def in_memory(_: Path, limits: StoreLimits | None = None) -> AsyncGenerator[SqliteStore]:
    store = await open_store(None, limits)
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def in_postgres(directory: Path, limits: StoreLimits | None = None) -> AsyncGenerator[Store]:
    """On an empty database; the second one that is opened at a time shares it."""
    store = await open_postgres(_database(directory), directory, limits)
    try:
        yield store
    finally:
        await store.aclose()


@cache
def _database(_: Path) -> str:
    """Each test has a directory of its own, and so a database."""
    return empty_database()


KINDS: dict[str, Callable[..., AbstractAsyncContextManager[Store]]] = {
    "sqlite": on_disk,
    "sqlite in memory": in_memory,
    "postgresql": in_postgres,
}


def record(session_id: str = "s", **fields: Any) -> SessionRecord:
    given: dict[str, Any] = {"agent": "demo", "cwd": "/project", "created_at": 1, "updated_at": 1}
    return SessionRecord(id=session_id, **(given | fields))


def nobody_knows(_: Owner) -> None:
    """Whether an owner is there: then its lease decides."""


async def acquire(store: Store, session_id: str = "s", owner: Owner = ME) -> Lease:
    return await store.acquire(session_id, owner, seconds=60, gone=nobody_knows)


async def begin(store: Store, session_id: str = "s", owner: Owner = ME) -> Lease:
    """A new session, and the right to write it."""
    await store.create_session(record(session_id, cwd=f"/project/{session_id}"))
    return await acquire(store, session_id, owner)


def body(seq: int, text: str = "word") -> bytes:
    return encode_event(AgentMessage(Text(text), seq=seq, at=float(seq)))


def batch(
    first: int,
    count: int = 1,
    *,
    change: SessionChange | None = None,
    said: Sequence[Said] = (),
) -> Batch:
    events = [body(seq) for seq in range(first, first + count)]
    return Batch(first_seq=first, events=events, change=change or SessionChange(), said=list(said))


async def fill(store: Store, lease: Lease, count: int, after: int = 0) -> None:
    """Events from the one behind `after` on, in batches of a thousand."""
    for first in range(after + 1, after + count + 1, 1000):
        await store.append(lease, batch(first, min(1000, after + count + 1 - first)))


async def whole(store: Store, session_id: str = "s", page: int = 1000) -> list[StoredEvent]:
    """Every event of a session, read in pages."""
    found: list[StoredEvent] = []
    while some := await store.events(session_id, after=len(found), limit=page):
        found += some
    return found


async def renewed(directory: Path) -> None:
    """Wait until a lease of the store in SQLite there ends later than now."""
    with closing(Database(str(directory / FILE_NAME))) as db:
        ends = "SELECT max(expires_at) FROM session_leases"
        first = db.rows(ends)
        await until(lambda: db.rows(ends) > first)


async def cut_short(store: Store, work: Coroutine[Any, Any, Any], portions: int) -> None:
    """As a kill does: what is committed stays."""
    committed = 0

    def count() -> None:
        nonlocal committed
        committed += 1
        if committed > portions:
            task.cancel()

    task = asyncio.create_task(work)
    end = store.on_change(count)
    with suppress(asyncio.CancelledError):
        await task
    end()
    assert task.cancelled()
