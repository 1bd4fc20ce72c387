"""When disk or database fail: an error for each one who waits, and nothing acknowledged."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from store.faults import Disk, failing_disk
from store.stores import batch, begin, fill, on_disk, record, whole

from dragoman.errors import StoreCorrupt, StoreError, StoreFull
from dragoman.store import database
from dragoman.store.records import SessionFilter

PROGRAMS = Path(__file__).parent / "programs"


def fail(disk: Disk, how: str) -> None:
    disk.full, disk.broken = how == "full", how if how != "full" else ""


@pytest.mark.parametrize("how", ["full", "write", "sync"])
async def test_a_disk_that_fails_loses_nothing_that_was_acknowledged(
    tmp_path: Path, how: str
) -> None:
    with failing_disk() as disk:
        async with on_disk(tmp_path) as store:
            leases = [await begin(store, name) for name in ("a", "b", "c")]
            for lease in leases:
                await store.append(lease, batch(1, 10))
            fail(disk, how)
            calls = [store.append(lease, batch(11, 10)) for lease in leases]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(each) for each in results] == [
                StoreFull if how == "full" else StoreError
            ] * 3
            assert disk.failed > 0
            with pytest.raises(StoreError):
                await store.create_session(record("new"))
            # What is there can still be read, and nothing of what failed is.
            assert [len(await whole(store, name)) for name in ("a", "b", "c")] == [10, 10, 10]
            fail(disk, "")
            for lease in leases:
                await store.append(lease, batch(11, 5))
    async with on_disk(tmp_path) as store:
        for name in ("a", "b", "c"):
            assert [event.seq for event in await whole(store, name)] == list(range(1, 16))
        assert await store.session("new") is None


async def test_the_sentence_says_what_is_the_matter(tmp_path: Path) -> None:
    with failing_disk() as disk:
        async with on_disk(tmp_path) as store:
            lease = await begin(store)
            fail(disk, "full")
            with pytest.raises(StoreFull, match=r"dragoman\.db: there is no room left"):
                await store.append(lease, batch(1))
            fail(disk, "")


async def test_a_full_disk_under_the_mirror_alone_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with on_disk(tmp_path) as store:
        (tmp_path / "sessions").write_text("in the way")
        lease = await begin(store)
        await store.append(lease, batch(1, 5))
        assert len(await whole(store)) == 5
    assert "the mirror of session s is behind" in caplog.text
    (tmp_path / "sessions").unlink()
    async with on_disk(tmp_path) as store:
        await store.append(lease, batch(6))
    lines = (tmp_path / "sessions" / "s.jsonl").read_bytes().splitlines()
    assert len(lines) == 7


def locker(path: Path) -> subprocess.Popen[bytes]:
    """Another process that holds the database locked until its input ends."""
    command = [sys.executable, str(PROGRAMS / "locker.py"), str(path / "dragoman.db")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"locked\n"
    return process


async def test_a_database_that_another_process_keeps_locked_is_an_error_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await store.append(lease, batch(1))
        with locker(tmp_path) as other:
            with pytest.raises(StoreError, match="kept the database locked for too long"):
                await store.append(lease, batch(2))
            assert len(await whole(store)) == 1
            assert len(await store.sessions(SessionFilter())) == 1
            other.communicate(timeout=30)
        await store.append(lease, batch(2))
        assert len(await whole(store)) == 2


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
