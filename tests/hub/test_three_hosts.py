"""Three hosts on one PostgreSQL, under load, while everything goes wrong that can.

One is cut off from the network, one dies, and the database is away for half a minute. Every
acknowledged event is there once and in order, no turn is run twice, no question answered twice, and
a host that was given up cannot write what it was given up for.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from support.host_process import HostProcess
from support.load import Load
from support.machines import network
from support.postgres import Server, own_server

from dragoman.errors import LeaseLost
from dragoman.hub.stored.stored_sessions import stored_state
from dragoman.session import events as e
from dragoman.store.base import Store
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import Batch, Lease, SessionFilter, StoredEvent, encode_event

SEED = 14
SESSIONS = 4
"""On each host."""
PATIENCE = 180.0
"""For what takes its time: a lease to run out, others to be sure of it, a busy machine."""


@asynccontextmanager
async def three_hosts(folder: Path) -> AsyncGenerator[tuple[Server, list[HostProcess]]]:
    database = own_server()
    try:
        with network(3) as (own, machines):
            async with reached_at(own, database) as address:
                hosts = [HostProcess(each, folder / each.name, address) for each in machines]
                try:
                    await hosts[0].start()
                    await asyncio.gather(*(host.start() for host in hosts[1:]))
                    yield database, hosts
                finally:
                    for host in hosts:
                        await host.aclose()
    finally:
        database.remove()


@asynccontextmanager
async def reached_at(own: str, database: Server) -> AsyncGenerator[str]:
    """The database, which listens on a socket in a folder, on the machines' network."""

    async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_unix_connection(database.socket)
        except OSError:
            writer.close()
            return
        # Cancelled at the end of the test, when nobody is left to be told.
        with suppress(asyncio.CancelledError):
            await asyncio.gather(carry(reader, there[1]), carry(there[0], writer))

    server = await asyncio.start_server(connect, own, 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"postgresql://dragoman@{own}:{port}/postgres"
    finally:
        server.close()


async def wait(load: Load, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        load.check()
        await asyncio.sleep(0.5)


async def until(load: Load, holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends, load.told()
        await wait(load, 0.5)


async def quiet(load: Load, store: Store) -> None:
    """Until nothing runs any more, and every reader has seen all there is."""
    load.stopping.set()
    ends = time.monotonic() + PATIENCE
    while not await _is_quiet(load, store):
        assert time.monotonic() < ends, load.told()
        await wait(load, 0.5)


async def _is_quiet(load: Load, store: Store) -> bool:
    records = await store.sessions(SessionFilter(limit=100))
    return all(
        record.status not in ("running", "waiting")
        and all(len(reader.bodies) == record.last_seq for reader in load.readers[record.id])
        for record in records
    )


@pytest.mark.soak
@pytest.mark.within(900)
async def test_whatever_fails_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with three_hosts(tmp_path) as (database, hosts):
        load = Load(hosts, str(workspace), SEED)
        try:
            for host in hosts * SESSIONS:
                await load.begin(host)
            await wait(load, 10)
            await cut_off_and_join(load, hosts[0])
            await die_and_come_back(load, hosts[1])
            await away(load, database, 30)
            await wait(load, 15)
            store = await open_postgres(database.address(), tmp_path / "test")
            try:
                await quiet(load, store)
                await check(load, hosts, store)
            finally:
                await store.aclose()
        finally:
            await load.aclose()


async def cut_off_and_join(load: Load, host: HostProcess) -> None:
    """For so long that the others give it up and go on with its sessions."""
    host.machine.cut_off()
    host.is_up = False
    await until(load, lambda: load.moves >= SESSIONS)
    host.machine.join()
    host.is_up = True
    # It finds its sessions taken, and is told so.
    taken = "was taken over by another process"
    await until(load, lambda: taken in host.errors.read_text())
    await wait(load, 10)


async def die_and_come_back(load: Load, host: HostProcess) -> None:
    moves = load.moves
    host.kill()
    await until(load, lambda: load.moves > moves)
    await host.start()
    await wait(load, 10)


async def away(load: Load, database: Server, seconds: float) -> None:
    before = len(load.accepted)
    await asyncio.to_thread(database.stop)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(database.address())
    await wait(load, seconds)
    await asyncio.to_thread(database.start)
    await until(load, lambda: len(load.accepted) >= before + 3 * SESSIONS)


# ── what must hold ────────────────────────────────────────────────────────────────────────────


async def check(load: Load, hosts: list[HostProcess], store: Store) -> None:
    started: Counter[str] = Counter()
    queued: set[str] = set()
    finished: set[str] = set()
    bodies: set[bytes] = set()
    interrupted = 0
    for session_id, readers in load.readers.items():
        stored = await everything(store, session_id)
        assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
        for reader in readers:
            assert reader.bodies == [each.body.decode() for each in stored]
        bodies |= {each.body for each in stored}
        events = [each.decode() for each in stored]
        started += turns_in_order(events)
        finished |= prompts_of_finished_turns(events)
        queued |= {prompt.id for prompt in (await stored_state(store, session_id)).queue}
        interrupted += sum(isinstance(x, e.TurnEnded) and x.error is not None for x in events)
        await a_fenced_writer_is_refused(store, session_id, len(stored))
    assert set(started.values()) == {1}, "a turn was run twice"
    # A prompt that was queued when its host went down still waits there, for a person.
    lost = {turn: at for at, turn in load.accepted.values() if turn not in {*started, *queued}}
    assert not lost
    marks = [line for host in hosts for line in host.marks.read_text().splitlines()]
    assert len(marks) == len(set(marks))
    assert finished <= set(marks)
    assert set(load.answered.values()) == {1}, "a question was answered twice"
    assert interrupted
    # The host that was cut off went on, and what it did then was refused: by its own account.
    refused = hosts[0].refused()
    assert refused, "no writer was fenced off"
    assert not refused & bodies, "a fenced writer has written"
    # What a host took while the database was unavailable is on record too, or that host says it is
    # not.
    for turn in load.delayed.keys() - {*started, *queued}:
        assert any(turn.encode() in body for body in refused), f"{turn} is nowhere"
    told = (
        f"{len(started)} turns, {interrupted} interrupted, {len(queued)} queued, "
        f"{len(refused)} events of a fenced writer refused, {load.told()}"
    )
    sys.stdout.write(f"seed {SEED}: {told}\n")


def prompts_of_finished_turns(events: list[e.Event]) -> set[str]:
    texts = {x.turn_id: x.text for x in events if isinstance(x, e.TurnStarted)}
    ended = [x for x in events if isinstance(x, e.TurnEnded) and x.error is None]
    return {texts[x.turn_id] for x in ended}


async def everything(store: Store, session_id: str) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    while some := await store.events(session_id, after=len(found)):
        found += some
    return found


def turns_in_order(events: list[e.Event]) -> Counter[str]:
    """How often each was started; what an agent says is said in one, and questions end once."""
    started: Counter[str] = Counter()
    settled: Counter[str] = Counter()
    running: str | None = None
    for event in events:
        match event:
            case e.TurnStarted(turn_id):
                assert running is None
                running = turn_id
                started[turn_id] += 1
            case e.TurnEnded(turn_id):
                assert turn_id == running
                running = None
            case e.AgentMessage() | e.PermissionRequested():
                assert running is not None, event
            case e.PermissionSettled(request_id):
                settled[request_id] += 1
            case _:
                pass
    assert running is None
    assert set(settled.values()) <= {1}
    return started


async def a_fenced_writer_is_refused(store: Store, session_id: str, last: int) -> None:
    """Whoever owned it before the one that does now."""
    owner = await store.owner(session_id)
    body = encode_event(e.TurnStarted("stolen", [], seq=last + 1))
    for lease in (
        Lease(session_id, "nobody", 1),
        Lease(session_id, "nobody" if owner is None else owner.id, 0),
    ):
        with pytest.raises(LeaseLost):
            await store.append(lease, Batch(first_seq=last + 1, events=[body]))
