"""Several hosts on one database: one order for all events, fenced writers, news at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from store.postgres.stores import alive, opened, until
from store.stores import ME, YOU, acquire, batch, begin, body, record, whole
from support.postgres import bare_database, empty_database

from dragoman.errors import LeaseLost, StoreError
from dragoman.store.postgres import owners, tables
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.store import PostgresStore, open_postgres
from dragoman.store.records import Lease, Snapshot, StoredEvent
from dragoman.store.store_limits import StoreLimits


async def follow(store: PostgresStore, count: int) -> list[StoredEvent]:
    """As the page of all sessions does: by cursor, never looking back."""
    fresh, found, after = asyncio.Event(), list[StoredEvent](), 0
    end = store.on_change(fresh.set)
    while len(found) < count:
        fresh.clear()
        some = await store.all_events(after=after, limit=50)
        if some:
            after = some[-1].position
            found += some
        else:
            await fresh.wait()
    end()
    return found


async def test_a_reader_by_cursor_sees_every_event_of_every_host_once(tmp_path: Path) -> None:
    address, hosts, rounds = empty_database(), 4, 40
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(opened(address, tmp_path / str(number)))
            for number in range(hosts + 1)
        ]
        leases = [await begin(store, f"s{n}") for n, store in enumerate(stores[:-1])]

        async def write(number: int) -> None:
            for seq in range(1, rounds + 1):
                await stores[number].append(leases[number], batch(seq))

        reader = asyncio.create_task(follow(stores[-1], hosts * rounds))
        await asyncio.gather(*map(write, range(hosts)))
        found = await reader
        assert [event.position for event in found] == list(range(1, hosts * rounds + 1))
        for number in range(hosts):
            mine = [event.seq for event in found if event.session_id == f"s{number}"]
            assert mine == list(range(1, rounds + 1))


async def test_a_host_that_was_replaced_is_refused_everything(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path / "a") as store, opened(address, tmp_path / "b") as other:
        old = await begin(store)
        await store.append(old, batch(1))
        command = await store.send("s", b"x")
        new = await other.acquire("s", YOU, seconds=60, gone=lambda _: True)
        for refused in (
            store.append(old, batch(2)),
            store.save_snapshot(old, Snapshot(1, b"")),
            store.copy_events("s", old),
            store.delete_session("s", old),
        ):
            with pytest.raises(LeaseLost):
                await refused
        assert await store.take([old]) == []
        assert await store.renew(ME, seconds=60) == set()
        assert [each.id for each in await other.take([new])] == [command]
        await other.append(new, batch(2))
        assert [event.body for event in await whole(store)] == [body(1), body(2)]


WRITES: dict[str, Callable[[PostgresStore, Lease], Awaitable[object]]] = {
    "append": lambda store, old: store.append(old, batch(2)),
    "snapshot": lambda store, old: store.save_snapshot(old, Snapshot(1, b"")),
    "copy": lambda store, old: store.copy_events("s", old),
    "delete": lambda store, old: store.delete_session("s", old),
    "take": lambda store, old: store.take([old]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
async def test_a_host_that_is_replaced_while_its_write_waits_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[PostgresStore, Lease], Awaitable[object]],
) -> None:
    address, original = empty_database(), owners.acquire
    has_taken, goes_on = asyncio.Event(), asyncio.Event()

    def paused(*given: Any) -> Callable[[Database], Awaitable[Lease]]:
        plan = original(*given)

        async def take(db: Database) -> Lease:
            lease, last = plan.decide([await db.rows(*each) for each in plan.first])
            for each in last:
                await db.run(*each)
            has_taken.set()
            await goes_on.wait()
            return lease

        return take

    async with opened(address, tmp_path / "a") as store, opened(address, tmp_path / "b") as other:
        old = await begin(store)
        await store.append(old, batch(1))
        await store.send("s", b"x")
        monkeypatch.setattr(owners, "acquire", paused)
        taking = asyncio.create_task(other.acquire("s", YOU, seconds=60, gone=lambda _: True))
        await has_taken.wait()
        late = asyncio.ensure_future(write(store, old))
        await waits_for_lock(address)
        goes_on.set()
        new = await taking
        [result] = await asyncio.gather(late, return_exceptions=True)
        assert isinstance(result, LeaseLost) or result == []
        assert len(await whole(store)) == 1
        assert await store.snapshot("s") is None
        assert len(await other.take([new])) == 1


async def waits_for_lock(address: str) -> None:
    """Somebody does."""
    query = "SELECT 1 FROM pg_locks WHERE NOT granted"
    with psycopg.connect(address, autocommit=True) as connection:
        while connection.execute(query).fetchone() is None:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)


async def test_a_host_that_stops_in_a_commit_is_cut_off_by_those_who_wait(tmp_path: Path) -> None:
    address = empty_database()
    with psycopg.connect(address) as stopped, psycopg.connect(address) as another_program:
        async with opened(address, tmp_path) as store:
            lease = await begin(store)
            another_program.execute("CREATE TEMPORARY TABLE mine AS SELECT * FROM dragoman.head")
            stopped.execute("UPDATE dragoman.head SET position = position + 1")
            await store.append(lease, batch(1, 3))
            assert [event.position for event in await whole(store)] == [1, 2, 3]
        with pytest.raises(psycopg.OperationalError):
            stopped.execute("SELECT 1")
        assert another_program.execute("SELECT count(*) FROM mine").fetchone() == (1,)


async def test_another_hosts_write_wakes_long_before_the_poll(tmp_path: Path) -> None:
    address, limits = empty_database(), StoreLimits(news_seconds=3600.0)
    async with (
        opened(address, tmp_path / "a", limits) as store,
        opened(address, tmp_path / "b", limits) as other,
    ):
        woken: list[int] = []
        end = store.on_change(lambda: woken.append(1))
        await until(lambda: bool(woken))  # it listens now
        for name in ("x", "y"):
            woken.clear()
            await other.create_session(record(name, cwd=name))
            await until(lambda: bool(woken))
            assert await store.session(name) is not None
        end()


async def test_a_hint_that_was_lost_is_made_up_for_by_the_poll(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path, StoreLimits(news_seconds=0.05)) as store:
        woken: list[int] = []
        store.on_change(lambda: woken.append(1))
        await until(lambda: len(woken) > 1)
        with psycopg.connect(address, autocommit=True) as silent:
            silent.execute("INSERT INTO dragoman.hosts VALUES ('h', '', '', now(), now())")
        woken.clear()
        await until(lambda: len(woken) > 1)


async def test_many_readers_with_nothing_to_read_cost_one_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    originals = Database.rows, Database.ask

    async def rows(db: Database, statement: str, values: Sequence[Any] = ()) -> object:
        asked.append(statement)
        return await originals[0](db, statement, values)

    async def ask(db: Database, statement: str, values: Sequence[Any] = ()) -> object:
        asked.append(statement)
        return await originals[1](db, statement, values)

    async with opened(empty_database(), tmp_path) as store:
        leases = [await begin(store, f"s{number}") for number in range(40)]
        for lease in leases:
            await store.append(lease, batch(1, 2))
        monkeypatch.setattr(Database, "rows", rows)
        monkeypatch.setattr(Database, "ask", ask)
        await store.append(leases[7], batch(3))
        asked.clear()
        found = await asyncio.gather(*(store.events(lease.session_id, after=2) for lease in leases))
        assert [len(each) for each in found] == [1 if n == 7 else 0 for n in range(40)]
        assert len(asked) == 2


async def test_processes_that_open_a_new_database_at_once_make_it_once(tmp_path: Path) -> None:
    address = bare_database()
    stores = await asyncio.gather(
        *(open_postgres(address, tmp_path / str(number)) for number in range(6))
    )
    try:
        leases = [await begin(store, f"s{number}") for number, store in enumerate(stores)]
        assert len(leases) == 6
        assert len(await stores[0].owned()) == 6
    finally:
        await asyncio.gather(*(store.aclose() for store in stores))


async def test_a_database_of_a_later_version_is_refused(tmp_path: Path) -> None:
    address = bare_database()
    async with opened(address, tmp_path):
        pass
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE dragoman.steps SET taken = %s", (len(tables.STEPS) + 1,))
    with pytest.raises(StoreError, match="written by a later version"):
        await open_postgres(address, tmp_path)
    bare_database()


async def test_a_deletion_that_was_cut_short_is_finished_at_the_next_start(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 5))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE dragoman.sessions SET deleted = true")
        async with opened(address, tmp_path) as store:
            assert await store.session("s") is None
        assert connection.execute("SELECT count(*) FROM dragoman.events").fetchone() == (0,)


async def test_a_lease_is_taken_by_the_databases_clock(tmp_path: Path) -> None:
    async with opened(empty_database(), tmp_path) as store:
        await store.create_session(record())
        await store.acquire("s", ME, seconds=0.05, gone=lambda _: None)
        while await alive(store):  # noqa: ASYNC110 - no event tells the time
            await asyncio.sleep(0.01)
        await acquire(store, owner=YOU)
        assert await store.owner("s") == YOU
