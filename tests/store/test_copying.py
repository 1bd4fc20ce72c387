"""One store copied into another, of either kind; again and again, until both are the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from store.stores import KINDS, ME, YOU, acquire, batch, begin, record, renewed, whole
from support.postgres import bare_database, empty_database, postgres

from dragoman.errors import DragomanError, LeaseLost, StoreError, UnknownSession
from dragoman.host.rules.rule import Rule
from dragoman.session.content import Text
from dragoman.session.events import AgentMessage, TurnStarted
from dragoman.store import transfer
from dragoman.store.base import Store
from dragoman.store.open import check_store
from dragoman.store.records import (
    Batch,
    Lease,
    SessionChange,
    SessionFilter,
    SessionRecord,
    Snapshot,
    encode_event,
)
from dragoman.store.transfer import copy_store

PAIRS = [("sqlite", "postgresql"), ("postgresql", "sqlite"), ("sqlite in memory", "sqlite")]


@asynccontextmanager
async def both(kinds: tuple[str, str], folder: Path) -> AsyncGenerator[tuple[Store, Store]]:
    async with KINDS[kinds[0]](folder / "from") as source, KINDS[kinds[1]](folder / "to") as target:
        yield source, target


def spoken(first: int, count: int) -> Batch:
    events = [
        encode_event(AgentMessage(Text(f"word{seq} "), seq=seq, at=float(seq)))
        for seq in range(first, first + count)
    ]
    return Batch(first_seq=first, events=events)


async def filled(store: Store) -> Lease:
    lease = await begin(store)
    asked = encode_event(TurnStarted("t1", [Text("question")], seq=1, at=1.0))
    await store.append(lease, Batch(first_seq=1, events=[asked]))
    await store.append(lease, spoken(2, 2500))
    await store.save_snapshot(lease, Snapshot(2000, b"state"))
    change = SessionChange(title="T", renamed=True, archived=True, status="interrupted")
    await store.change_session("s", change)
    await store.release(lease)
    await store.create_session(record("empty", name="n", cwd="/elsewhere"))
    store.rules.add(Rule(effect="deny", id="r1"))
    return lease


async def test_a_copy_allows_nothing_that_was_allowed_on_another_machine(tmp_path: Path) -> None:
    def allow(name: str) -> Rule:
        return Rule(effect="allow", operation="execute", argv=(name,), id=name)

    deny = Rule(effect="deny", id="no")
    async with both(("postgresql", "sqlite"), tmp_path) as (source, target):
        source.rules.add(allow("here"))
        source.rules.add(allow("there"), "another machine")
        source.rules.add(deny, "another machine")
        copied = await copy_store(source, target, ME, None)
        assert list(target.rules.list()) == [allow("here"), deny]
        reason = "the rule there was skipped: it does not apply on this machine"
        assert (copied.rules, copied.remarks) == (2, [reason])


@pytest.mark.parametrize("kinds", PAIRS, ids=" to ".join)
async def test_a_copy_has_all_there_was(kinds: tuple[str, str], tmp_path: Path) -> None:
    async with both(kinds, tmp_path) as (source, target):
        await filled(source)
        copied = await copy_store(source, target, ME, None)
        assert (copied.sessions, copied.events, copied.rules) == (2, 2501, 1)
        assert copied.remarks == []
        for wanted in ("s", "empty"):
            assert await target.session(wanted) == await source.session(wanted)
            assert await target.owner(wanted) is None
        mine, theirs = await whole(source), await whole(target)
        assert [event.body for event in mine] == [event.body for event in theirs]
        assert await target.snapshot("s") == Snapshot(2000, b"state")
        assert list(target.rules.list()) == list(source.rules.list())
        assert [hit.seq for hit in await target.search("word2400")] == [2]
        assert [hit.kind for hit in await target.search("question")] == ["user"]


@pytest.mark.parametrize("kinds", PAIRS[:2], ids=" to ".join)
async def test_a_copy_is_gone_on_with(kinds: tuple[str, str], tmp_path: Path) -> None:
    async with both(kinds, tmp_path) as (source, target):
        await filled(source)
        await copy_store(source, target, ME, None)
        again = await copy_store(source, target, ME, None)
        assert (again.sessions, again.events, again.rules, again.remarks) == (0, 0, 0, [])
        lease = await acquire(source)
        await source.append(lease, spoken(2502, 3))
        await source.release(lease)
        more = await copy_store(source, target, ME, None)
        assert (more.sessions, more.events) == (1, 3)
        assert len(await whole(target)) == 2504


async def test_what_runs_and_what_is_another_session_is_left_out(tmp_path: Path) -> None:
    async with both(("sqlite", "sqlite"), tmp_path) as (source, target):
        await begin(source, "runs")
        for store, count in ((source, 3), (target, 2)):
            lease = await begin(store, "other")
            bodies = [f"{store is target}{number}".encode() for number in range(count)]
            await store.append(lease, Batch(first_seq=1, events=bodies))
            await store.release(lease)
        owned = await begin(source, "theirs")
        await source.append(owned, batch(1, 2))
        await source.release(owned)
        await begin(target, "theirs", YOU)
        copied = await copy_store(source, target, ME, None)
        assert copied.sessions == 0
        assert sorted(remark.split()[0] for remark in copied.remarks) == ["other", "runs", "theirs"]
        assert len(await whole(target, "other")) == 2


@pytest.mark.parametrize("error", [LeaseLost("a"), UnknownSession("a")], ids=["taken", "deleted"])
async def test_what_is_taken_or_deleted_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: DragomanError
) -> None:
    async with both(("sqlite", "sqlite"), tmp_path) as (source, target):
        for name in ("a", "b"):
            lease = await begin(source, name)
            await source.append(lease, batch(1, 2))
            await source.release(lease)
        original = target.append

        async def append(lease: Lease, batch: Batch) -> int:
            if lease.session_id == "a":
                raise error
            return await original(lease, batch)

        monkeypatch.setattr(target, "append", append)
        copied = await copy_store(source, target, ME, None)
        assert copied.sessions == 1
        assert [remark.split(":")[0] for remark in copied.remarks] == ["a was skipped"]
        assert len(await whole(target, "b")) == 2


async def test_the_lease_of_a_long_copy_does_not_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with both(("sqlite", "sqlite"), tmp_path) as (source, target):
        await filled(source)
        original = target.append

        async def append(lease: Lease, batch: Batch) -> int:
            await renewed(tmp_path / "to")
            return await original(lease, batch)

        monkeypatch.setattr(target, "append", append)
        copied = await copy_store(source, target, ME, None, lease_seconds=0.2)
        assert (copied.sessions, copied.remarks) == (2, [])


async def test_a_name_that_is_taken_there_is_left_out(tmp_path: Path) -> None:
    async with both(("sqlite", "sqlite"), tmp_path) as (source, target):
        await source.create_session(record("a", name="n"))
        await target.create_session(record("b", name="n"))
        copied = await copy_store(source, target, ME, None)
        assert copied.remarks == ["a was copied without its name: n is taken"]
        found = await target.session("a")
        assert found is not None
        assert found.name is None


async def test_where_workspaces_are_is_said_where_several_machines_look(tmp_path: Path) -> None:
    async with both(("sqlite", "postgresql"), tmp_path) as (source, target):
        await source.create_session(record("a"))
        await copy_store(source, target, ME, "home-1")
        [there] = await target.sessions(SessionFilter())
        assert there.home == "home-1"
    async with both(("postgresql", "sqlite"), tmp_path / "back") as (source, target):
        await source.create_session(record("a", home="home-1"))
        await copy_store(source, target, ME, "home-2")
        [there] = await target.sessions(SessionFilter())
        assert there.home is None


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_store_in_order_has_no_faults(kind: str, tmp_path: Path) -> None:
    async with KINDS[kind](tmp_path) as store:
        await filled(store)
    address = None if kind == "sqlite" else postgres().address()
    checked = await check_store(address, tmp_path)
    assert (checked.sessions, checked.events, checked.faults) == (2, 2501, [])


async def test_an_event_that_is_missing_is_a_fault(tmp_path: Path) -> None:
    address = empty_database()
    async with KINDS["postgresql"](tmp_path) as store:
        await filled(store)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DELETE FROM dragoman.events WHERE seq = 77")
        connection.execute("UPDATE dragoman.head SET position = 5")
    checked = await check_store(address, tmp_path)
    assert checked.faults == [
        "session s should have 2501 events, has 2500, the last is 2501",
        "there are events after the newest one",
    ]


async def test_a_database_without_a_store_is_said_to_have_none_and_stays_so(tmp_path: Path) -> None:
    address = bare_database()
    with pytest.raises(StoreError, match="this database contains no store"):
        await check_store(address, tmp_path)
    with psycopg.connect(address) as connection:
        found = connection.execute("SELECT to_regnamespace('dragoman')").fetchone()
    assert found == (None,)


async def test_sessions_that_are_deleted_or_come_to_the_top_meanwhile_hold_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with both(("sqlite", "sqlite"), tmp_path) as (source, target):
        for number in range(1, 7):
            name = f"s{number}"
            await source.create_session(record(name, cwd=f"/{name}", updated_at=10 - number))
        # s1 s2 | s3 s4 | s5 s6, as they are listed at first; and after each of these pages:
        happens = [
            lambda: source.delete_session("s2"),
            lambda: source.change_session("s5", SessionChange(updated_at=99)),
        ]
        original = source.sessions

        async def sessions(wanted: SessionFilter) -> list[SessionRecord]:
            found = await original(wanted)
            if happens:
                await happens.pop(0)()
            return found

        monkeypatch.setattr(transfer, "_PAGE", 2)
        monkeypatch.setattr(source, "sessions", sessions)
        copied = await copy_store(source, target, ME, None)
        there = {each.id for each in await target.sessions(SessionFilter())}
        assert there == {"s1", "s3", "s4", "s5", "s6"}
        assert [remark.split(":")[0] for remark in copied.remarks] == ["s2 was skipped"]
