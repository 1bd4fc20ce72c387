"""A long session is copied bit by bit: nobody waits for that, and neither end is lost sight of.
It is read in pages, each for the cost of one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from store.postgres.stores import Noting, opened, rows_read
from store.stores import ME, YOU, batch, begin, body, whole
from support.postgres import empty_database

from dragoman.errors import LeaseLost, UnknownSession
from dragoman.store.postgres import events
from dragoman.store.postgres.database import Address, Database
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.records import Lease, Snapshot
from dragoman.store.store_limits import StoreLimits

COUNT = 25


async def copied(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[PostgresStore, Lease], Awaitable[object]],
) -> tuple[int, list[bytes], Snapshot | None]:
    """What a copy of 25 events has, ten at a time: before the second ten another host, whose the
    source is, does something."""
    address, original, calls = empty_database(), events.copy_some, list[int]()
    limits = StoreLimits(copy_events=10)
    async with (
        opened(address, folder / "a", limits) as store,
        opened(address, folder / "b") as other,
    ):
        lease = await begin(other)
        await other.append(lease, batch(1, COUNT))
        await other.save_snapshot(lease, Snapshot(COUNT, b"state"))

        async def copy_some(db: Database, **given: Any) -> bool:
            calls.append(1)
            if len(calls) == 2:
                async with asyncio.timeout(60):
                    await happens(other, lease)
            return await original(db, **given)

        monkeypatch.setattr(events, "copy_some", copy_some)
        last = await store.copy_events("s", await begin(store, "copy", YOU))
        found = await whole(store, "copy")
        positions = [event.position for event in found]
        assert positions == sorted(positions)
        return last, [event.body for event in found], await store.snapshot("copy")


async def test_the_source_goes_on_and_the_copy_ends_where_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def goes_on(other: PostgresStore, lease: Lease) -> None:
        await other.append(lease, batch(COUNT + 1, 5))
        await other.save_snapshot(lease, Snapshot(COUNT + 5, b"later"))

    last, bodies, snapshot = await copied(tmp_path, monkeypatch, goes_on)
    assert last == COUNT
    assert bodies == [body(seq) for seq in range(1, COUNT + 1)]
    assert snapshot == Snapshot(COUNT, b"state")


async def test_a_source_that_is_deleted_meanwhile_is_not_copied_by_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownSession):
        await copied(tmp_path, monkeypatch, lambda other, lease: other.delete_session("s", lease))


async def test_who_loses_the_copy_meanwhile_writes_no_more_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def takes(other: PostgresStore, _: Lease) -> None:
        await other.acquire("copy", ME, seconds=60, gone=lambda _: True)
        assert await whole(other, "copy") == []

    with pytest.raises(LeaseLost):
        await copied(tmp_path, monkeypatch, takes)


async def test_large_events_are_copied_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = events.copy_some, list[bool]()

    async def copy_some(db: Database, **given: Any) -> bool:
        calls.append(await original(db, **given))
        return calls[-1]

    monkeypatch.setattr(events, "copy_some", copy_some)
    limits = StoreLimits(read_bytes=len(body(1)) * 2)
    async with opened(empty_database(), tmp_path, limits) as store:
        await store.append(await begin(store), batch(1, 5))
        assert await store.copy_events("s", await begin(store, "copy")) == 5
        assert calls == [True, True, False]
        assert len(await whole(store, "copy")) == 5


MANY_SESSIONS = """
INSERT INTO dragoman.sessions (id, agent, cwd, created_at, updated_at, renamed, status, archived,
    additional_directories, last_seq)
SELECT 's' || n, 'a', '/', n, n, false, 'idle', false, '[]', CASE n WHEN 1 THEN 30000 ELSE 20 END
FROM generate_series(1, 2000) n
"""
ONE_OF_THEM_LONG = """
INSERT INTO dragoman.events (session, seq, position, body)
SELECT key, n, row_number() OVER (), 'x'::bytea FROM dragoman.sessions,
    generate_series(1, CASE id WHEN 's1' THEN 30000 ELSE 20 END) n ORDER BY key % 7, n
"""


async def test_a_page_of_a_long_session_costs_a_page(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path):
        pass
    db = Noting(await Database.connect(Address(address)), Address(address))
    for statement in (MANY_SESSIONS, ONE_OF_THEM_LONG, "ANALYZE"):
        await db.run(statement)
    [page] = await events.events(db, [events.WantedEvents("s1", 7, 1000)])
    assert [(each.session_id, each.seq) for each in page] == [("s1", n) for n in range(8, 1008)]
    [(statement, values)] = db.asked
    [([explained],)] = await db.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
    assert rows_read(explained["Plan"]) == 1000
    await db.close()
