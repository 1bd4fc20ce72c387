"""What every store promises about events: durable, dense, in order, fenced."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from store.stores import YOU, Opens, batch, begin, body, fill, record, whole

from dragoman.errors import LeaseLost, NameTaken, SequenceGap, UnknownSession
from dragoman.store.records import (
    Batch,
    Lease,
    Said,
    SessionChange,
    Snapshot,
    StoredEvent,
    decode_events,
)
from dragoman.store.store_limits import StoreLimits


async def test_events_are_read_as_they_were_appended(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        position = await store.append(lease, batch(1, 3))
        assert await store.append(lease, batch(4, 2)) == position + 2
        found = await whole(store)
        assert [event.seq for event in found] == [1, 2, 3, 4, 5]
        assert [event.body for event in found] == [body(seq) for seq in range(1, 6)]
        assert [event.position for event in found] == list(range(position - 2, position + 3))
        assert {event.session_id for event in found} == {"s"}
        assert found[2].decode().seq == 3


async def test_any_bytes_come_back_as_they_were(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        bodies = [b"", b"\0", b"\xff\xfe", "ü𝄞".encode(), b"x" * 3_000_000]
        await store.append(lease, Batch(first_seq=1, events=bodies))
        assert [event.body for event in await whole(store)] == bodies


def page_of(*bodies: bytes) -> list[StoredEvent]:
    return [StoredEvent(seq, "s", seq, each) for seq, each in enumerate(bodies, 1)]


def test_a_page_is_decoded_as_its_events_are() -> None:
    laid_out = body(2).replace(b",", b",\n", 1)
    page = page_of(body(1), laid_out, body(3))
    assert decode_events(page) == [event.decode() for event in page]
    assert decode_events([]) == []


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b"\xff", b'{"type":"\xff"}', b"1", body(7) + body(8), body(7) + b"\n"]
)
def test_a_page_with_a_damaged_event_fails_as_the_event_does(damaged: bytes) -> None:
    alone = StoredEvent(2, "s", 2, damaged)
    page = [*page_of(body(1)), alone, *page_of(body(3))]
    try:
        event = alone.decode()
    except msgspec.DecodeError:
        with pytest.raises(msgspec.DecodeError):
            decode_events(page)
    else:
        assert decode_events(page)[1] == event


async def test_the_record_follows_its_events(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        change = SessionChange(title="T", status="running", updated_at=7.5)
        await store.append(lease, batch(1, 4, change=change))
        found = await store.session("s")
        assert found is not None
        assert (found.last_seq, found.title, found.status, found.updated_at) == (
            4,
            "T",
            "running",
            7.5,
        )


async def test_a_batch_without_events_changes_the_record_alone(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        last = await store.append(lease, batch(1, 2))
        empty = Batch(first_seq=3, events=[], change=SessionChange(title="T"))
        assert await store.append(lease, empty) == last
        found = await store.session("s")
        assert found is not None
        assert (found.last_seq, found.title) == (2, "T")


@pytest.mark.parametrize("first", [0, 1, 2, 4, 5, -1])
async def test_events_that_do_not_follow_are_refused(opens: Opens, first: int) -> None:
    async with opens() as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 2))
        with pytest.raises(SequenceGap) as caught:
            await store.append(lease, batch(first, 2))
        assert (caught.value.expected, caught.value.got) == (3, first)
        assert len(await whole(store)) == 2
        await store.append(lease, batch(3))


async def test_a_lease_that_was_never_given_is_refused(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        for stranger in (
            Lease("s", "me", lease.epoch + 1),
            Lease("s", "me", lease.epoch - 1),
            Lease("s", "you", lease.epoch),
        ):
            with pytest.raises(LeaseLost):
                await store.append(stranger, batch(1))
            with pytest.raises(LeaseLost):
                await store.save_snapshot(stranger, Snapshot(1, b""))
        with pytest.raises(UnknownSession):
            await store.append(Lease("nobody", "me", 1), batch(1))
        assert await whole(store) == []


async def test_a_bad_batch_among_good_ones_fails_alone(opens: Opens) -> None:
    async with opens() as store:
        one, two = await begin(store, "one"), await begin(store, "two")
        await store.create_session(record("named", name="taken", cwd="/project/two"))
        results = await asyncio.gather(
            store.append(one, batch(1, 2)),
            store.append(two, batch(7)),
            store.append(Lease("one", "me", 99), batch(3)),
            store.append(one, batch(3)),
            store.append(two, batch(1, change=SessionChange(name="taken"))),
            store.append(two, batch(1, 3)),
            store.append(one, batch(5)),
            store.append(one, batch(4)),
            return_exceptions=True,
        )
        kinds = [type(each) for each in results]
        assert kinds == [int, SequenceGap, LeaseLost, int, NameTaken, int, SequenceGap, int]
        assert [e.seq for e in await whole(store, "one")] == [1, 2, 3, 4]
        assert [e.seq for e in await whole(store, "two")] == [1, 2, 3]


async def test_batches_that_wait_together_keep_the_order_of_their_calls(opens: Opens) -> None:
    async with opens() as store:
        leases = {name: await begin(store, name) for name in ("a", "b", "c")}
        calls = [
            store.append(leases[name], Batch(first_seq=seq, events=[f"{name}{seq}".encode()]))
            for seq in range(1, 101)
            for name in leases
        ]
        positions = await asyncio.gather(*calls)
        for index, name in enumerate(leases):
            found = await whole(store, name)
            assert [e.body for e in found] == [f"{name}{seq}".encode() for seq in range(1, 101)]
            assert [e.position for e in found] == positions[index::3]


async def test_whoever_stops_waiting_does_not_stop_the_writing(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        tasks = [asyncio.create_task(store.append(lease, batch(seq))) for seq in range(1, 51)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        settled = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(each, asyncio.CancelledError) for each in settled) == 25
        await store.append(lease, batch(51))
        assert [event.seq for event in await whole(store)] == list(range(1, 52))


async def test_a_cursor_gives_what_is_behind_it(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        await fill(store, lease, 25)
        assert [e.seq for e in await store.events("s", after=20)] == [21, 22, 23, 24, 25]
        assert [e.seq for e in await store.events("s", after=3, limit=2)] == [4, 5]
        assert await store.events("s", after=25) == []
        assert await store.events("nobody") == []


async def test_much_is_read_in_pieces(opens: Opens) -> None:
    async with opens(StoreLimits(read_bytes=1000)) as store:
        lease = await begin(store)
        bodies = [b"x" * 400] * 5 + [b"y" * 5000, b"z"]
        await store.append(lease, Batch(first_seq=1, events=bodies))
        assert len(await store.events("s")) == 2
        assert [len(e.body) for e in await store.events("s", after=5)] == [5000]
        assert [e.body for e in await whole(store)] == bodies
        assert len(await store.all_events()) == 2


async def test_the_events_of_all_sessions_have_one_order(opens: Opens) -> None:
    async with opens() as store:
        assert await store.last_position() == 0
        one, two = await begin(store, "one"), await begin(store, "two")
        await store.append(one, batch(1, 2))
        await store.append(two, batch(1))
        last = await store.append(one, batch(3))
        found = await store.all_events()
        assert [(e.session_id, e.seq) for e in found] == [
            ("one", 1),
            ("one", 2),
            ("two", 1),
            ("one", 3),
        ]
        assert [e.position for e in found] == sorted({e.position for e in found})
        assert await store.all_events(after=found[1].position, limit=1) == found[2:3]
        assert await store.last_position() == last == found[-1].position


async def test_a_snapshot_is_replaced_by_the_next(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        assert await store.snapshot("s") is None
        await store.append(lease, batch(1, 2))
        await store.save_snapshot(lease, Snapshot(1, b"one"))
        await store.save_snapshot(lease, Snapshot(2, b"\0two"))
        assert await store.snapshot("s") == Snapshot(2, b"\0two")
        assert await store.snapshot("nobody") is None


async def test_a_snapshot_of_more_than_there_is_does_not_count(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 2))
        await store.save_snapshot(lease, Snapshot(3, b"ahead"))
        assert await store.snapshot("s") is None


async def test_a_copy_has_the_same_events_and_goes_its_own_way(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 3, said=[Said(1, "user", "shared words")]))
        await store.save_snapshot(lease, Snapshot(2, b"so far"))
        fork = await begin(store, "fork", YOU)
        assert await store.copy_events("s", fork) == 3
        assert await store.snapshot("fork") == Snapshot(2, b"so far")
        await store.append(fork, batch(4))
        assert [e.body for e in await whole(store, "fork")] == [body(n) for n in (1, 2, 3, 4)]
        assert len(await whole(store)) == 3
        assert {hit.session_id for hit in await store.search("shared")} == {"s", "fork"}


async def test_a_copy_may_end_earlier(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        said = [Said(2, "user", "early"), Said(3, "user", "late")]
        await store.append(lease, batch(1, 3, said=said))
        await store.save_snapshot(lease, Snapshot(3, b"too new"))
        fork = await begin(store, "fork", YOU)
        assert await store.copy_events("s", fork, 2) == 2
        assert await store.snapshot("fork") is None
        assert [e.body for e in await whole(store, "fork")] == [body(1), body(2)]
        assert {hit.session_id for hit in await store.search("late")} == {"s"}
        assert {hit.session_id for hit in await store.search("early")} == {"s", "fork"}


async def test_a_copy_needs_an_empty_session_of_its_own_and_a_source(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 2))
        with pytest.raises(SequenceGap):
            await store.copy_events("s", lease)
        fork = await begin(store, "fork")
        with pytest.raises(UnknownSession):
            await store.copy_events("nobody", fork)
        with pytest.raises(LeaseLost):
            await store.copy_events("s", Lease("fork", "you", fork.epoch))
        assert await whole(store, "fork") == []
