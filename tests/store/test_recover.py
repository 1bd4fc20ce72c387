"""A damaged database: noticed, and built anew from the mirrors and from what can still be read."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from store.endings import ENDINGS, Ending
from store.stores import acquire, batch, begin, fill, on_disk, record, whole

from dragoman.errors import StoreCorrupt, StoreError
from dragoman.host.rules.rule import Rule
from dragoman.session.content import Text
from dragoman.session.events import TurnEnded, TurnStarted
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState, loose_ends
from dragoman.store.mirror_lines import is_header
from dragoman.store.open import check_store, is_there, open_rules, open_store
from dragoman.store.records import Batch, Said, SessionChange, SessionFilter, encode_event
from dragoman.store.sqlite.database import Database, prepare
from dragoman.store.sqlite.recovery import RecoveryReport, check, recover

SEED = 20_240_617
RULE = Rule(effect="deny", operation="write", id="r1", source="your answer")
PROGRAMS = Path(__file__).parent / "programs"


async def filled(home: Path) -> None:
    async with on_disk(home) as store:
        store.rules.add(RULE)
        lease = await begin(store, "a")
        turn = TurnStarted("t", [Text("please find me")], seq=1), TurnEnded("t", seq=2)
        await store.append(lease, Batch(first_seq=1, events=[encode_event(each) for each in turn]))
        await fill(store, lease, 2999, after=2)
        await store.change_session("a", SessionChange(title="A title", name="mine"))
        await fill(store, await begin(store, "b"), 5)
        await store.create_session(record("c", name="mine", cwd="/elsewhere", parent="a"))


async def content(home: Path) -> dict[str, list[bytes]]:
    async with on_disk(home) as store:
        sessions = await store.sessions(SessionFilter())
        return {each.id: [e.body for e in await whole(store, each.id)] for each in sessions}


def overwrite(path: Path, seed: int, header: bool) -> None:
    """Random bytes in random places, or in the place where SQLite looks first."""
    chosen, damaged = random.Random(seed), bytearray(path.read_bytes())
    if header:
        damaged[:100] = chosen.randbytes(100)
    for _ in range(60):
        at = chosen.randrange(100, len(damaged) - 64)
        damaged[at : at + 64] = chosen.randbytes(64)
    path.write_bytes(damaged)


def lose_log(home: Path) -> None:
    for name in ("dragoman.db-wal", "dragoman.db-shm"):
        (home / name).unlink(missing_ok=True)


async def test_a_database_in_order_has_no_faults(tmp_path: Path) -> None:
    assert check(tmp_path) == []
    assert not (tmp_path / "dragoman.db").exists()
    await filled(tmp_path)
    assert check(tmp_path) == []


@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
@pytest.mark.parametrize("header", [True, False])
async def test_what_was_damaged_is_rebuilt_from_the_mirrors(
    tmp_path: Path, seed: int, header: bool
) -> None:
    await filled(tmp_path)
    before = await content(tmp_path)
    path = tmp_path / "dragoman.db"
    overwrite(path, seed, header)
    damaged = path.read_bytes()
    assert check(tmp_path) != [], f"seed {seed}"
    report = recover(tmp_path)
    assert await content(tmp_path) == before, f"seed {seed}: {report}"
    assert check(tmp_path) == []
    assert report.set_aside is not None
    aside = tmp_path / os.path.basename(report.set_aside)
    assert aside.read_bytes() == damaged
    assert aside.name.startswith("dragoman.db.damaged-")
    assert (report.sessions, report.events) == (3, 3006)


async def test_a_header_that_is_damaged_is_noticed_at_opening(tmp_path: Path) -> None:
    await filled(tmp_path)
    overwrite(tmp_path / "dragoman.db", SEED, header=True)
    with pytest.raises(StoreCorrupt, match="`dragoman sessions recover`"):
        await open_store(tmp_path)


async def test_records_search_and_rules_come_back(tmp_path: Path) -> None:
    await filled(tmp_path)
    report = recover(tmp_path)
    assert report.rules == 1
    assert report.remarks == []
    async with on_disk(tmp_path) as store:
        found = await store.session("a")
        assert found is not None
        assert (found.title, found.name, found.last_seq) == ("A title", "mine", 3001)
        other = await store.session("c")
        assert other is not None
        assert (other.cwd, other.parent, other.name) == ("/elsewhere", "a", "mine")
        assert [hit.seq for hit in await store.search("please find")] == [1]
        assert list(store.rules.list()) == [RULE]
        await store.append(await acquire(store, "a"), batch(3002))


async def test_mirrors_alone_are_enough(tmp_path: Path) -> None:
    await filled(tmp_path)
    before = await content(tmp_path)
    (tmp_path / "dragoman.db").unlink()
    lose_log(tmp_path)
    report = recover(tmp_path)
    assert report.set_aside is None
    assert await content(tmp_path) == before
    async with on_disk(tmp_path) as store:
        found = await store.session("a")
        assert found is not None
        assert (found.title, found.name) == ("A title", "mine")
        assert len(await store.search("find")) == 1


def lose_database(home: Path, how: str) -> None:
    path = home / "dragoman.db"
    path.unlink()
    lose_log(home)
    if how == "of no bytes":
        path.touch()
    elif how == "without tables":
        Database(str(prepare(home))).close()


LOST = pytest.mark.parametrize("how", ["gone", "of no bytes", "without tables"])


@LOST
async def test_a_database_that_is_lost_is_noticed_and_rebuilt(tmp_path: Path, how: str) -> None:
    await filled(tmp_path)
    before = await content(tmp_path)
    lose_database(tmp_path, how)
    sentence = "missing or empty, and there are mirrors of 3 sessions; `dragoman sessions recover`"
    [fault] = check(tmp_path)
    assert sentence in fault
    assert sentence in (await check_store(None, tmp_path)).faults[0]
    for _ in range(2):
        # Also the second time: the first has not begun a store.
        with pytest.raises(StoreCorrupt, match=sentence):
            await open_store(tmp_path)
        with pytest.raises(StoreCorrupt, match=sentence):
            open_rules(tmp_path)
        assert check(tmp_path) == [fault]
    report = recover(tmp_path)
    assert (report.sessions, report.events, report.remarks) == (3, 3006, [])
    assert await content(tmp_path) == before
    assert check(tmp_path) == []


@LOST
async def test_control_a_database_that_is_lost_with_its_mirrors_is_a_new_one(
    tmp_path: Path, how: str
) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store, "a")
    async with on_disk(tmp_path) as store:
        await store.delete_session("a", lease)
    lose_database(tmp_path, how)
    (tmp_path / "sessions" / "not an id.jsonl").write_bytes(b"")
    assert check(tmp_path) == []
    assert (await check_store(None, tmp_path)).faults == []
    assert await content(tmp_path) == {}


async def test_where_mirrors_are_something_was_stored(tmp_path: Path) -> None:
    assert not is_there(tmp_path)
    await filled(tmp_path)
    lose_database(tmp_path, "gone")
    assert is_there(tmp_path)


async def test_the_log_of_a_lost_database_is_not_taken_for_that_of_the_new_one(
    tmp_path: Path,
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    async with on_disk(home) as store:
        await fill(store, await begin(store, "gone"), 10)
        await asyncio.to_thread(subprocess.run, ["cp", "-r", str(home), str(copy)], check=True)
    (copy / "dragoman.db").unlink()
    log = (copy / "dragoman.db-wal").read_bytes()
    shutil.rmtree(copy / "sessions", ignore_errors=True)
    report = recover(copy)
    assert await content(copy) == {}
    assert (copy / f"{os.path.basename(str(report.set_aside))}-wal").read_bytes() == log


@pytest.mark.parametrize("lost", ["database", "mirrors", "half a mirror"])
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
async def test_the_status_is_what_the_events_say(tmp_path: Path, ending: Ending, lost: str) -> None:
    async with on_disk(tmp_path) as store:
        await store.append(await begin(store), ending.batch())
    mirror = tmp_path / "sessions" / "s.jsonl"
    if lost == "database":
        lose_database(tmp_path, "gone")
    elif lost == "mirrors":
        mirror.unlink()
    else:
        lines = mirror.read_bytes().splitlines(keepends=True)
        mirror.write_bytes(b"".join(lines[:2]))
    recover(tmp_path)
    async with on_disk(tmp_path) as store:
        found = await store.session("s")
        assert found is not None
        assert found.status == ending.at_rest
        events = [event.decode() for event in await whole(store)]
        assert [event.seq for event in events] == list(range(1, found.last_seq + 1))
        assert loose_ends(fold(SessionState(), events)) == []
        # And its mirror follows, as if an owner had done it.
        await acquire(store, "s")
    assert [line for line in mirror.read_bytes().splitlines() if not is_header(line)] == [
        encode_event(event) for event in events
    ]


async def test_what_the_mirrors_lack_is_taken_from_the_database(tmp_path: Path) -> None:
    await filled(tmp_path)
    before = await content(tmp_path)
    mirrors = tmp_path / "sessions"
    lines = (mirrors / "a.jsonl").read_bytes().splitlines(keepends=True)
    (mirrors / "a.jsonl").write_bytes(b"".join(lines[:1000]) + lines[1000][:20])
    (mirrors / "b.jsonl").unlink()
    report = recover(tmp_path)
    assert await content(tmp_path) == before
    assert report.remarks == ["session a: its mirror is torn at line 1001"]


async def test_mirrors_that_are_nonsense_are_said_and_left(tmp_path: Path) -> None:
    await filled(tmp_path)
    (tmp_path / "dragoman.db").unlink()
    lose_log(tmp_path)
    mirrors = tmp_path / "sessions"
    (mirrors / "b.jsonl").write_bytes(b"nonsense\n")
    (mirrors / "empty.jsonl").write_bytes(b"")
    (mirrors / "link.jsonl").symlink_to("/etc/passwd")
    (mirrors / "not an id.jsonl").write_bytes(b"")
    lines = (mirrors / "a.jsonl").read_bytes().splitlines(keepends=True)
    del lines[5]
    (mirrors / "a.jsonl").write_bytes(b"".join(lines))
    report = recover(tmp_path)
    assert report.remarks == [
        "session a: its mirror has a gap before line 6",
        "session b: its mirror is torn at line 1",
        "session b: its mirror has no header and was left where it is",
        "session empty: its mirror has no header and was left where it is",
        "session link: its mirror cannot be read: Too many levels of symbolic links",
    ]
    assert {name: len(events) for name, events in (await content(tmp_path)).items()} == {
        "a": 4,
        "c": 0,
    }
    assert (mirrors / "b.jsonl").read_bytes() == b"nonsense\n"


async def test_a_text_that_is_damaged_is_kept_and_passed_over(tmp_path: Path) -> None:
    await filled(tmp_path)
    mirror = tmp_path / "sessions" / "a.jsonl"
    mirror.write_bytes(mirror.read_bytes().replace(b"find me", b"find \xffe"))
    (tmp_path / "dragoman.db").unlink()
    recover(tmp_path)
    assert b"find \xffe" in (await content(tmp_path))["a"][0]


async def test_a_deleted_session_stays_deleted(tmp_path: Path) -> None:
    await filled(tmp_path)
    async with on_disk(tmp_path) as store:
        for _, owner in await store.owned():
            await store.renew(owner, seconds=-1)
        await store.delete_session("a")
    recover(tmp_path)
    assert set(await content(tmp_path)) == {"b", "c"}


async def test_recovering_twice_keeps_both_databases(tmp_path: Path) -> None:
    await filled(tmp_path)
    first, second = recover(tmp_path), recover(tmp_path)
    assert first.set_aside != second.set_aside
    for name in (first.set_aside, second.set_aside):
        assert os.path.basename(str(name)) in os.listdir(tmp_path)


async def test_a_store_that_is_in_use_is_not_recovered(tmp_path: Path) -> None:
    await filled(tmp_path)
    command = [sys.executable, str(PROGRAMS / "locker.py"), str(tmp_path / "dragoman.db")]
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert other.stdout is not None
    assert await other.stdout.readline() == b"locked\n"
    with pytest.raises(StoreError, match="another process has the store open"):
        recover(tmp_path)
    await other.communicate(b"")
    assert isinstance(recover(tmp_path), RecoveryReport)


async def test_a_damaged_index_of_words_is_noticed(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await store.append(lease, batch(1, said=[Said(1, "user", "hello")]))
    db = Database(str(tmp_path / "dragoman.db"))
    db.run("UPDATE said SET text = 'changed behind its back'")
    db.close()
    assert check(tmp_path) != []
    recover(tmp_path)
    assert check(tmp_path) == []


def test_there_may_be_nothing_at_all(tmp_path: Path) -> None:
    assert recover(tmp_path) == RecoveryReport()


async def test_what_is_only_in_the_log_of_a_killed_writer_is_taken_too(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    async with on_disk(home) as store:
        await fill(store, await begin(store, "a"), 100)
        # As a killed process leaves it: the log beside the database, the mirror not there yet.
        await asyncio.to_thread(subprocess.run, ["cp", "-r", str(home), str(copy)], check=True)
    before = {path.name: path.read_bytes() for path in copy.glob("dragoman.db*")}
    assert len(before["dragoman.db-wal"]) > 10_000
    shutil.rmtree(copy / "sessions", ignore_errors=True)
    report = recover(copy)
    assert report.remarks == []
    assert {name: len(events) for name, events in (await content(copy)).items()} == {"a": 100}
    aside = os.path.basename(str(report.set_aside))
    assert (copy / aside).read_bytes() == before["dragoman.db"]
    assert (copy / f"{aside}-wal").read_bytes() == before["dragoman.db-wal"]
