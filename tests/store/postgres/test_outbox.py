"""What a process left in its outbox: delivered, or set aside, or still there, and never lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
import pytest
from store.postgres.stores import opened, outboxes
from store.stores import batch, begin, body, whole
from support.postgres import empty_database

from dragoman.errors import StoreError
from dragoman.store.outage import LeftEvents, Outbox
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import Batch, Lease, Said, SessionChange


async def test_an_outbox_that_cannot_be_read_is_set_aside_and_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = empty_database()
    async with opened(address, tmp_path):
        pass
    with psycopg.connect(address) as connection:
        found = connection.execute("SELECT store FROM dragoman.steps").fetchone()
        assert found is not None
    folder = tmp_path / "outbox" / found[0]
    folder.mkdir(parents=True)
    (folder / "1-x.db").write_bytes(b"no database at all, but long enough to be looked at" * 100)
    async with opened(address, tmp_path) as store:
        assert await store.last_position() == 0
    assert [path.name for path in folder.iterdir()] == ["1-x.damaged"]
    assert "1-x.damaged cannot be read" in caplog.text


async def left_by_a_killed_process(address: str, directory: Path) -> Path:
    """An outbox whose events are in its log alone."""
    async with opened(address, directory) as store:
        lease = await begin(store)
        await store.release(lease)
    with psycopg.connect(address) as connection:
        found = connection.execute("SELECT store FROM dragoman.steps").fetchone()
        assert found is not None
    box = Outbox(directory / "living", found[0])
    box.keep([(lease, batch(1, 3))])
    [living] = outboxes(directory / "living")
    path = directory / "outbox" / found[0] / living.name
    path.parent.mkdir(parents=True)
    for ending in ("", "-wal"):
        shutil.copy(f"{living}{ending}", f"{path}{ending}")
    box.close()
    return path


async def test_what_a_damaged_outbox_has_in_its_log_is_set_aside_with_it(tmp_path: Path) -> None:
    address = empty_database()
    path = await left_by_a_killed_process(address, tmp_path)
    log_path = path.with_suffix(".db-wal")
    log = b"xxxx" + log_path.read_bytes()[4:]
    assert body(3) in log
    path.write_bytes(b"x" * 4096)
    log_path.write_bytes(log)
    async with opened(address, tmp_path):
        pass
    assert path.with_suffix(".damaged").exists()
    assert path.with_suffix(".damaged-wal").read_bytes() == log
    assert not path.exists()


async def test_an_outbox_that_cannot_be_read_now_stays_for_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: LeftEvents) -> None:
        raise StoreError("outbox", "the disk failed")

    address = empty_database()
    path = await left_by_a_killed_process(address, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(LeftEvents, "entries", fails)
        async with opened(address, tmp_path) as store:
            assert await whole(store) == []
    assert "the disk failed" in caplog.text
    [left] = Outbox(tmp_path, path.parent.name).left_behind()
    assert len(left.entries()) == 1
    left.close()


async def test_what_can_neither_be_delivered_nor_set_aside_stays_where_it_is(
    tmp_path: Path,
) -> None:
    address = empty_database()
    path = await left_by_a_killed_process(address, tmp_path)
    (tmp_path / "undelivered").write_text("in the way")
    with pytest.raises(StoreError, match="could not be set aside"):
        await open_postgres(address, tmp_path)
    assert path.exists()
    (tmp_path / "undelivered").unlink()
    async with opened(address, tmp_path):
        assert not path.exists()
    [kept] = (tmp_path / "undelivered").iterdir()
    assert kept.read_bytes().splitlines() == [body(1), body(2), body(3)]


def test_what_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    change = SessionChange(title=None, status="running", updated_at=2.5)
    kept = Batch(first_seq=7, events=[b"\0", b""], change=change, said=[Said(7, "user", "x")])
    box, lease = Outbox(tmp_path, "store"), Lease("s", "me", 3)
    box.keep([(lease, kept)])
    assert list(Outbox(tmp_path, "store").left_behind()) == []
    box.close()
    [left] = Outbox(tmp_path, "store").left_behind()
    assert left.entries() == [(lease, kept)]
    assert list(Outbox(tmp_path, "other").left_behind()) == []
    left.remove()
