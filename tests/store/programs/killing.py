"""Kills a process that writes to a store, again and again, and prints what came of it as JSON.

Arguments: a directory, how often, a seed, where to kill, and "honest" or "hasty" (the control: it
acknowledges before it is told that an event is stored). Each writer and each reader is a fork, so
that neither pays for imports and this process never has a database open.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from store.faults import failing_disk

from dragoman.store.mirror_lines import is_header
from dragoman.store.open import open_store
from dragoman.store.records import Batch, Owner, SessionRecord, Snapshot
from dragoman.store.sqlite import mirror
from dragoman.store.sqlite.store import SqliteStore

SESSIONS: tuple[str, ...] = ("a", "b", "c")


def body(session: str, seq: int) -> bytes:
    return b'{"type":"x","session":"%s","seq":%d,"pad":"%s"}' % (
        session.encode(),
        seq,
        b"y" * (seq % 300),
    )


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def opened(directory: Path) -> SqliteStore:
    store = await open_store(directory)
    for session in SESSIONS:
        if await store.session(session) is None:
            record = SessionRecord(id=session, agent="a", cwd=session, created_at=1, updated_at=1)
            await store.create_session(record)
    return store


async def write_for_ever(directory: Path, chosen: random.Random, acks: int, hasty: bool) -> None:
    store = await opened(directory)
    owner = Owner(os.urandom(4).hex(), "m", os.getpid(), "x")
    writers = (write(store, session, owner, chosen, acks, hasty) for session in SESSIONS)
    await asyncio.gather(*writers)


async def write(
    store: SqliteStore, session: str, owner: Owner, chosen: random.Random, acks: int, hasty: bool
) -> None:
    lease = await store.acquire(session, owner, seconds=60, gone=lambda who: True)
    record = await store.session(session)
    last = 0 if record is None else record.last_seq
    while True:
        count = chosen.choice((1, 1, 3, 20, 50))
        events = [body(session, last + n) for n in range(1, count + 1)]
        appended = store.append(lease, Batch(first_seq=last + 1, events=events))
        last += count
        if hasty:
            os.write(acks, f"{session} {last}\n".encode())
        await appended
        if not hasty:
            os.write(acks, f"{session} {last}\n".encode())
        if chosen.random() < 0.1:
            # Empties the log, so that killing also hits what that does.
            await store.send(session, b"secret")
            await store.take([lease])
            await store.save_snapshot(lease, Snapshot(last, b"state"))


def arm(point: str, after: int) -> Callable[[str, str], None]:
    """Die at the n-th operation of that kind: `write-wal`, `sync-wal`, `write-db` …"""
    left = [after]

    def count(operation: str, file: str) -> None:
        if point == f"{operation}-{'wal' if file.endswith('-wal') else 'db'}":
            left[0] -= 1
            if left[0] <= 0:
                die()

    return count


def arm_mirror(after: int) -> None:
    """Die with half a line written."""
    left = [after]

    def torn(file: int, lines: bytes) -> None:
        left[0] -= 1
        if left[0] <= 0:
            os.write(file, lines[: len(lines) // 2 + 1])
            die()
        os.write(file, lines)

    mirror.write_lines = torn


def writer(directory: Path, seed: int, point: str, hasty: bool, acks: int) -> None:
    chosen = random.Random(seed)
    after = chosen.randrange(1, 60)
    with failing_disk() as disk:
        if point == "mirror":
            arm_mirror(chosen.randrange(1, 8))
        elif point != "random":
            disk.before = arm(point, after)
        asyncio.run(write_for_ever(directory, chosen, acks, hasty))


def kill_once(directory: Path, seed: int, point: str, hasty: bool) -> dict[str, int]:
    """What was acknowledged last in each session."""
    reading, acks = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            writer(directory, seed, point, hasty, acks)
        finally:
            os._exit(1)
    os.close(acks)
    with open(reading, "rb") as told:
        if point == "random":
            told.peek(1)  # it has begun
            time.sleep(random.Random(seed).uniform(0, 0.15))
            os.kill(child, signal.SIGKILL)
        lines = told.read().split(b"\n")[:-1]
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL, f"the writer ended with {status}"
    acknowledged = dict.fromkeys(SESSIONS, 0)
    for line in lines:
        session, seq = line.decode().split()
        acknowledged[session] = max(acknowledged[session], int(seq))
    return acknowledged


async def read_back(directory: Path) -> dict[str, object]:
    cpu = time.process_time()
    store = await opened(directory)
    stored: dict[str, int] = {}
    wrong: list[str] = []
    bodies: dict[str, list[bytes]] = {}
    for session in SESSIONS:
        lease = await store.acquire(
            session, Owner("reader", "m", 1, "x"), seconds=60, gone=lambda who: True
        )
        found = bodies[session] = []
        while some := await store.events(session, after=len(found)):
            wrong += [
                f"{session} {e.seq}" for n, e in enumerate(some, len(found) + 1) if e.seq != n
            ]
            found += [event.body for event in some]
        wrong += [f"{session} {n}" for n, b in enumerate(found, 1) if b != body(session, n)]
        stored[session] = len(found)
        await store.release(lease)
    # A second for a hundred thousand events: a fast disk takes several times as many by then.
    recovery = (time.process_time() - cpu) / max(1.0, sum(stored.values()) / 100_000)
    await store.aclose()
    for session, expected in bodies.items():
        lines = (directory / "sessions" / f"{session}.jsonl").read_bytes().split(b"\n")[:-1]
        if [line for line in lines if not is_header(line)] != expected:
            wrong.append(f"mirror of {session}")
    return {"stored": stored, "wrong": wrong, "recovery": recovery}


def read_in_a_fork(directory: Path) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(asyncio.run(read_back(directory))).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as told:
        found = told.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(found)


def main() -> None:
    directory, times, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    point, hasty = sys.argv[4], sys.argv[5] == "hasty"
    lost, wrong, acknowledged, slowest = 0, list[str](), 0, 0.0
    for number in range(times):
        told = kill_once(directory, seed * 1000 + number, point, hasty)
        found = read_in_a_fork(directory)
        lost += sum(max(told[name] - found["stored"][name], 0) for name in SESSIONS)
        wrong += [f"{each} (kill {number})" for each in found["wrong"]]
        acknowledged += sum(told.values())
        slowest = max(slowest, found["recovery"])
    report = {"lost": lost, "wrong": wrong, "acknowledged": acknowledged, "recovery": slowest}
    os.write(1, json.dumps(report).encode())


main()
