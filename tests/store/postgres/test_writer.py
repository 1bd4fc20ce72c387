"""What is not written yet is on the disk while the database is away; what never can be is in a file
that has nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from store.postgres.stores import opened, outboxes, until
from store.stores import YOU, batch, begin, body, whole
from support.database_cable import cable_to
from support.peers import SECONDS
from support.postgres import empty_database

from dragoman.errors import LeaseLost
from dragoman.store.outage import Outbox
from dragoman.store.postgres.database import Address, Database
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.records import Batch, Lease


async def taken_over(other: PostgresStore, *events: bytes) -> None:
    lease = await other.acquire("s", YOU, seconds=60, gone=lambda _: True)
    if events:
        last = len(await whole(other))
        await other.append(lease, Batch(first_seq=last + 1, events=list(events)))


def set_aside(directory: Path) -> list[bytes]:
    files = (directory / "undelivered").glob("*.jsonl")
    return [line for path in files for line in path.read_bytes().splitlines()]


async def test_what_comes_while_a_connection_takes_long_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, tried, may_go_on = Database.connect, asyncio.Event(), asyncio.Event()

    async def connect(address: Address) -> Database:
        tried.set()
        await may_go_on.wait()
        return await original(address)

    async with cable_to(empty_database()) as cable, opened(cable.address, tmp_path) as store:
        lease = await begin(store)
        monkeypatch.setattr(Database, "connect", connect)
        cable.cut()
        cable.mend()
        appends = [asyncio.create_task(store.append(lease, batch(1)))]
        await tried.wait()
        appends += [asyncio.create_task(store.append(lease, batch(seq))) for seq in (2, 3)]
        try:
            async with asyncio.timeout(SECONDS):
                await until(lambda: all(store.has_kept("s", seq) for seq in (1, 2, 3)))
            assert len(outboxes(tmp_path)) == 1
            assert not store.has_kept("s", 4)
            assert not store.has_kept("another", 1)
        finally:
            may_go_on.set()
        await asyncio.gather(*appends)
        assert [event.body for event in await whole(store)] == [body(seq) for seq in (1, 2, 3)]
        await until(lambda: not outboxes(tmp_path))
        assert not store.has_kept("s", 1)


async def test_what_is_under_way_when_others_find_the_database_away_is_kept(
    tmp_path: Path,
) -> None:
    async with cable_to(empty_database()) as cable, opened(cable.address, tmp_path) as store:
        lease = await begin(store)
        cable.is_pinched = True
        appended = asyncio.create_task(store.append(lease, batch(1, 3)))
        store.outage.begins(store.outage.error())
        try:
            async with asyncio.timeout(SECONDS):
                await until(lambda: store.has_kept("s", 3))
        finally:
            cable.cut()
            cable.mend()
        await appended
        assert len(await whole(store)) == 3
        await until(lambda: not outboxes(tmp_path))


async def test_what_is_refused_is_set_aside_though_the_database_was_never_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = empty_database()
    async with (
        opened(address, tmp_path / "mine") as store,
        opened(address, tmp_path / "other") as other,
    ):
        lease = await begin(store)
        await taken_over(other, b"theirs")
        for refused in (batch(1, 2), batch(3, 0)):
            with pytest.raises(LeaseLost):
                await store.append(lease, refused)
        assert set_aside(tmp_path / "mine") == [body(1), body(2)]
        assert "2 of its events are only in" in caplog.text
        assert "0 of its events are only in" not in caplog.text


async def test_what_is_on_record_is_not_set_aside_when_only_the_reply_was_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = empty_database()
    async with (
        opened(address, tmp_path / "other") as other,
        cable_to(address) as cable,
        opened(cable.address, tmp_path / "mine") as store,
    ):
        lease = await begin(store)
        cable.breaks_back = b"COMMIT\0"
        appends = [asyncio.create_task(store.append(lease, batch(1, 2)))]
        await until(lambda: cable.is_cut)
        appends.append(asyncio.create_task(store.append(lease, batch(3))))
        await until(lambda: store.has_kept("s", 3))
        await taken_over(other, b"theirs")
        cable.mend()
        results = await asyncio.gather(*appends, return_exceptions=True)
        assert [type(each) for each in results] == [LeaseLost, LeaseLost]
        found = [event.body for event in await whole(other)]
        assert found == [body(1), body(2), b"theirs"]
        assert set_aside(tmp_path / "mine") == [body(3)]
        assert "1 of its events are only in" in caplog.text


async def test_many_batches_of_a_session_are_set_aside_at_once_and_stop_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = Outbox.set_aside, list[tuple[int, int]]()

    def noted(box: Outbox, lease: Lease, events: Sequence[bytes]) -> None:
        calls.append((threading.get_ident(), len(events)))
        original(box, lease, events)

    monkeypatch.setattr(Outbox, "set_aside", noted)
    address = empty_database()
    async with (
        opened(address, tmp_path / "other") as other,
        cable_to(address) as cable,
        opened(cable.address, tmp_path / "mine") as store,
    ):
        lease = await begin(store)
        cable.cut()
        appends = [asyncio.create_task(store.append(lease, batch(seq))) for seq in range(1, 301)]
        await until(lambda: store.has_kept("s", 300))
        await taken_over(other, b"theirs")
        cable.mend()
        results = await asyncio.gather(*appends, return_exceptions=True)
        assert all(isinstance(each, LeaseLost) for each in results)
    [(thread, count)] = calls
    assert thread != threading.get_ident()
    assert count == 300
    assert set_aside(tmp_path / "mine") == [body(seq) for seq in range(1, 301)]
