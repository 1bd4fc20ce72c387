"""When disk or database fail: what was taken is kept and written later, and nothing is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from store.faults import Disk, failing_disk
from store.postgres.stores import outboxes, until
from store.stores import YOU, batch, begin, body, fill, on_disk, record, whole

from dragoman.errors import StoreAway, StoreCorrupt, StoreFull
from dragoman.store.store_limits import StoreLimits

PROGRAMS = Path(__file__).parent / "programs"


def fail(disk: Disk, how: str) -> None:
    disk.full, disk.broken = how == "full", how if how != "full" else ""


# Where a file is closed, SQLite has nobody to tell of a disk that fails.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("how", ["full", "write", "sync"])
async def test_a_disk_that_fails_costs_nothing_and_is_an_outage(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    with failing_disk() as disk:
        async with on_disk(tmp_path) as store:
            leases = [await begin(store, name) for name in ("a", "b", "c")]
            for lease in leases:
                await store.append(lease, batch(1, 10))
            assert store.away is None
            fail(disk, how)
            appends = [asyncio.create_task(store.append(lease, batch(11, 10))) for lease in leases]
            await until(lambda: store.away is not None)
            assert store.away is not None
            sentence = "no space left" if how == "full" else "the disk failed"
            assert store.away.startswith(sentence)
            with pytest.raises(StoreFull if how == "full" else StoreAway, match=sentence):
                await store.create_session(record("new"))
            # What is there can still be read, and nothing of what waits is.
            assert [len(await whole(store, name)) for name in ("a", "b", "c")] == [10, 10, 10]
            assert not any(append.done() for append in appends)
            assert not store.has_kept("a", 20), "the outbox is on the same disk"
            fail(disk, "")
            await asyncio.gather(*appends)
            assert store.away is None
            for lease in leases:
                await store.append(lease, batch(21, 5))
    async with on_disk(tmp_path) as store:
        for name in ("a", "b", "c"):
            assert [event.seq for event in await whole(store, name)] == list(range(1, 26))
        assert await store.session("new") is None
    for said in ("events are kept on this host", "the outbox cannot store", "is back after"):
        assert caplog.text.count(said) == 1


async def test_an_outage_ends_though_nothing_waits_any_more(tmp_path: Path) -> None:
    with failing_disk() as disk:
        async with on_disk(tmp_path) as store:
            fail(disk, "full")
            with pytest.raises(StoreFull, match=r"dragoman\.db: no space left"):
                await store.create_session(record())
            assert store.away is not None
            fail(disk, "")
            await until(lambda: store.away is None)
            await store.create_session(record())


async def test_a_full_disk_under_the_mirror_alone_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with on_disk(tmp_path) as store:
        (tmp_path / "sessions").write_text("in the way")
        lease = await begin(store)
        await store.append(lease, batch(1, 5))
        assert len(await whole(store)) == 5
    assert "the mirror of session s is out of date" in caplog.text
    (tmp_path / "sessions").unlink()
    async with on_disk(tmp_path) as store:
        await store.append(lease, batch(6))
    lines = (tmp_path / "sessions" / "s.jsonl").read_bytes().splitlines()
    assert len(lines) == 7


async def test_a_mirror_that_was_behind_catches_up_though_nothing_new_happens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with on_disk(tmp_path, StoreLimits(mirror_seconds=0.05)) as store:
        (tmp_path / "sessions").write_text("in the way")
        lease = await begin(store)
        await store.append(lease, batch(1, 5))
        await until(lambda: "the mirror of session s is out of date" in caplog.text)
        (tmp_path / "sessions").unlink()
        path = tmp_path / "sessions" / "s.jsonl"
        await until(lambda: path.exists() and path.read_bytes().count(b"\n") == 6)
    assert caplog.text.count("is out of date") == 1


def locker(path: Path) -> subprocess.Popen[bytes]:
    """Another process that holds the database locked until its input ends."""
    command = [sys.executable, str(PROGRAMS / "locker.py"), str(path / "dragoman.db")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"locked\n"
    return process


def impatient() -> StoreLimits:
    return StoreLimits(busy_seconds=0.6, locked_seconds=0.1, close_seconds=0.1)


async def test_what_comes_while_another_process_keeps_it_locked_is_kept_and_written_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with on_disk(tmp_path, impatient()) as store:
        leases = [await begin(store, name) for name in ("a", "b")]
        for lease in leases:
            await store.append(lease, batch(1))
        command = await store.send("a", b"x")
        await store.take(leases)
        with locker(tmp_path) as other:
            appends = [
                asyncio.create_task(store.append(lease, batch(seq, 2)))
                for seq in range(2, 40, 2)
                for lease in leases
            ]
            settled = asyncio.create_task(store.settle(command, b"done"))
            await until(lambda: store.has_kept("a", 39) and store.has_kept("b", 39))
            assert store.away is not None
            assert store.away.startswith("another process has locked the database")
            assert store.holds_undelivered
            assert len(outboxes(tmp_path)) == 1
            with pytest.raises(StoreAway, match="locked the database for too long"):
                await store.create_session(record("never"))
            assert len(await whole(store, "a")) == 1
            assert not any(append.done() for append in (*appends, settled))
            other.communicate(timeout=30)
        await asyncio.gather(*appends)
        await settled
        assert (await store.outcome(command)).body == b"done"
        for name in ("a", "b"):
            expected = [body(seq) for seq in range(1, 40)]
            assert [event.body for event in await whole(store, name)] == expected
        assert (store.away, store.holds_undelivered, outboxes(tmp_path)) == (None, False, [])
    assert caplog.text.count("events are kept on this host") == 1
    assert (tmp_path / "sessions" / "a.jsonl").read_bytes().count(b"\n") == 40


async def test_one_that_is_closed_while_it_is_locked_leaves_it_to_the_next(tmp_path: Path) -> None:
    async with on_disk(tmp_path, impatient()) as store:
        lease = await begin(store)
        with locker(tmp_path) as other:
            appended = asyncio.create_task(store.append(lease, batch(1, 4)))
            await until(lambda: store.has_kept("s", 4))
            await store.aclose()
            with pytest.raises(StoreAway, match="locked"):
                await appended
            other.communicate(timeout=30)
        assert len(outboxes(tmp_path)) == 1
    async with on_disk(tmp_path, impatient()) as store:
        assert [event.body for event in await whole(store)] == [body(seq) for seq in range(1, 5)]
        assert outboxes(tmp_path) == []
        await store.append(lease, batch(5))


async def test_what_was_kept_for_a_session_that_another_process_took_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with on_disk(tmp_path, impatient()) as store:
        lease = await begin(store)
        await store.append(lease, batch(1))
        with locker(tmp_path) as other:
            appended = asyncio.create_task(store.append(lease, batch(2, 2)))
            await until(lambda: store.has_kept("s", 3))
            await store.aclose()
            with pytest.raises(StoreAway):
                await appended
            other.communicate(timeout=30)
    kept, hidden = tmp_path / "outbox", tmp_path / "hidden"
    kept.rename(hidden)
    async with on_disk(tmp_path, impatient()) as store:
        new = await store.acquire("s", YOU, seconds=60, gone=lambda _: True)
        await store.append(new, batch(2))
    hidden.rename(kept)
    async with on_disk(tmp_path, impatient()) as store:
        assert len(await whole(store)) == 2
    [file] = (tmp_path / "undelivered").iterdir()
    assert file.read_bytes() == body(3) + b"\n", "the other one is on record"
    assert "1 of its events are only in" in caplog.text
    assert outboxes(tmp_path) == []


async def test_what_a_process_kept_that_was_killed_is_written_by_the_next(tmp_path: Path) -> None:
    async with on_disk(tmp_path, impatient()) as store:
        await store.create_session(record())
    arguments = [str(PROGRAMS / "leaver.py"), str(tmp_path)]
    pipe = asyncio.subprocess.PIPE
    leaver = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=pipe, stdout=pipe
    )
    assert leaver.stdout is not None
    assert leaver.stdin is not None
    assert await leaver.stdout.readline() == b"ready\n"
    with locker(tmp_path) as other:
        leaver.stdin.write(b"go\n")
        assert await leaver.stdout.readline() == b"kept\n"
        leaver.kill()
        await leaver.wait()
        leaver.stdin.close()
        other.communicate(timeout=30)
    async with on_disk(tmp_path, impatient()) as store:
        assert [event.body for event in await whole(store)] == [
            b'{"seq":%d}' % seq for seq in range(1, 21)
        ]
        assert await store.owner("s") is not None
    assert outboxes(tmp_path) == []


async def test_a_database_that_is_locked_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        with locker(tmp_path) as other:
            writing = asyncio.create_task(store.append(lease, batch(1)))
            done, _ = await asyncio.wait([writing], timeout=0.2)
            assert not done
            await asyncio.to_thread(other.communicate, timeout=30)
            await writing


async def test_a_job_with_a_bug_hurts_no_other(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        nonsense = record("x", title=object())
        results = await asyncio.gather(
            store.append(lease, batch(1)),
            store.create_session(nonsense),
            store.append(lease, batch(2)),
            return_exceptions=True,
        )
        assert [isinstance(each, Exception) for each in results] == [False, True, False]
        assert len(await whole(store)) == 2


async def test_damage_that_shows_in_use_is_reported_with_the_way_out(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await fill(store, lease, 5000)
    path = tmp_path / "dragoman.db"
    content = bytearray(path.read_bytes())
    for page in range(40, len(content) // 4096 - 5):
        content[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(content)
    async with on_disk(tmp_path) as store:
        with pytest.raises(StoreCorrupt, match="`dragoman sessions recover`"):
            await whole(store)
        with pytest.raises(StoreCorrupt):
            await fill(store, lease, 15_000, after=5000)
