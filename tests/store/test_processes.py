"""Several processes on one store: one owner at a time, everybody sees the same log."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from store.stores import acquire, batch, begin, fill, on_disk, record, whole

from dragoman.store.base import Store
from dragoman.store.mirror_lines import is_header
from dragoman.store.records import Batch, Said, StoredEvent

PROGRAMS = Path(__file__).parent / "programs"
SEED = 20_240_621


def run_at_once(program: str, directory: Path, count: int, *args: str) -> list[str]:
    """What each of so many processes printed that began at the same moment."""
    command = [sys.executable, str(PROGRAMS / program), str(directory)]
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen([*command, f"p{n}", *args], stdin=pipe, stdout=pipe, text=True)
        for n in range(count)
    ]
    for each in running:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in running:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    return [each.communicate(timeout=100)[0] for each in running]


async def test_of_processes_that_race_for_a_session_one_wins(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        await store.create_session(record())
    for _ in range(3):
        said = await asyncio.to_thread(run_at_once, "taker.py", tmp_path, 4)
        assert sorted(said) == ["lost", "lost", "lost", "won"]
        async with on_disk(tmp_path) as store:
            [(_, owner)] = await store.owned()
            await store.renew(owner, seconds=-1)


async def test_an_owner_that_was_replaced_writes_nothing_more(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        await store.create_session(record())
    said = await asyncio.to_thread(run_at_once, "racer.py", tmp_path, 3, "40")
    reports: list[dict[str, Any]] = [json.loads(each) for each in said]
    async with on_disk(tmp_path) as store:
        found = await whole(store)
        await store.acquire("s", (await store.owned())[0][1], seconds=1, gone=lambda who: True)
    written = {n: f"p{index}" for index, r in enumerate(reports) for n in r["acknowledged"]}
    # Nobody was told of an event that another one wrote over, and no number was given twice.
    assert sum(len(report["acknowledged"]) for report in reports) == len(written)
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    by = {event.seq: json.loads(event.body)["by"] for event in found}
    assert {seq: by[seq] for seq in written} == written
    assert sum(report["fenced"] for report in reports) > 0, "the control: nobody was ever shut out"
    lines = (tmp_path / "sessions" / "s.jsonl").read_bytes().split(b"\n")[:-1]
    assert [line for line in lines if not is_header(line)] == [event.body for event in found]


async def read_with_interruptions(
    store: Store, total: int, chosen: random.Random
) -> list[StoredEvent]:
    """A reader that loses its connection again and again and remembers only its cursor."""
    log: list[StoredEvent] = []
    news = asyncio.Event()
    while len(log) < total:
        end = store.on_change(news.set)
        for _ in range(chosen.randrange(1, 4)):
            news.clear()
            after = log[-1].seq if log else 0
            some = await store.events("s", after=after, limit=chosen.choice((1, 50, 700)))
            log += some
            if not some and len(log) < total:
                await news.wait()
        end()
    return log


async def readers_see_the_exact_log(home: Path, readers: int, total: int) -> None:
    async with on_disk(home) as store, on_disk(home) as other:
        lease = await begin(store)
        reading = [
            asyncio.create_task(
                read_with_interruptions(store if n % 2 else other, total, random.Random(SEED + n))
            )
            for n in range(readers)
        ]
        written, chosen = 0, random.Random(SEED)
        while written < total:
            count = min(chosen.choice((1, 10, 100)), total - written)
            await store.append(lease, batch(written + 1, count))
            written += count
        logs = await asyncio.gather(*reading)
        expected = await whole(store)
        assert len(expected) == total
        assert all(log == expected for log in logs), f"seed {SEED}"


async def test_readers_that_come_and_go_see_the_exact_log(tmp_path: Path) -> None:
    await readers_see_the_exact_log(tmp_path, 20, 1000)


@pytest.mark.soak
@pytest.mark.within(600)
async def test_200_readers_that_come_and_go_see_the_exact_log(tmp_path: Path) -> None:
    await readers_see_the_exact_log(tmp_path, 200, 5000)


async def contents(directory: Path) -> bytes:
    """Every file, read by another process: closing one here would end the locks SQLite has."""
    code = (
        "import sys,pathlib\nfor p in pathlib.Path(sys.argv[1]).rglob('*'):\n"
        "  p.is_file() and sys.stdout.buffer.write(p.read_bytes())"
    )
    command = [sys.executable, "-c", code, str(directory)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=60)
    return done.stdout


async def gone(directory: Path, canary: bytes) -> bool:
    """Whether it is nowhere any more, soon."""
    for _ in range(100):
        if canary not in await contents(directory):
            return True
        await asyncio.sleep(0.1)
    return False


async def test_what_a_command_said_is_nowhere_after_it_was_taken(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store, on_disk(tmp_path) as other:
        lease = await begin(store)
        await fill(store, lease, 200)
        canaries = [b"canary-%d-hunter2" % number for number in range(3)]
        for canary in canaries:
            await other.send("s", b'{"password":"%s"}' % canary)
        found = await contents(tmp_path)
        assert all(canary in found for canary in canaries), "the control: it was never there"
        assert len(await store.take([lease])) == 3
        for canary in canaries:
            assert await gone(tmp_path, canary)
        assert len(await whole(store)) == 200


async def test_what_was_taken_in_the_middle_of_a_flood_is_gone_too(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await store.send("s", b"canary-in-a-flood")
        flood = asyncio.create_task(fill(store, lease, 20_000))
        assert len(await store.take([lease])) == 1
        await flood
        assert await gone(tmp_path, b"canary-in-a-flood")


async def test_a_deleted_session_leaves_no_words_behind(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 20))
        await store.release(lease)
        lease = await acquire(store)
        secret = b'{"seq":21,"text":"canary in a session"}'
        said = [Said(21, "user", "searchablecanary in a session")]
        await store.append(lease, Batch(first_seq=21, events=[secret], said=said))
        await store.release(lease)
        assert b"canary in a session" in await contents(tmp_path)
        await store.delete_session("s")
        assert await gone(tmp_path, b"canary in a session")
        assert await gone(tmp_path, b"searchablecanary")
