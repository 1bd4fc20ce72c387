"""Opening: private files, no links, tables brought up to date, by several processes at once."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store.stores import batch, begin, fill, on_disk, record, whole

from dragoman.errors import StoreAway, StoreCorrupt, StoreError
from dragoman.session.facts import SystemPrompt
from dragoman.store.mirror_lines import header_line
from dragoman.store.open import open_store
from dragoman.store.records import SessionChange
from dragoman.store.sqlite import database, sessions, tables
from dragoman.store.sqlite.database import Database

PROGRAMS = Path(__file__).parent / "programs"


def modes(directory: Path) -> dict[str, int]:
    """Of everything in a directory, and of itself."""
    found = (directory, *directory.rglob("*"))
    return {str(each.relative_to(directory)): stat.S_IMODE(each.lstat().st_mode) for each in found}


async def test_what_was_stored_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 3))
    async with on_disk(tmp_path) as store:
        before = await whole(store)
        assert [event.seq for event in before] == [1, 2, 3]
        await store.append(lease, batch(4))


async def test_every_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    home, previous = tmp_path / "deep" / "home", os.umask(0)
    try:
        async with on_disk(home) as store:
            lease = await begin(store)
            await store.append(lease, batch(1))
            await store.session("s")
            while_open = modes(home)
        assert modes(home).keys() == {".", "dragoman.db", "sessions", "sessions/s.jsonl"}
        assert (while_open | modes(home)) == {
            ".": 0o700,
            "dragoman.db": 0o600,
            "dragoman.db-wal": 0o600,
            "dragoman.db-shm": 0o600,
            "sessions": 0o700,
            "sessions/s.jsonl": 0o600,
        }
    finally:
        os.umask(previous)


def test_every_setting_of_a_connection_counts(tmp_path: Path) -> None:
    db = Database(database.prepare(tmp_path))
    names = ("journal_mode", "synchronous", "secure_delete", "journal_size_limit", "temp_store")
    settings = {name: db.rows(f"PRAGMA {name}")[0][0] for name in names}
    db.close()
    full, in_memory = 2, 2
    assert settings == {
        "journal_mode": "wal",
        "synchronous": full,
        "secure_delete": 1,
        "journal_size_limit": 16 * 1024 * 1024,
        "temp_store": in_memory,
    }


async def test_files_that_others_could_read_become_private(tmp_path: Path) -> None:
    async with on_disk(tmp_path):
        pass
    os.chmod(tmp_path, 0o755)
    os.chmod(tmp_path / "dragoman.db", 0o644)
    async with on_disk(tmp_path):
        assert modes(tmp_path)["."] == 0o700
        assert modes(tmp_path)["dragoman.db"] == 0o600


async def test_a_database_that_is_a_link_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.db"
    target.write_bytes(b"")
    home = tmp_path / "home"
    home.mkdir()
    (home / "dragoman.db").symlink_to(target)
    with pytest.raises(StoreError, match="is not a regular file"):
        await open_store(home)
    assert target.read_bytes() == b""


async def test_a_directory_may_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    async with on_disk(tmp_path / "home") as store:
        await store.create_session(record())
    assert (tmp_path / "real" / "dragoman.db").exists()


async def test_a_database_of_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        await store.create_session(record())
    db = Database(str(tmp_path / "dragoman.db"))
    db.run("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="by a later version of Dragoman"):
        await open_store(tmp_path)
    db = Database(str(tmp_path / "dragoman.db"))
    assert db.rows("SELECT count(*) FROM sessions") == [(1,)]
    db.close()


async def test_an_older_database_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_disk(tmp_path) as store:
        await store.create_session(record())
    step = "ALTER TABLE sessions ADD COLUMN colour TEXT"
    monkeypatch.setattr(tables, "STEPS", (*tables.STEPS, step))
    async with on_disk(tmp_path) as store:
        assert await store.session("s") == record()
    db = Database(str(tmp_path / "dragoman.db"))
    assert db.rows("SELECT colour FROM sessions") == [(None,)]
    assert db.rows("PRAGMA user_version") == [(len(tables.STEPS),)]
    db.close()


async def test_a_step_that_fails_leaves_the_database_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_disk(tmp_path) as store:
        await store.create_session(record())
    steps = (*tables.STEPS, "ALTER TABLE sessions ADD COLUMN colour TEXT", "nonsense")
    monkeypatch.setattr(tables, "STEPS", steps)
    with pytest.raises(StoreError):
        await open_store(tmp_path)
    monkeypatch.undo()
    async with on_disk(tmp_path) as store:
        assert await store.session("s") == record()


def test_processes_that_start_at_once_on_nothing_all_get_a_store(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAMS / "opener.py"), str(tmp_path / "home")]
    running = [
        subprocess.Popen([*command, f"p{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for n in range(6)
    ]
    for each in running:
        assert each.stdout is not None
        assert each.stdout.readline() == b"ready\n"
    for each in running:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
        each.stdin.flush()
    outputs = [each.communicate(timeout=60)[0] for each in running]
    assert outputs == [b"20\n"] * 6
    db = Database(str(tmp_path / "home" / "dragoman.db"))
    assert db.rows("SELECT count(*), count(DISTINCT position) FROM events") == [(120, 120)]
    assert db.rows("PRAGMA integrity_check") == [("ok",)]
    db.close()


class Overtaken(Database):
    """Another process makes the tables, and a session, just before this one can."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        if statement == "BEGIN IMMEDIATE":
            other = Database(self.place)
            tables.migrate(other)
            sessions.create(other, record())
            other.close()
            mirrors = Path(self.place).parent / "sessions"
            mirrors.mkdir()
            (mirrors / "s.jsonl").write_bytes(header_line(record()))
        super().run(statement, values)


async def test_a_store_that_another_process_is_just_making_is_not_taken_for_a_lost_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.store.open.Database", Overtaken)
    async with on_disk(tmp_path) as store:
        assert await store.session("s") == record()


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b"\0" * 5000])
async def test_what_is_no_database_is_reported_with_the_way_out(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "dragoman.db").write_bytes(content)
    with pytest.raises(StoreCorrupt, match="`dragoman sessions recover` rebuilds it"):
        await open_store(tmp_path)
    assert (tmp_path / "dragoman.db").read_bytes() == content


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    for directory in (tmp_path, None):
        store = await open_store(directory)
        lease = await begin(store)
        await store.aclose()
        await store.aclose()
        with pytest.raises(StoreError, match="the store is closed"):
            await store.append(lease, batch(1))
        with pytest.raises(StoreError, match="the store is closed"):
            await store.session("s")


async def test_closing_waits_for_what_is_being_written(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    lease = await begin(store)
    tasks = [asyncio.create_task(store.append(lease, batch(seq))) for seq in range(1, 101)]
    await asyncio.sleep(0)
    await store.aclose()
    await asyncio.gather(*tasks)
    async with on_disk(tmp_path) as store:
        assert len(await whole(store)) == 100
    assert (tmp_path / "sessions" / "s.jsonl").read_bytes().count(b"\n") == 101


async def test_a_store_in_memory_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = await open_store(None)
    await fill(store, await begin(store), 5)
    await store.aclose()
    assert os.listdir(tmp_path) == []


async def test_a_deletion_that_was_cut_short_goes_on_at_the_next_start(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        await fill(store, await begin(store), 5000)
        await fill(store, await begin(store, "kept"), 5)
    db = Database(str(tmp_path / "dragoman.db"))
    db.run("UPDATE sessions SET deleted = 1 WHERE id = 's'")
    db.close()
    async with on_disk(tmp_path) as store:
        assert await store.session("s") is None
        assert len(await store.all_events()) == 5
    db = Database(str(tmp_path / "dragoman.db"))
    assert db.rows("SELECT count(*) FROM events") == [(5,)]
    assert db.rows("SELECT count(*) FROM session_leases") == [(1,)]
    db.close()


# The column was the last step for a while.
BEFORE_PROMPTS = 8


async def test_a_process_of_before_is_waited_for_when_sessions_get_system_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dragoman.db").touch(mode=0o600)
    with closing(Database(str(tmp_path / "dragoman.db"))) as db:
        with monkeypatch.context() as before:
            before.setattr(tables, "STEPS", tables.STEPS[:BEFORE_PROMPTS])
            tables.migrate(db)
        db.run("INSERT INTO hosts VALUES ('h', NULL, x'', 0, ?)", (2e9,))
        with pytest.raises(StoreAway, match="another process is using it"):
            await open_store(tmp_path)
        db.run("DELETE FROM hosts")
    async with on_disk(tmp_path) as store:
        await store.create_session(record())
        told = SystemPrompt("Be brief.")
        await store.change_session("s", SessionChange(system_prompt=told))
        assert await store.session("s") == record(system_prompt=told)


async def test_a_store_that_a_later_version_has_taken_over_is_not_written_to(
    tmp_path: Path,
) -> None:
    async with on_disk(tmp_path) as store:
        await store.create_session(record())
        with closing(Database(str(tmp_path / "dragoman.db"))) as db:
            db.run(f"PRAGMA user_version = {len(tables.STEPS) + 1}")
        with pytest.raises(StoreError, match="by a later version of Dragoman"):
            await store.change_session("s", SessionChange(title="too late"))
        assert (await store.session("s")) == record()
