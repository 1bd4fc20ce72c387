"""A search that takes long is given up, and holds nobody up before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from store.postgres.stores import opened
from store.stores import record
from support.postgres import empty_database

from dragoman.errors import StoreAway, StoreError
from dragoman.store.postgres import store as stores
from dragoman.store.postgres.database import Database
from dragoman.store.records import Hit


async def slow(db: Database, text: str, limit: int) -> list[Hit]:
    await db.run("SELECT pg_sleep(50)")
    return []


@pytest.mark.within(40)
async def test_nobody_waits_for_a_search_and_it_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "SEARCH_SECONDS", 2.0)
    monkeypatch.setattr(stores, "search", slow)
    async with opened(empty_database(), tmp_path) as store:
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
