"""The mirror: what is in the rows, line by line, and put right when it is not."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from store.faults import failing_disk
from store.stores import acquire, batch, begin, body, fill, on_disk, record

from dragoman.errors import StoreError
from dragoman.store.mirror_lines import is_header, read_header
from dragoman.store.records import Batch, SessionChange
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.mirror import Fresh, MirrorFile, mirror_path


def mirror(home: Path, session_id: str = "s") -> Path:
    return home / "sessions" / f"{session_id}.jsonl"


def lines(home: Path, session_id: str = "s") -> list[bytes]:
    content = mirror(home, session_id).read_bytes()
    assert content.endswith(b"\n")
    return content.split(b"\n")[:-1]


def events(home: Path, session_id: str = "s") -> list[bytes]:
    return [line for line in lines(home, session_id) if not is_header(line)]


def bodies(count: int) -> list[bytes]:
    return [body(seq) for seq in range(1, count + 1)]


async def filled(home: Path, count: int = 10) -> None:
    async with on_disk(home) as store:
        await fill(store, await begin(store), count)


async def put_right(home: Path) -> None:
    """What the next owner does."""
    async with on_disk(home) as store:
        owner = (await store.owned())[0][1]
        await store.renew(owner, seconds=-1)
        await acquire(store)


async def test_a_file_that_is_far_behind_is_brought_up_in_pieces(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        for seq in range(1, 301):
            await store.append(lease, Batch(first_seq=seq, events=[body(seq, "x" * 100_000)]))
    mirror(tmp_path).unlink()
    db = Database(str(tmp_path / "dragoman.db"))
    tracemalloc.start()
    MirrorFile(tmp_path / "sessions", "s").catch_up(db)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    db.close()
    assert peak < 8 * 1024 * 1024
    assert len(events(tmp_path)) == 300


async def test_a_mirror_is_a_header_and_one_event_a_line(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 3, change=SessionChange(title="T")))
    found = lines(tmp_path)
    assert json.loads(found[0])["dragoman"] == 2
    assert read_header(found[0]).session.id == "s"
    assert found[1:] == bodies(3)


async def test_every_session_has_its_own(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        for name in ("a", "b"):
            await fill(store, await begin(store, name), 3)
        await store.create_session(record("empty"))
    assert events(tmp_path, "a") == events(tmp_path, "b") == bodies(3)
    assert events(tmp_path, "empty") == []
    assert read_header(lines(tmp_path, "empty")[0]).session == record("empty")


async def test_a_changed_record_comes_again_and_the_last_one_counts(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await fill(store, lease, 3)
    async with on_disk(tmp_path) as store:
        await store.change_session("s", SessionChange(title="new", status="running"))
        await fill(store, lease, 2, after=3)
        await store.change_session("s", SessionChange(updated_at=99.0, status="idle"))
    headers = [read_header(line).session for line in lines(tmp_path) if is_header(line)]
    assert [header.title for header in headers] == [None, "new"]
    assert headers[-1].status == "idle"
    assert events(tmp_path) == bodies(5)


async def test_a_record_that_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        await store.create_session(record("s"))
    async with on_disk(tmp_path) as store:
        await acquire(store)
    assert len(lines(tmp_path)) == 1


async def test_an_event_of_several_lines_is_one_line(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        pretty = json.dumps({"seq": 1, "text": "a\nb"}, indent=1).encode()
        await store.append(lease, Batch(first_seq=1, events=[pretty]))
    [line] = events(tmp_path)
    assert json.loads(line) == {"seq": 1, "text": "a\nb"}
    inode = mirror(tmp_path).stat().st_ino
    await put_right(tmp_path)
    assert mirror(tmp_path).stat().st_ino == inode


@pytest.mark.parametrize("cut", [1, 7, 60, 150, 700])
async def test_a_torn_end_is_cut_and_what_is_missing_appended(tmp_path: Path, cut: int) -> None:
    await filled(tmp_path)
    content = mirror(tmp_path).read_bytes()
    mirror(tmp_path).write_bytes(content[:-cut])
    await put_right(tmp_path)
    assert events(tmp_path) == bodies(10)
    assert not mirror(tmp_path).with_suffix(".jsonl.old").exists()


@pytest.mark.parametrize("size", [0, 5])
async def test_a_mirror_with_no_whole_line_is_written_again(tmp_path: Path, size: int) -> None:
    await filled(tmp_path)
    os.truncate(mirror(tmp_path), size)
    await put_right(tmp_path)
    assert is_header(lines(tmp_path)[0])
    assert events(tmp_path) == bodies(10)


async def test_a_missing_mirror_is_written(tmp_path: Path) -> None:
    await filled(tmp_path)
    mirror(tmp_path).unlink()
    await put_right(tmp_path)
    assert events(tmp_path) == bodies(10)


@pytest.mark.parametrize(
    "last",
    [
        b"not JSON\n",
        b'{"type":"agent_message","seq":10,"at":10.0,"content":"other"}\n',
        b'{"seq":99}\n',
        b'{"no":"seq"}\n',
        b'{"dragoman":2,"session":{"lastSeq":99}}\n',
        b'{"dragoman":1}\n',
        b"[]\n",
    ],
)
async def test_a_mirror_that_disagrees_is_set_aside_and_written_anew(
    tmp_path: Path, last: bytes
) -> None:
    await filled(tmp_path)
    wrong = mirror(tmp_path).read_bytes() + last
    mirror(tmp_path).write_bytes(wrong)
    await put_right(tmp_path)
    assert events(tmp_path) == bodies(10)
    old = mirror(tmp_path).with_suffix(".jsonl.old")
    assert old.read_bytes() == wrong
    assert old.stat().st_mode & 0o777 == 0o600


async def test_a_mirror_that_agrees_is_only_appended_to(tmp_path: Path) -> None:
    await filled(tmp_path)
    before = mirror(tmp_path).read_bytes()
    await put_right(tmp_path)
    assert mirror(tmp_path).read_bytes().startswith(before)


async def test_two_processes_that_write_the_same_mirror_do_not_repeat_events(
    tmp_path: Path,
) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        (tmp_path / "apart").mkdir()
        files = [MirrorFile(tmp_path / "apart", "s") for _ in range(2)]
        db = Database(str(tmp_path / "dragoman.db"))
        for first in range(1, 200, 10):
            await store.append(lease, batch(first, 10))
            files[first // 10 % 2].catch_up(db)
        db.close()
    written = (tmp_path / "apart" / "s.jsonl").read_bytes().split(b"\n")[:-1]
    assert [line for line in written if not is_header(line)] == bodies(200)
    assert events(tmp_path) == bodies(200)


async def test_rows_after_a_fresh_batch_are_left_to_the_next_one(tmp_path: Path) -> None:
    await filled(tmp_path, 6)
    mirror(tmp_path).unlink()
    db, file = Database(str(tmp_path / "dragoman.db")), MirrorFile(tmp_path / "sessions", "s")
    seen: list[list[bytes]] = []
    for committed in (batch(1, 2), batch(3, 2), None):
        fresh = Fresh()
        if committed is not None:
            fresh.add(committed)
        file.catch_up(db, fresh)
        seen.append(events(tmp_path))
    db.close()
    assert seen == [bodies(2), bodies(4), bodies(6)]


async def test_a_mirror_goes_before_the_rows_and_comes_back_when_those_stay(
    tmp_path: Path,
) -> None:
    await filled(tmp_path)
    with failing_disk() as disk:
        async with on_disk(tmp_path) as store:
            await store.renew((await store.owned())[0][1], seconds=-1)
            seen: list[bool] = []
            disk.before = lambda operation, file: seen.append(mirror(tmp_path).exists())
            disk.broken = "sync"
            with pytest.raises(StoreError):
                await store.delete_session("s")
            # Else a crash right after the commit would leave what was deleted readable.
            assert seen[-1] is False
            disk.broken = ""
    assert events(tmp_path) == bodies(10)


async def test_a_long_line_at_the_end_is_found_whole(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await store.append(lease, Batch(first_seq=1, events=[body(1), body(2, "x" * 300_000)]))
    inode = mirror(tmp_path).stat().st_ino
    await put_right(tmp_path)
    assert mirror(tmp_path).stat().st_ino == inode
    assert events(tmp_path) == [body(1), body(2, "x" * 300_000)]


async def test_a_deleted_session_has_no_mirror(tmp_path: Path) -> None:
    await filled(tmp_path)
    mirror(tmp_path).with_suffix(".jsonl.old").write_text("older")
    async with on_disk(tmp_path) as store:
        owner = (await store.owned())[0][1]
        await store.renew(owner, seconds=-1)
        await store.delete_session("s")
    assert list((tmp_path / "sessions").iterdir()) == []


async def test_a_mirror_that_is_a_link_is_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "precious.txt"
    target.write_text("mine")
    home = tmp_path / "home"
    async with on_disk(home) as store:
        (home / "sessions").mkdir()
        mirror(home).symlink_to(target)
        await fill(store, await begin(store), 3)
    assert target.read_text() == "mine"
    assert "the mirror of session s is out of date" in caplog.text


def test_an_id_that_is_a_path_has_no_mirror(tmp_path: Path) -> None:
    for bad in ("../x", "a/b", "", "."):
        with pytest.raises(StoreError, match="is not a valid session id"):
            mirror_path(tmp_path, bad)
    assert mirror_path(tmp_path, "a-b_C1") == tmp_path / "a-b_C1.jsonl"
