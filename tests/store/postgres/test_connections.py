"""A host has all its connections from its start on, or does not start; and they are its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from store.postgres.stores import opened
from store.stores import batch, begin
from support.clients import until
from support.database_role import least_role
from support.hosting import Place, hosting
from support.peers import soon
from support.postgres import empty_database
from support.server_process import free_port
from support.transaction_pooler import transaction_pooler

from dragoman.data_directory import home_id
from dragoman.errors import StoreAway, StoreError
from dragoman.store.postgres.store import CONNECTIONS
from dragoman.store.records import Said
from dragoman.store.store_limits import StoreLimits
from dragoman.testing import ScriptedAgent


async def made(address: str, directory: Path) -> None:
    async with opened(address, directory):
        pass


def connections(address: str) -> int:
    with psycopg.connect(address) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dragoman'"
        ).fetchone()
    assert row is not None
    return row[0]


async def test_a_host_opens_all_its_connections_at_its_start(tmp_path: Path) -> None:
    address = empty_database()
    # The server notices only after a while that the host of an earlier test has closed its own.
    await until(lambda: connections(address) == 0)
    async with hosting(Place(tmp_path, address), "one", {"it": ScriptedAgent()}) as one:
        assert connections(address) == CONNECTIONS
        await one.store.search("word")
        await one.store.last_position()
        assert connections(address) == CONNECTIONS


async def test_a_host_too_many_does_not_start_and_takes_nothing_from_the_others(
    tmp_path: Path,
) -> None:
    address = empty_database()
    await made(address, tmp_path)
    room = 2 * CONNECTIONS - 1
    with least_role(address, connections=room) as limited:
        place = Place(tmp_path, limited)
        async with hosting(place, "one", {"it": ScriptedAgent()}) as one:
            await _has_only(address, CONNECTIONS)
            sentence = f"a host needs {CONNECTIONS} connections and gets {CONNECTIONS - 1}: "
            with pytest.raises(StoreError, match=f"{sentence}max_connections is 200") as caught:
                async with hosting(place, "two", {"it": ScriptedAgent()}):
                    pass
            assert f"the role dragoman_host may have {room}" in str(caught.value)
            assert [host.name for host in await one.hosts.all()] == ["one"]
            live = await soon(one.create("it", place.cwd))
            assert await one.store.search("word") == []
            assert (await one.record(live.id)).agent == "it"
            assert one.store.away is None


async def _has_only(address: str, count: int) -> None:
    """Until the server has noticed that the others were closed."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'dragoman_host'"
    with psycopg.connect(address, autocommit=True) as connection:
        await until(lambda: connection.execute(query).fetchone() == (count,))


async def test_with_no_connection_left_the_first_one_is_refused_in_a_sentence(
    tmp_path: Path,
) -> None:
    address = empty_database()
    await made(address, tmp_path)
    with (
        least_role(address, connections=1) as limited,
        psycopg.connect(limited),
        pytest.raises(StoreError, match=r"has no free connections: .*too many connections"),
    ):
        async with opened(limited, tmp_path):
            pass


async def test_one_that_is_lost_and_does_not_come_back_is_an_outage_after_the_same_patience(
    tmp_path: Path,
) -> None:
    """Also while other connections come back, and say that the database is there."""
    address = empty_database()
    await made(address, tmp_path)
    with least_role(address, connections=CONNECTIONS) as limited:
        async with opened(limited, tmp_path, StoreLimits(outage_seconds=0.3)) as store:
            await store.hold()

            async def others_come_and_go() -> None:
                while True:
                    store.outage.ends()
                    await asyncio.sleep(0.01)

            with psycopg.connect(address, autocommit=True) as owner:
                owner.execute("ALTER ROLE dragoman_host CONNECTION LIMIT 0")
                owner.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE usename = 'dragoman_host'"
                )
            flapping = asyncio.create_task(others_come_and_go())
            try:
                for asked in (store.session("s"), store.send("s", b"go"), store.search("word")):
                    with pytest.raises(StoreAway):
                        await soon(asked)
            finally:
                flapping.cancel()


async def test_a_host_needs_no_more_rights_than_the_docs_give_it(tmp_path: Path) -> None:
    address = empty_database()
    await made(address, tmp_path)
    with least_role(address) as role:
        async with hosting(Place(tmp_path, role), "one", {"it": ScriptedAgent()}) as one:
            live = await soon(one.create("it", str(tmp_path)))
            await one.store.send(live.id, b"{}")
            lease = await begin(one.store, "s")
            said = [Said(1, "user", "some words")]
            await one.store.append(lease, batch(1, said=said))
            assert [hit.session_id for hit in await one.store.search("words")] == ["s"]
            await one.store.delete_session("s", lease)
        with (
            psycopg.connect(role) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute("DROP TABLE dragoman.events")


# ── poolers ───────────────────────────────────────────────────────────────────────────────────


async def test_two_connections_that_are_one_of_the_servers_are_refused(tmp_path: Path) -> None:
    async with transaction_pooler(empty_database()) as pooled:
        with pytest.raises(
            StoreError, match=r"a pooler in transaction mode .* pool_mode = session"
        ):
            await soon(made(pooled, tmp_path))


@contextmanager
def pooler(folder: Path, address: str, mode: str) -> Generator[str]:
    """PgBouncer in front of the database; the test is skipped where it is not installed."""
    program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    if program is None:
        pytest.skip("PgBouncer is not installed (Debian: apt-get install pgbouncer)")
    parts, port = urlsplit(address), free_port()
    where = parse_qs(parts.query)["host"][0]
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\npostgres = host={where} user=dragoman\n"
        "[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n"
    )
    # It does not run as root, and has to get into the folder of the server's socket.
    user = ["-u", Path(where).owner()] if os.getuid() == 0 else []
    process = subprocess.Popen([program, "-q", *user, str(settings)], stderr=subprocess.DEVNULL)
    pooled = f"postgresql://dragoman@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable"
    try:
        _wait_for(pooled)
        yield pooled
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_a_pooler_that_gives_out_connections_by_transaction_is_refused(
    tmp_path: Path, mode: str
) -> None:
    folder = tmp_path / "pooler"
    folder.mkdir()
    with (
        pooler(folder, empty_database(), mode) as pooled,
        pytest.raises(StoreError, match=r"a pooler in transaction mode .* pool_mode = session"),
    ):
        async with opened(pooled, tmp_path):
            pass


async def test_a_pooler_that_gives_out_connections_by_session_is_not_noticed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "pooler"
    folder.mkdir()
    with pooler(folder, empty_database(), "session") as pooled:
        place = Place(tmp_path, pooled)
        async with (
            hosting(place, "one", {"it": ScriptedAgent()}) as one,
            hosting(place, "two", {"it": ScriptedAgent()}) as two,
        ):
            host = await one.hosts.named("two")
            session_id = await soon(one.create_on(host, "it", place.cwd))
            assert list(two.live) == [session_id]


def test_the_name_of_a_data_directory_is_made_once_and_then_only_read(tmp_path: Path) -> None:
    home = home_id(tmp_path)
    # If a process is killed while it does this, a second name of the same file remains.
    os.link(tmp_path / "home-id", tmp_path / f"home-id.{os.getpid()}")
    files = sorted(tmp_path.iterdir())
    assert home_id(tmp_path) == home
    assert sorted(tmp_path.iterdir()) == files
