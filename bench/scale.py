"""What a PostgreSQL that many hosts share does for each of them: `python -m bench.scale ADDRESS`.

Fills a database of its own that may be thrown away, and prints the figures of
docs/explanation/scale.md. ADDRESS is of a server where databases may be made.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import psycopg

from dragoman.session.content import Text
from dragoman.session.events import AgentMessage
from dragoman.store.postgres.store import PostgresStore, open_postgres
from dragoman.store.records import (
    Batch,
    HostRecord,
    Lease,
    Owner,
    Said,
    SessionRecord,
    encode_event,
)

HOSTS = 1000
SESSIONS = 10_000
EVENTS = 200_000
BATCH = 100
WRITERS = (1, 4)
SECONDS = 5.0
WORDS = "what an agent says in a piece of an answer, "


async def main(address: str) -> None:
    name = f"scale_{os.getpid()}"
    own = urlsplit(address)._replace(path=f"/{name}").geturl()
    _run(address, f"CREATE DATABASE {name}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            await _measure(own, Path(folder))
    finally:
        _run(address, f"DROP DATABASE {name} WITH (FORCE)")


def _run(address: str, statement: str) -> int:
    with psycopg.connect(address, autocommit=True) as connection:
        found = connection.execute(statement.encode())
        row = None if found.description is None else found.fetchone()
    return 0 if row is None else int(row[0])


async def _measure(address: str, folder: Path) -> None:
    store = await open_postgres(address, folder)
    leases = await _fill(store)
    _say("bytes of an event's body", len(_event(1)))
    _say("bytes of table and indexes for an event", _size(address, "events") / EVENTS)
    _say("bytes of search for a text of 200 letters", _size(address, "said") / (EVENTS / BATCH))
    _say("kB of memory for a connection", _memory(address))
    for what, work in (
        (f"ms to list {HOSTS} hosts", store.hosts),
        (f"ms to list the owners of {SESSIONS} sessions", store.owned),
        ("ms to look for calls", lambda: store.calls("host-1")),
        ("ms to look into an inbox", lambda: store.take([leases[0]])),
        ("ms to announce a host", lambda: _announce(store, 1)),
    ):
        _say(what, await _timed(work) * 1000)
    await store.aclose()
    for writers in WRITERS:
        _say(f"commits a second, {writers} hosts", await _commits(address, folder, leases, writers))


async def _fill(store: PostgresStore) -> list[Lease]:
    for number in range(HOSTS):
        await _announce(store, number)
    leases: list[Lease] = []
    for number in range(SESSIONS):
        now = time.time()
        record = SessionRecord(
            id=f"s-{number}", agent="a", cwd=f"/{number}", created_at=now, updated_at=now
        )
        await store.create_session(record)
        owner = Owner(f"host-{number % HOSTS}", "m", 1, "then", "label")
        leases.append(await store.acquire(record.id, owner, seconds=3600, gone=lambda _: None))
    for first in range(0, EVENTS // BATCH, 50):
        some = leases[first % SESSIONS : first % SESSIONS + 50]
        await asyncio.gather(*(store.append(lease, _batch(BATCH)) for lease in some))
    return leases


async def _announce(store: PostgresStore, number: int) -> None:
    agents = ["claude", "codex", "demo", "gemini"]
    host = HostRecord(id=f"host-{number}", home=f"{number}", name=f"host-{number}", agents=agents)
    await store.announce(host, seconds=3600)


def _batch(count: int, first: int = 1) -> Batch:
    said = Said(first, "agent", WORDS * 5)
    return Batch(
        first_seq=first,
        events=[_event(seq) for seq in range(first, first + count)],
        said=[said] if count > 1 else [],
    )


def _event(seq: int) -> bytes:
    return encode_event(AgentMessage(Text(WORDS), seq=seq, at=time.time()))


def _size(address: str, table: Literal["events", "said"]) -> int:
    return _run(address, f"SELECT pg_total_relation_size('dragoman.{table}')")


def _memory(address: str) -> float:
    """Private to a connection that has done what a host's does."""
    with psycopg.connect(address) as connection:
        connection.execute("SELECT count(*) FROM dragoman.events").fetchone()
        pid = connection.info.backend_pid
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
        return sum(float(line.split()[1]) for line in lines if line.startswith("Private_"))


async def _timed(work: Callable[[], Awaitable[object]], times: int = 15) -> float:
    """The median."""
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[times // 2]


async def _commits(address: str, folder: Path, leases: list[Lease], writers: int) -> float:
    """One event after the other by each, on connections of its own."""
    ends, done = time.monotonic() + SECONDS, 0

    async def write(place: int) -> None:
        nonlocal done
        store, seq = await open_postgres(address, folder), 0
        lease = leases[-1 - place - 10 * writers]
        while time.monotonic() < ends:
            seq += 1
            await store.append(lease, _batch(1, seq))
            done += 1
        await store.aclose()

    await asyncio.gather(*(write(place) for place in range(writers)))
    return done / SECONDS


def _say(what: str, figure: float) -> None:
    sys.stdout.write(f"{figure:12,.2f}  {what}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
