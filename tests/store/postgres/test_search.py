"""A search that takes long is given up, and holds nobody up before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from store.postgres.stores import Noting, opened, rows_read
from store.stores import record
from support.postgres import empty_database

from dragoman.errors import StoreAway, StoreError
from dragoman.store.postgres import search
from dragoman.store.postgres import store as stores
from dragoman.store.postgres.database import Address, Database
from dragoman.store.records import Hit
from dragoman.store.sqlite.search import RANKED
from dragoman.store.store_limits import StoreLimits


async def slow(db: Database, text: str, limit: int) -> list[Hit]:
    await db.run("SELECT pg_sleep(500)")
    return []


async def test_nobody_waits_for_a_search_and_it_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "search", slow)
    async with opened(empty_database(), tmp_path, StoreLimits(search_seconds=2.0)) as store:
        await store.create_session(record())
        searching = asyncio.create_task(store.search("word"))
        await asyncio.sleep(0)
        assert await store.session("s") is not None
        assert await store.events("s") == []
        await store.rules.read()
        assert not searching.done()
        with pytest.raises(StoreError, match="took too long") as caught:
            await searching
        assert not isinstance(caught.value, StoreAway)
        assert store.away is None


AS_IF_A_MILLION = "UPDATE pg_class SET reltuples = 1000000 WHERE oid = 'dragoman.said'::regclass"
"""The planner goes another way where it believes that there are many."""
MANY_TEXTS = """
INSERT INTO dragoman.said (session, seq, kind, text, words)
SELECT n / 100, n % 100, 'agent', txt, to_tsvector('simple', txt) FROM (
    SELECT n, 'common ' || CASE WHEN n % 5000 = 0 THEN 'rare ' ELSE '' END || md5(n::text) AS txt
    FROM generate_series(1, 20000) n
) AS made
"""


async def test_a_search_reads_no_more_than_it_ranks_and_looks_through_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "NEWEST", 1000)
    address = empty_database()
    async with opened(address, tmp_path):
        pass
    db = Noting(await Database.connect(Address(address)), Address(address))
    for statement in (MANY_TEXTS, "ANALYZE dragoman.said", AS_IF_A_MILLION):
        await db.run(statement)
    read: dict[str, int] = {}
    for typed in ("common", "comm", '"common"', "rare", '"rare"', "common rare"):
        db.asked.clear()
        await search.search(db, typed, 20)
        read[typed] = max([await _rows_read(db, *each) for each in list(db.asked)])
    await db.close()
    assert {typed: rows for typed, rows in read.items() if rows > 1001 + RANKED} == {}


async def _rows_read(db: Database, statement: str, values: Sequence[Any]) -> int:
    [([explained],)] = await db.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
    return rows_read(explained["Plan"])
