"""What the store costs: appends events, or opens a long session; prints the figures as JSON.

Arguments: a directory, then `append BATCH COUNT`, `growth MARK …`, `fill COUNT` or `open`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from bench.clients.lively import lively
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState
from dragoman.store.open import open_store
from dragoman.store.records import Batch, Lease, Owner, SessionChange, SessionRecord, encode_event
from dragoman.store.sqlite.store import SqliteStore

_SAMPLE = 10_000


def bodies() -> Iterator[bytes]:
    """Events of a lively session, without an end; encoded, since that is not the store's work."""
    return cycle([encode_event(event) for event in lively(10_000)])


async def begin(store: SqliteStore) -> Lease:
    record = SessionRecord(id="s", agent="a", cwd="/", created_at=1, updated_at=1)
    await store.create_session(record)
    owner = Owner("bench", "m", 1, "x")
    return await store.acquire("s", owner, seconds=3600, gone=lambda who: False)


async def append(
    store: SqliteStore, lease: Lease, events: Iterator[bytes], after: int, count: int, size: int
) -> dict[str, float]:
    """What each event costs, one batch after the other."""
    batches = [
        Batch(
            first_seq=first,
            events=list(islice(events, size)),
            change=SessionChange(status="running", updated_at=float(first)),
        )
        for first in range(after + 1, after + count + 1, size)
    ]
    cpu, wall = time.process_time(), time.perf_counter()
    for batch in batches:
        await store.append(lease, batch)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu_us": cpu / count * 1e6, "per_second": count / wall}


async def growth(store: SqliteStore, marks: list[int]) -> dict[str, float]:
    """The same for the events behind each mark."""
    lease, events, there = await begin(store), bodies(), 0
    figures: dict[str, float] = {}
    for mark in marks:
        while there < mark:
            step = min(mark - there, 100_000)
            await append(store, lease, events, there, step, min(step, 1000))
            there += step
        found = await append(store, lease, events, there, _SAMPLE, 1000)
        there += _SAMPLE
        figures[f"at_{mark}"] = found["cpu_us"]
    return figures


async def fill(store: SqliteStore, count: int) -> dict[str, float]:
    lease = await begin(store)
    encoded: list[bytes] = []
    for seq, event in enumerate(lively(count), 1):
        event.seq = seq
        encoded.append(encode_event(event))
    return await append(store, lease, iter(encoded), 0, count, 1000)


async def unfold(store: SqliteStore) -> SessionState:
    state = SessionState()
    while events := await store.events("s", after=state.last_seq, limit=2000):
        fold(state, (event.decode() for event in events))
    return state


async def main(directory: str, work: str, *args: str) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    store = await open_store(Path(directory))
    figures: dict[str, float] = {"open_ms": (time.perf_counter() - wall) * 1e3}
    match work, [int(arg) for arg in args]:
        case "append", [size, count]:
            figures |= await append(store, await begin(store), bodies(), 0, count, size)
        case "growth", marks:
            figures |= await growth(store, marks)
        case "fill", [count]:
            figures |= await fill(store, count)
        case _:
            figures["events"] = (await unfold(store)).last_seq
            figures["cpu_s"] = time.process_time() - cpu
            figures["wall_s"] = time.perf_counter() - wall
    cpu = time.process_time()
    await store.aclose()
    if work == "append":
        # The mirror may still be behind.
        figures["cpu_us"] += (time.process_time() - cpu) / int(args[1]) * 1e6
    sys.stdout.write(json.dumps(figures))


asyncio.run(main(*sys.argv[1:]))
