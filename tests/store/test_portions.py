"""In SQLite all sessions share one writer: a long one is copied and deleted in portions."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import pytest
from store.stores import YOU, batch, begin, body, cut_short, in_memory, on_disk, whole

from dragoman.store.records import Said
from dragoman.store.sqlite.database import FILE_NAME, Database
from dragoman.store.sqlite.recovery import recover
from dragoman.store.sqlite.store import SqliteStore
from dragoman.store.store_limits import StoreLimits

EVENTS = 40
SMALL = StoreLimits(portion_bytes=2 * len(body(1)))
"""Each portion has two events, or some texts."""
LONG = batch(1, EVENTS, said=[Said(n, "agent", f"shared words {n}") for n in range(1, EVENTS + 1)])


@pytest.fixture(params=[on_disk, in_memory])
def opened(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AbstractAsyncContextManager[SqliteStore]:
    return request.param(tmp_path / "home", SMALL)


async def found(store: SqliteStore) -> list[str]:
    return [hit.session_id for hit in await store.search("shared", limit=200)]


async def test_nobody_waits_for_a_long_copy_or_sees_half_of_it(
    opened: AbstractAsyncContextManager[SqliteStore],
) -> None:
    async with opened as store:
        lease = await begin(store)
        await store.append(lease, LONG)
        fork = await begin(store, "fork", YOU)
        copying = asyncio.create_task(store.copy_events("s", fork))
        await asyncio.sleep(0)
        await store.append(lease, batch(EVENTS + 1))
        assert not copying.done()
        while not copying.done():
            hits, copied = await found(store), await store.events("fork")
            seen = await store.session("fork")
            assert seen is not None
            # What is looked at later may be finished already, what is looked at earlier may not.
            assert [len(copied), seen.last_seq] in ([0, 0], [0, EVENTS], [EVENTS, EVENTS])
            assert hits.count("fork") in ((0, EVENTS) if copied else (0,))
        assert await copying == EVENTS
        assert [e.body for e in await whole(store, "fork")] == LONG.events
        assert sorted(await found(store)) == ["fork"] * EVENTS + ["s"] * EVENTS


@pytest.mark.parametrize("portions", [1, 5, 25, 50])
async def test_a_copy_that_was_cut_short_is_finished_by_the_next(
    opened: AbstractAsyncContextManager[SqliteStore], portions: int
) -> None:
    async with opened as store:
        lease = await begin(store)
        await store.append(lease, LONG)
        fork = await begin(store, "fork", YOU)
        await cut_short(store, store.copy_events("s", fork), portions)
        assert await whole(store, "fork") == []
        assert set(await found(store)) == {"s"}
        await store.append(lease, batch(EVENTS + 1))
        assert await store.copy_events("s", fork) == EVENTS + 1
        assert [e.body for e in await whole(store, "fork")] == [e.body for e in await whole(store)]
        assert sorted(await found(store)) == ["fork"] * EVENTS + ["s"] * EVENTS
        assert await store.append(fork, batch(EVENTS + 2))


async def test_a_copy_that_was_cut_short_is_not_rebuilt_after_damage(
    tmp_path: Path,
) -> None:
    async with on_disk(tmp_path, SMALL) as store:
        await store.append(await begin(store), LONG)
        await cut_short(store, store.copy_events("s", await begin(store, "fork", YOU)), 5)
    recover(tmp_path)
    async with on_disk(tmp_path) as store:
        assert await whole(store, "fork") == []
        assert len(await whole(store)) == EVENTS


async def test_nobody_waits_for_a_long_deletion(
    opened: AbstractAsyncContextManager[SqliteStore],
) -> None:
    async with opened as store:
        lease, other = await begin(store), await begin(store, "other")
        await store.append(lease, LONG)
        deleting = asyncio.create_task(store.delete_session("s", lease))
        while await store.session("s") is not None:
            pass
        position = await store.append(other, batch(1))
        assert not deleting.done()
        assert [event.position for event in await store.all_events()] == [position]
        assert await found(store) == []
        await deleting


@pytest.mark.parametrize("portions", [1, 5, 25])
async def test_a_deletion_that_was_cut_short_is_finished_by_the_next_process(
    tmp_path: Path, portions: int
) -> None:
    async with on_disk(tmp_path, SMALL) as store:
        lease = await begin(store)
        await store.append(lease, LONG)
        await cut_short(store, store.delete_session("s", lease), portions)
    assert rows(tmp_path) > 0
    async with on_disk(tmp_path, SMALL):
        pass
    assert rows(tmp_path) == 0


def rows(directory: Path) -> int:
    with closing(Database(str(directory / FILE_NAME))) as db:
        found = "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM said)"
        return db.rows(found)[0][0]
