"""Readers of all events see a copy when it is whole, once, and everything that came meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from store.stores import YOU, Opens, batch, begin, body, cut_short, on_disk, whole

from dragoman.errors import LeaseLost, SequenceGap
from dragoman.store.base import Store
from dragoman.store.records import Batch, Lease, Said, SessionChange, StoredEvent
from dragoman.store.sqlite.database import FILE_NAME, Database
from dragoman.store.sqlite.events import append_all
from dragoman.store.store_limits import StoreLimits

COUNT = 120
LONG = batch(1, COUNT, said=[Said(n, "agent", f"shared words {n}") for n in range(1, COUNT + 1)])


SMALL = StoreLimits(portion_bytes=2 * len(body(1)), copy_events=2)


async def feed(store: Store, after: int = 0, page: int = 7) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    while some := await store.all_events(after=after, limit=page):
        found += some
        after = found[-1].position
    return found


def named(events: list[StoredEvent]) -> list[tuple[str, int]]:
    return [(event.session_id, event.seq) for event in events]


def parts(count: int = COUNT, size: int = 10) -> Iterator[Batch]:
    for first in range(1, count, size):
        said = [Said(first, "agent", f"shared words {first}")]
        yield batch(first, size, said=said)


async def test_a_copy_is_in_the_feed_when_it_is_whole_and_nothing_is_lost(opens: Opens) -> None:
    async with opens(SMALL) as store:
        lease, fork = await begin(store), await begin(store, "fork", YOU)
        await store.append(lease, LONG)
        copying = asyncio.create_task(store.copy_events("s", fork))
        seen = await feed(store)
        written = COUNT
        while not copying.done():
            written += 1
            await store.append(lease, batch(written))
            seen += await feed(store, seen[-1].position)
            record = await store.session("fork")
            assert record is not None
            assert record.last_seq or ("fork", 1) not in named(seen)
        await store.append(fork, batch(COUNT + 1))
        seen += await feed(store, seen[-1].position)
        positions = [event.position for event in seen]
        assert positions == sorted(set(positions))
        mine = [each for each in named(seen) if each[0] == "s"]
        assert mine == [("s", seq) for seq in range(1, written + 1)]
        copied = [place for place, each in enumerate(named(seen)) if each[0] == "fork"]
        assert copied[:COUNT] == list(range(copied[0], copied[0] + COUNT))  # in one piece
        assert [seen[place].seq for place in copied] == list(range(1, COUNT + 2))
        assert written > COUNT + 5


async def test_a_reader_continues_from_any_position_of_copies(opens: Opens) -> None:
    async with opens(SMALL) as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 5))
        for number, name in enumerate(("one", "two", "three"), 6):
            await store.copy_events("s", fork := await begin(store, name, YOU))
            await store.append(fork, batch(number))
            await store.append(lease, batch(number))
        await store.delete_session("two", Lease("two", "you", 1))
        everything = await feed(store)
        assert len(everything) == 8 + (5 + 1) + (7 + 1)
        last = await store.last_position()
        assert everything[-1].position <= last
        for after in range(last + 2):
            rest = [event for event in everything if event.position > after]
            for page in (1, 3, 1000):
                assert await feed(store, after, page) == rest
        for name in ("s", "one", "three"):
            mine = [event for event in everything if event.session_id == name]
            assert await whole(store, name) == mine


async def test_what_is_left_of_a_copy_is_in_no_feed(opens: Opens) -> None:
    async with opens(SMALL) as store:
        await store.append(await begin(store), LONG)
        fork = await begin(store, "fork", YOU)
        await cut_short(store, store.copy_events("s", fork), 5)
        assert {name for name, _ in named(await feed(store))} == {"s"}
        assert await whole(store, "fork") == []
        assert {hit.session_id for hit in await store.search("shared", limit=2 * COUNT)} == {"s"}
        await store.copy_events("s", fork)
        assert named(await feed(store))[COUNT:] == [("fork", n) for n in range(1, COUNT + 1)]
        assert {hit.session_id for hit in await store.search("shared", limit=2 * COUNT)} == {
            "s",
            "fork",
        }


async def test_texts_that_are_not_whole_do_not_crowd_out_others(opens: Opens) -> None:
    async with opens(StoreLimits()) as store:
        lease = await begin(store)
        await store.append(lease, batch(1, said=[Said(1, "agent", "shared words")]))
        filling = await begin(store, "other", YOU)
        many = batch(1, 400, said=[Said(n, "agent", f"shared words {n}") for n in range(1, 401)])
        failure = RuntimeError("cut short")

        def torn() -> Iterator[Batch]:
            yield many
            raise failure

        with pytest.raises(RuntimeError):
            await store.fill(filling, torn(), SessionChange())
        assert [hit.session_id for hit in await store.search("shared")] == ["s"]


async def test_a_session_that_is_filled_is_seen_when_it_is_whole(opens: Opens) -> None:
    async with opens(SMALL) as store:
        lease, other = await begin(store), await begin(store, "other", YOU)
        change = SessionChange(agent_session_id="theirs", title="T")
        written, filled = 0, list[Batch]()

        def until_others_wrote() -> Iterator[Batch]:
            while written < 3:
                first = 10 * len(filled) + 1
                said = [Said(first, "agent", f"shared words {first}")]
                filled.append(batch(first, 10, said=said))
                yield filled[-1]

        filling = asyncio.create_task(store.fill(lease, until_others_wrote(), change))
        while not filling.done():
            written += 1
            await store.append(other, batch(written))
            seen, hits, events = await feed(store), await store.search("shared"), await whole(store)
            record = await store.session("s")
            assert record is not None
            if not record.last_seq:
                assert record.agent_session_id is record.title is None
                assert ("s", 1) not in named(seen)
                assert hits == events == []
        count = 10 * len(filled)
        assert await filling == count
        stored = [event.body for event in await whole(store)]
        assert stored == [event for each in filled for event in each.events]
        assert named(await feed(store)).count(("s", count)) == 1
        assert len(await store.search("shared", limit=count)) == len(filled)
        record = await store.session("s")
        assert record is not None
        assert (record.last_seq, record.agent_session_id, record.title) == (count, "theirs", "T")


async def test_what_is_left_of_a_session_that_was_not_filled_is_deleted_with_it(
    opens: Opens,
) -> None:
    def cut() -> Iterator[Batch]:
        some = parts()
        yield next(some)
        yield next(some)
        raise RuntimeError("cut")

    async with opens(SMALL) as store:
        lease = await begin(store)
        with pytest.raises(RuntimeError, match="cut"):
            await store.fill(lease, cut(), SessionChange())
        assert await feed(store) == []
        assert await store.search("shared") == []
        await store.delete_session("s", lease)
        await store.fill(await begin(store), parts(), SessionChange())
        assert named(await feed(store)) == [("s", n) for n in range(1, COUNT + 1)]


async def test_only_a_new_session_of_the_lease_is_filled_and_without_a_gap(opens: Opens) -> None:
    async with opens(SMALL) as store:
        lease = await begin(store)
        with pytest.raises(SequenceGap):
            await store.fill(lease, [batch(1), batch(3)], SessionChange())
        with pytest.raises(LeaseLost):
            await store.fill(Lease("s", "you", lease.epoch), [batch(2)], SessionChange())
        assert await store.fill(lease, [batch(2)], SessionChange()) == 2
        with pytest.raises(SequenceGap):
            await store.fill(lease, [batch(3)], SessionChange())


async def test_an_unfinished_copy_of_an_earlier_version_is_in_no_feed(tmp_path: Path) -> None:
    """It stands among the others."""
    async with on_disk(tmp_path, SMALL) as store:
        lease, fork = await begin(store), await begin(store, "fork", YOU)
        await store.append(lease, batch(1, 2))
        await store.append(fork, batch(1, 2))
        with closing(Database(str(tmp_path / FILE_NAME))) as db:
            db.run("UPDATE sessions SET last_seq = 0 WHERE id = 'fork'")
        assert named(await feed(store)) == [("s", 1), ("s", 2)]
        await store.append(lease, batch(3))
        assert await store.copy_events("s", fork) == 3
        copied = [("fork", 1), ("fork", 2), ("fork", 3)]
        assert named(await feed(store)) == [("s", 1), ("s", 2), ("s", 3), *copied]


async def test_a_batch_without_events_has_the_position_of_the_last_one(opens: Opens) -> None:
    async with opens(SMALL) as store:
        lease, fork = await begin(store), await begin(store, "fork", YOU)
        await store.append(lease, batch(1, 3))
        await store.copy_events("s", fork)
        await store.append(other := await begin(store, "other"), batch(1, 2))
        nothing = batch(4, 0, change=SessionChange(title="T"))
        for name, each in (("s", lease), ("fork", fork)):
            assert await store.append(each, nothing) == (await whole(store, name))[-1].position
        await store.append(fork, batch(4))
        await store.append(other, batch(3))
        last = await store.append(fork, batch(5, 0))
        assert last == (await whole(store, "fork"))[-1].position


async def test_a_batch_that_was_stored_before_keeps_its_position(tmp_path: Path) -> None:
    """Its commit may have been carried out though it was reported as failed."""
    async with on_disk(tmp_path) as store:
        lease, other = await begin(store), await begin(store, "other", YOU)
        position = await store.append(lease, batch(1, 3))
        await store.append(other, batch(1, 2))
        with closing(Database(str(tmp_path / FILE_NAME))) as db:
            tried = [(lease, batch(1, 3), True), (lease, batch(4), False)]
            assert append_all(db, tried) == [position, position + 3]
