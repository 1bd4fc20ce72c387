"""A host on a PostgreSQL store: writes events, follows what others write, or shows how that grows.

Arguments: the address, then `flood SECONDS SESSIONS`, `pace SECONDS SESSIONS`, `follow SECONDS`,
`growth SESSIONS MARK …` or `pages SESSIONS EVENTS`. Says "ready", waits for a line of input, and
prints the figures as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path

from dragoman.store.postgres.database import Address, Database
from dragoman.store.postgres.store import PostgresStore, open_postgres
from dragoman.store.records import Batch, Lease, Owner, Said, SessionChange, SessionRecord

_PAD = b"x" * 60
_IN_A_ROW = 20
_AT_ONCE = 2000
_SAMPLE = 10_000
_SAMPLES = 10


def body() -> bytes:
    """About as large as an event of a lively session; it says when it was made."""
    return b'{"type":"agent_message","at":%017.6f,"text":"%b"}' % (time.time(), _PAD)


def made_at(event: bytes) -> float:
    return float(event[29:46])


async def begin(store: PostgresStore, sessions: int) -> list[Lease]:
    owner = Owner(f"bench-{os.getpid()}", "m", os.getpid(), "x")

    async def one(number: int) -> Lease:
        session_id = f"s-{os.getpid()}-{number}"
        record = SessionRecord(id=session_id, agent="a", cwd="/", created_at=1, updated_at=1)
        await store.create_session(record)
        return await store.acquire(session_id, owner, seconds=3600, gone=lambda _: False)

    return await asyncio.gather(*map(one, range(sessions)))


def go() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


async def append(store: PostgresStore, lease: Lease, seq: int, size: int = 1) -> None:
    change = SessionChange(status="running", updated_at=time.time())
    events = [body() for _ in range(size)]
    await store.append(lease, Batch(first_seq=seq, events=events, change=change))


async def flood(store: PostgresStore, seconds: int, sessions: int) -> dict[str, float]:
    """Every session writes ten events at a time, as fast as they are stored."""
    leases = await begin(store, sessions)
    go()
    end, cpu = time.monotonic() + seconds, time.process_time()

    async def write(lease: Lease) -> int:
        for seq in count(1, 10):
            if time.monotonic() > end:
                return seq - 1
            await append(store, lease, seq, 10)
        return 0

    events = sum(await asyncio.gather(*map(write, leases)))
    return {"events": events, "cpu_us": (time.process_time() - cpu) / events * 1e6}


async def pace(store: PostgresStore, seconds: int, sessions: int) -> dict[str, float]:
    """Every session writes an event a second."""
    leases, chosen = await begin(store, sessions), random.Random(1)
    go()

    async def write(lease: Lease) -> None:
        await asyncio.sleep(chosen.random())
        for seq in range(1, seconds + 1):
            await append(store, lease, seq)
            await asyncio.sleep(1)

    await asyncio.gather(*map(write, leases))
    return {"events": seconds * sessions}


async def follow(store: PostgresStore, seconds: int) -> dict[str, float]:
    """How old events are when a reader on another host has them."""
    after, fresh, ages = await store.last_position(), asyncio.Event(), list[float]()
    store.on_change(fresh.set)
    await fresh.wait()
    go()
    async for event in _events(store, after, fresh, time.monotonic() + seconds):
        ages.append(time.time() - made_at(event))
    ages.sort()
    return {
        "events": len(ages),
        "p50_ms": ages[len(ages) // 2] * 1e3,
        "p99_ms": ages[len(ages) * 99 // 100] * 1e3,
    }


async def _events(
    store: PostgresStore, after: int, fresh: asyncio.Event, end: float
) -> AsyncIterator[bytes]:
    while time.monotonic() < end:
        fresh.clear()
        if found := await store.all_events(after=after):
            for event in found:
                yield event.body
            after = found[-1].position
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(end - time.monotonic()):
                    await fresh.wait()


class Spread:
    """Writes events into many sessions in turn, twenty at a time, as many hosts would; one in a
    hundred has a text that can be searched for."""

    def __init__(self, store: PostgresStore, leases: list[Lease]) -> None:
        self._store = store
        self._turns = cycle(Written(lease) for lease in leases)
        self._chosen = random.Random(1)

    async def write(self, events: int) -> None:
        while events > 0:
            some = min(events, _AT_ONCE)
            await asyncio.gather(*(self._append() for _ in range(0, some, _IN_A_ROW)))
            events -= some

    async def _append(self) -> None:
        session = next(self._turns)
        first, session.last = session.last + 1, session.last + _IN_A_ROW
        events = [body() for _ in range(_IN_A_ROW)]
        change = SessionChange(status="running", updated_at=time.time())
        said = [Said(first, "agent", self._text())] if first % 100 == 1 else []
        batch = Batch(first_seq=first, events=events, change=change, said=said)
        await self._store.append(session.lease, batch)

    def _text(self) -> str:
        """Some two hundred letters, of ten thousand words."""
        return " ".join(f"word{self._chosen.randrange(10_000)}" for _ in range(24))


@dataclass
class Written:
    """A session, and the number of its last event."""

    lease: Lease
    last: int = 0


async def growth(store: PostgresStore, sessions: int, *marks: int) -> dict[str, float]:
    """What an event takes behind so many others, and to read the last thousand; the best of some
    samples at each mark: what else the machine did meanwhile is no growth."""
    spread, there, figures = Spread(store, await begin(store, sessions)), 0, dict[str, float]()
    go()
    for mark in marks:
        await spread.write(mark - there)
        written = [await _timed(spread.write(_SAMPLE)) / _SAMPLE for _ in range(_SAMPLES)]
        there = mark + _SAMPLE * _SAMPLES
        after = await store.last_position() - 1000
        read = [await _timed(store.all_events(after=after)) for _ in range(_SAMPLES)]
        figures[f"write_{mark}"] = min(written) * 1e6
        figures[f"read_{mark}"] = min(read) * 1e3
    return figures


async def pages(store: PostgresStore, sessions: int, events: int) -> dict[str, float]:
    """What the first thousand events of a long session take to read, and the last, among many
    short ones."""
    (long, *short), figures = await begin(store, sessions), dict[str, float]()
    go()
    await Spread(store, short).write(len(short) * _IN_A_ROW)
    await Spread(store, [long]).write(events)
    # As a server does by itself after a while: only then it knows that one of them is long.
    db = await Database.connect(Address(sys.argv[1]))
    await db.run("ANALYZE")
    await db.close()
    for page, after in (("first", 0), ("last", events - 1000)):
        read = [await _timed(store.events(long.session_id, after=after)) for _ in range(_SAMPLES)]
        figures[page] = min(read) * 1e3
    return figures


async def _timed(work: Awaitable[object]) -> float:
    begun = time.perf_counter()
    await work
    return time.perf_counter() - begun


WORK: dict[str, Callable[..., Awaitable[dict[str, float]]]] = {
    "flood": flood,
    "pace": pace,
    "follow": follow,
    "growth": growth,
    "pages": pages,
}


async def main(address: str, work: str, *args: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await open_postgres(address, Path(folder))
        figures = await WORK[work](store, *map(int, args))
        sys.stdout.write(json.dumps(figures))
        await store.aclose()


asyncio.run(main(*sys.argv[1:]))
