"""The database goes away: events are kept on this host, delivered in order, and never twice."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from store.postgres.stores import alive, kept, opened, outboxes, until
from store.stores import ME, YOU, acquire, batch, begin, body, record, whole
from support.database_cable import Cable, cable_to
from support.postgres import empty_database, own_server

from dragoman.errors import LeaseLost, SessionOwned, StoreAway, StoreError
from dragoman.store.outage import Outage
from dragoman.store.postgres import link
from dragoman.store.postgres.database import Address
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import Batch, HostRecord, SessionFilter
from dragoman.store.store_limits import StoreLimits

PROGRAM = Path(__file__).parent / "programs" / "leaver.py"


async def not_done(*tasks: asyncio.Task[Any]) -> None:
    """None of them is, after a while."""
    done, _ = await asyncio.wait(tasks, timeout=0.3)
    assert not done


async def test_what_happens_meanwhile_is_kept_and_delivered_in_order(tmp_path: Path) -> None:
    async with cable_to(empty_database()) as cable, opened(cable.address, tmp_path) as store:
        leases = [await begin(store, name) for name in ("a", "b")]
        for lease in leases:
            await store.append(lease, batch(1, 2))
        cable.cut()
        appends = [
            asyncio.create_task(store.append(lease, batch(seq)))
            for seq in range(3, 40)
            for lease in leases
        ]
        await not_done(*appends)
        assert store.outage.is_on
        await until(lambda: len(outboxes(tmp_path)) == 1)
        cable.mend()
        positions = await asyncio.gather(*appends)
        assert positions == sorted(positions)
        for name in ("a", "b"):
            expected = [body(seq) for seq in range(1, 40)]
            assert [event.body for event in await whole(store, name)] == expected
        await until(lambda: not outboxes(tmp_path))


async def test_other_things_wait_for_a_short_outage(tmp_path: Path) -> None:
    async with cable_to(empty_database()) as cable, opened(cable.address, tmp_path) as store:
        await store.create_session(record())
        cable.cut()
        asked = asyncio.create_task(store.session("s"))
        created = asyncio.create_task(store.create_session(record("later")))
        await not_done(asked, created)
        cable.mend()
        assert await asked == record()
        await created
        assert await store.session("later") is not None


async def test_other_things_are_refused_in_a_long_outage_and_then_have_not_happened(
    tmp_path: Path,
) -> None:
    limits = StoreLimits(outage_seconds=0.1)
    async with (
        cable_to(empty_database()) as cable,
        opened(cable.address, tmp_path, limits) as store,
    ):
        lease = await begin(store)
        command = await store.send("s", b"x")
        await store.take([lease])
        cable.cut()
        settled = asyncio.create_task(store.settle(command, b"done"))
        appended = asyncio.create_task(store.append(lease, batch(1)))
        for refused in (
            store.session("s"),
            store.create_session(record("never")),
            store.events("s"),
            store.renew(ME, seconds=60),
        ):
            with pytest.raises(StoreAway, match="postgresql://dragoman@127"):
                await refused
        await not_done(settled, appended)
        limits.outage_seconds = StoreLimits().outage_seconds
        cable.mend()
        await asyncio.gather(settled, appended)
        assert (await store.outcome(command)).body == b"done"
        assert [each.id for each in await store.sessions(SessionFilter())] == ["s"]


@pytest.mark.parametrize("way", ["there", "back"])
async def test_a_commit_that_was_cut_off_is_done_once(tmp_path: Path, way: str) -> None:
    def arm(cable: Cable) -> None:
        if way == "there":
            cable.breaks_there = b"COMMIT"
        else:
            cable.breaks_back = b"COMMIT\0"

    async with cable_to(empty_database()) as cable, opened(cable.address, tmp_path) as store:
        lease = await begin(store)
        for first in (1, 4):
            arm(cable)
            appended = asyncio.create_task(store.append(lease, batch(first, 3)))
            await until(lambda: cable.is_cut)
            cable.mend()
            last = await appended
        arm(cable)
        sent = asyncio.create_task(store.send("s", b"once"))
        await until(lambda: cable.is_cut)
        cable.mend()
        command_id = await sent
        assert [command.id for command in await store.take([lease])] == [command_id]
        found = await whole(store)
        assert [event.body for event in found] == [body(seq) for seq in range(1, 7)]
        assert found[-1].position == last == await store.last_position()


async def test_control_the_cable_breaks_after_the_commit_when_it_should(tmp_path: Path) -> None:
    address = empty_database()
    async with cable_to(address) as cable, opened(cable.address, tmp_path / "a") as store:
        lease = await begin(store)
        cable.breaks_back = b"COMMIT\0"
        appended = asyncio.create_task(store.append(lease, batch(1, 3)))
        await until(lambda: cable.is_cut)
        async with opened(address, tmp_path / "b") as other:
            assert len(await whole(other)) == 3
        await not_done(appended)
        cable.mend()
        await appended


async def test_one_that_was_replaced_meanwhile_writes_nothing_and_keeps_it_in_a_file(
    tmp_path: Path,
) -> None:
    address = empty_database()
    async with (
        opened(address, tmp_path / "other") as other,
        cable_to(address) as cable,
        opened(cable.address, tmp_path / "mine") as store,
    ):
        lease = await begin(store)
        await store.append(lease, batch(1))
        cable.cut()
        late = [asyncio.create_task(store.append(lease, batch(seq))) for seq in (2, 3)]
        await until(lambda: len(outboxes(tmp_path / "mine")) == 1)
        new = await other.acquire("s", YOU, seconds=60, gone=lambda _: True)
        await other.append(new, Batch(first_seq=2, events=[b"theirs"] * 5))
        cable.mend()
        results = await asyncio.gather(*late, return_exceptions=True)
        assert [type(each) for each in results] == [LeaseLost, LeaseLost]
        assert len(await whole(other)) == 6
        kept = tmp_path / "mine" / "undelivered" / f"s-{lease.epoch}.jsonl"
        assert kept.read_bytes() == body(2) + b"\n" + body(3) + b"\n"
        assert kept.stat().st_mode & 0o777 == 0o600
        await until(lambda: not outboxes(tmp_path / "mine"))


async def test_what_a_killed_process_left_is_delivered_by_the_next_one(tmp_path: Path) -> None:
    address = empty_database()
    async with cable_to(address) as cable:
        async with opened(address, tmp_path / "other") as store:
            await store.create_session(record())
        arguments = [str(PROGRAM), cable.address, str(tmp_path / "host"), "s"]
        pipe = asyncio.subprocess.PIPE
        leaver = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdin=pipe, stdout=pipe
        )
        assert leaver.stdout is not None
        assert leaver.stdin is not None
        assert await leaver.stdout.readline() == b"ready\n"
        cable.cut()
        leaver.stdin.write(b"go\n")
        await until(lambda: kept(tmp_path / "host") == 19)
        leaver.send_signal(signal.SIGKILL)
        await leaver.wait()
        leaver.stdin.close()
        async with opened(address, tmp_path / "host") as store:
            found = [event.body for event in await whole(store)]
            assert found == [b'{"seq":%d}' % seq for seq in range(1, 21)]
            assert await store.owner("s") is not None
        assert outboxes(tmp_path / "host") == []


async def test_one_that_is_closed_meanwhile_leaves_it_to_the_next(tmp_path: Path) -> None:
    address = empty_database()
    async with cable_to(address) as cable:
        async with opened(cable.address, tmp_path, StoreLimits(close_seconds=0.1)) as store:
            lease = await begin(store)
            cable.cut()
            appended = asyncio.create_task(store.append(lease, batch(1, 4)))
            await until(lambda: len(outboxes(tmp_path)) == 1)
        with pytest.raises(StoreAway):
            await appended
        async with opened(address, tmp_path) as store:
            assert len(await whole(store)) == 4


async def test_a_network_that_swallows_everything_is_noticed(tmp_path: Path) -> None:
    limits = StoreLimits()
    async with (
        cable_to(empty_database()) as cable,
        opened(cable.address, tmp_path, limits) as store,
    ):
        lease = await begin(store)
        limits.answer_seconds = 0.3
        cable.is_pinched = True
        appended = asyncio.create_task(store.append(lease, batch(1, 3)))
        await until(lambda: store.outage.is_on)
        cable.cut()
        cable.mend()
        await appended
        assert len(await whole(store)) == 3


async def test_a_read_that_takes_too_long_is_given_up_and_is_no_outage() -> None:
    outage = Outage("here")
    reading = link.Link(Address(empty_database()), outage, reads_within=1.0)
    with pytest.raises(StoreError, match="took too long") as caught:
        await reading.use(lambda db: db.rows("SELECT pg_sleep(30)"))
    assert not isinstance(caught.value, StoreAway)
    assert not outage.is_on
    assert await reading.use(lambda db: db.rows("SELECT 1")) == [(1,)]
    await reading.aclose()


async def test_a_database_that_can_only_be_read_counts_as_away(tmp_path: Path) -> None:
    server = own_server()
    try:
        limits = StoreLimits(outage_seconds=0.5)
        async with opened(server.address(), tmp_path, limits) as store:
            lease = await begin(store)
            with psycopg.connect(server.address(), autocommit=True) as connection:
                connection.execute("ALTER ROLE CURRENT_USER SET default_transaction_read_only = on")
                connection.execute(OTHERS_END)
                appended = asyncio.create_task(store.append(lease, batch(1)))
                await until(lambda: store.outage.is_long)
                with pytest.raises(StoreAway):
                    await store.create_session(record("never"))
                connection.execute("ALTER ROLE CURRENT_USER RESET default_transaction_read_only")
            await appended
            assert not store.outage.is_on
    finally:
        await asyncio.to_thread(server.remove)


OTHERS_END = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def test_an_owner_that_is_back_has_what_nobody_has_taken(tmp_path: Path) -> None:
    address = empty_database()
    async with (
        opened(address, tmp_path / "other") as other,
        cable_to(address) as cable,
        opened(cable.address, tmp_path / "mine") as store,
    ):
        lease = await begin(store)
        await store.renew(ME, seconds=60)
        cable.cut()
        appended = asyncio.create_task(store.append(lease, batch(1)))
        await until(lambda: store.outage.is_on)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("UPDATE dragoman.owners SET expires_at = now(), seconds = 0")
        assert not await alive(other)
        cable.mend()
        await appended
        assert await alive(other)


async def test_what_loses_the_connection_each_time_is_given_up(tmp_path: Path) -> None:
    async with cable_to(empty_database()) as cable, opened(cable.address, tmp_path) as store:
        await store.create_session(record())
        sent = asyncio.create_task(store.send("s", b"x"))
        for _ in range(3):
            cable.breaks_there = b"INSERT INTO session_commands"
            await until(lambda: cable.is_cut)
            cable.mend()
        with pytest.raises(StoreAway):
            await sent
        assert await store.session("s") is not None


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_server_that_is_restarted_or_crashes_loses_nothing(
    tmp_path: Path, how: signal.Signals
) -> None:
    server = own_server()
    try:
        async with opened(server.address(), tmp_path) as store:
            lease = await begin(store)
            news = asyncio.Event()
            store.on_change(news.set)
            appends = [asyncio.create_task(store.append(lease, batch(n))) for n in range(1, 200)]
            await appends[0]
            await asyncio.to_thread(server.stop, how)
            appends += [asyncio.create_task(store.append(lease, batch(n))) for n in (200, 201)]
            await until(lambda: store.outage.is_on)
            news.clear()
            await asyncio.to_thread(server.start)
            await asyncio.gather(*appends)
            assert [event.seq for event in await whole(store)] == list(range(1, 202))
            await news.wait()
    finally:
        await asyncio.to_thread(server.remove)


async def test_no_lease_has_run_out_before_the_server_was_up_for_as_long_as_it_lasts(
    tmp_path: Path,
) -> None:
    address = empty_database()
    ran_out = "UPDATE dragoman.owners SET expires_at = now() - interval '1 hour', seconds = %s"
    async with opened(address, tmp_path) as store:
        await begin(store)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(ran_out, (1e9,))
        assert await alive(store)
        for refused in (acquire(store, owner=YOU), store.delete_session("s")):
            with pytest.raises(SessionOwned):
                await refused
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(ran_out, (0,))
        assert not await alive(store)
        await acquire(store, owner=YOU)


async def test_no_host_is_gone_before_the_server_was_up_for_as_long_as_its_word_lasts(
    tmp_path: Path,
) -> None:
    address = empty_database()
    ran_out = """
    UPDATE dragoman.owners SET expires_at = now() - interval '1 hour', seconds = 86400 * %s
    """
    host = HostRecord(id=ME.id, home="home", name="one", owner=ME)
    async with opened(address, tmp_path) as store:
        await store.announce(host, seconds=60)
        for days, alive in ((1000, True), (0, False)):
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(ran_out, (days,))
            assert [each.alive for each in await store.hosts()] == [alive]
        await store.announce(host, seconds=1e9)
        await store.depart(ME.id)
        assert [each.alive for each in await store.hosts()] == [False]


async def test_what_is_not_there_at_the_beginning_is_one_clear_line(tmp_path: Path) -> None:
    address = f"postgresql://me:secret@/nothing?host={tmp_path}"
    with pytest.raises(StoreAway, match="the database cannot be reached") as caught:
        await open_postgres(address, tmp_path)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
