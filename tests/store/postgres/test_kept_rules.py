"""Rules as hosts have them: no decision waits for the database, and changes are heard of by all."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import psycopg
import pytest
from store.postgres.stores import opened, until
from store.stores import batch, begin
from support.database_cable import cable_to
from support.postgres import empty_database

from dragoman.data_directory import home_id
from dragoman.errors import StoreAway, StoreCorrupt, StoreError
from dragoman.host.rules.policy import StoredRule
from dragoman.host.rules.rule import Rule
from dragoman.store.postgres import rules as rules_module
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.rules import KeptRules
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.store_limits import StoreLimits


def rule(rule_id: str) -> Rule:
    return Rule(effect="allow", operation="execute", argv=("npm", rule_id), id=rule_id)


def ids(rules: KeptRules) -> list[str]:
    """Of all that are known, wherever they count."""
    return [each.rule.id for each in rules.load()]


def stored_ids(address: str) -> list[str]:
    """As somebody else sees them."""
    with psycopg.connect(address) as connection:
        rows = connection.execute("SELECT id FROM dragoman.rules ORDER BY place").fetchall()
    return [row[0] for row in rows]


async def listening(store: PostgresStore) -> None:
    woken = asyncio.Event()
    store.on_change(woken.set)
    await woken.wait()


async def test_what_one_host_adds_and_another_revokes_is_heard_by_both(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path / "a") as store, opened(address, tmp_path / "b") as other:
        await listening(store)
        await listening(other)
        store.rules.add(rule("r1"))
        await until(lambda: ids(other.rules) == ["r1"])
        assert other.rules.revoke("r1")
        await until(lambda: not store.rules.load())


async def test_what_is_allowed_counts_on_the_host_where_it_was_given(tmp_path: Path) -> None:
    """The folder of the same path on another machine is another folder."""
    address = empty_database()
    refusal, question = Rule(effect="deny", id="r2"), Rule(effect="ask", id="r3")
    async with opened(address, tmp_path / "a") as store:
        for each in (rule("r1"), refusal, question):
            store.rules.add(each)
        assert list(store.rules.list()) == [rule("r1"), refusal, question]
        home = home_id(tmp_path / "a")
        assert {each.home for each in store.rules.load()} == {home}
    async with opened(address, tmp_path / "b") as other:
        assert list(other.rules.list()) == [refusal, question]
        assert ids(other.rules) == ["r1", "r2", "r3"]
        assert [each.here for each in other.rules.load()] == [False, True, True]
        assert other.rules.load()[0].home == home
        other.rules.add(rule("r4"), home)
        assert [each.here for each in other.rules.load()] == [False, True, True, False]
    async with opened(address, tmp_path / "a") as store:
        assert list(store.rules.list()) == [rule("r1"), refusal, question, rule("r4")]


async def test_they_are_there_from_the_first_decision_on(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path / "a") as store:
        store.rules.add(rule("r1"))
    async with opened(address, tmp_path / "b") as store:
        assert ids(store.rules) == ["r1"]


async def test_news_is_heard_long_before_the_next_look_and_decisions_cost_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = empty_database()
    async with opened(address, tmp_path, StoreLimits(news_seconds=3600.0)) as store:
        await asyncio.to_thread(store.rules.add, rule("r1"))
        await listening(store)
        reads = counted_reads(monkeypatch)
        store.rules.heard()
        await until(lambda: len(reads) == 1)  # behind all that was read because of the above
        await store.last_position()
        del reads[:]
        with psycopg.connect(address, autocommit=True) as silent:
            silent.execute("DELETE FROM dragoman.rules")
            for _ in range(50):
                assert ids(store.rules) == ["r1"]
                await store.last_position()
            assert not reads
            silent.execute("NOTIFY dragoman, 'rules'")
        await until(lambda: not store.rules.list())


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One more for each time that they are read from the database."""
    reads: list[object] = []
    load = rules_module.loaded

    async def counted(db: Database, home: str) -> tuple[StoredRule, ...]:
        reads.append(db)
        return await load(db, home)

    monkeypatch.setattr(rules_module, "loaded", counted)
    return reads


async def test_a_change_that_nobody_was_told_of_is_found_without_a_listener(
    tmp_path: Path,
) -> None:
    address = empty_database()
    async with opened(address, tmp_path, StoreLimits(news_seconds=0.05)) as store:
        await asyncio.to_thread(store.rules.add, rule("r1"))
        with psycopg.connect(address, autocommit=True) as silent:
            silent.execute("DELETE FROM dragoman.rules")
        await until(lambda: not store.rules.list())


async def test_what_another_revokes_is_heard_while_ours_is_on_its_way(tmp_path: Path) -> None:
    address = empty_database()
    insert = "INSERT INTO dragoman.rules (id, body, created_at) VALUES ('r2', 'x', 1)"
    async with opened(address, tmp_path) as store:
        await asyncio.to_thread(store.rules.add, rule("r1"))
        await listening(store)
        with psycopg.connect(address) as blocking, psycopg.connect(address) as other:
            blocking.execute(insert)
            store.rules.add(rule("r2"))
            other.execute("DELETE FROM dragoman.rules WHERE id = 'r1'")
            other.execute("NOTIFY dragoman, 'rules'")
            other.commit()
            await until(lambda: ids(store.rules) == ["r2"])
            assert stored_ids(address) == []
            blocking.rollback()
        await until(lambda: stored_ids(address) == ["r2"])
        assert ids(store.rules) == ["r2"]


async def test_while_the_database_does_not_get_to_it_those_last_known_hold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        await asyncio.to_thread(store.rules.add, rule("r1"))
        with psycopg.connect(address) as other, psycopg.connect(address) as operator:
            other.execute("LOCK TABLE dragoman.rules IN ACCESS EXCLUSIVE MODE")
            store.rules.heard()
            await until(lambda: operator.execute(CANCEL).rowcount == 1)
            await until(lambda: "the last known permission rules remain in force" in caplog.text)
            assert ids(store.rules) == ["r1"]
            other.execute("DELETE FROM dragoman.rules")
            other.commit()
        await until(lambda: not store.rules.list())


CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted"


async def test_a_read_that_failed_once_is_tried_again(tmp_path: Path) -> None:
    address = empty_database()
    with psycopg.connect(address, autocommit=True) as other:
        async with opened(address, tmp_path, StoreLimits(news_seconds=3600.0)) as store:
            await asyncio.to_thread(store.rules.add, rule("r1"))
            other.execute("ALTER TABLE dragoman.rules RENAME TO elsewhere")
            try:
                store.rules.heard()
                await until(lambda: not readable(store.rules))
            finally:
                other.execute("ALTER TABLE dragoman.elsewhere RENAME TO rules")
            await until(lambda: readable(store.rules))
            assert ids(store.rules) == ["r1"]


def readable(rules: KeptRules) -> bool:
    try:
        rules.load()
    except StoreError:
        return False
    return True


async def test_nothing_waits_for_a_database_that_does_not_answer(tmp_path: Path) -> None:
    address = empty_database()
    async with cable_to(address) as cable, opened(cable.address, tmp_path) as store:
        await listening(store)
        store.rules.add(rule("r1"))
        await until(lambda: stored_ids(address) == ["r1"])
        cable.is_pinched = True
        # The cable is carried by this very loop: whoever waited here would wait for ever.
        store.rules.add(rule("r2"))
        store.rules.used("r1")
        assert ids(store.rules) == ["r1", "r2"]
        assert stored_ids(address) == ["r1"]
        cable.cut()
        cable.mend()
        await until(lambda: stored_ids(address) == ["r1", "r2"])
        assert ids(store.rules) == ["r1", "r2"]


async def test_while_the_database_is_known_to_be_away_they_hold_and_none_is_added(
    tmp_path: Path,
) -> None:
    async with cable_to(empty_database()) as cable, opened(cable.address, tmp_path) as store:
        await asyncio.to_thread(store.rules.add, rule("r1"))
        cable.cut()
        asked = asyncio.create_task(store.last_position())
        await until(lambda: store.outage.is_on)
        assert ids(store.rules) == ["r1"]
        for change in (lambda: store.rules.add(rule("r2")), lambda: store.rules.revoke("r1")):
            with pytest.raises(StoreAway):
                change()
            with pytest.raises(StoreAway):
                await asyncio.to_thread(change)
        assert ids(store.rules) == ["r1"]
        cable.mend()
        await asked


async def test_nobody_sees_an_answer_before_its_rule_is_stored(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        lease = await begin(store)
        for number in range(20):
            store.rules.add(rule(f"r{number}"))
            await store.append(lease, batch(number + 1))
            assert f"r{number}" in stored_ids(address)


async def test_a_rule_that_is_lost_with_the_process_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cable_to(empty_database()) as cable:
        async with opened(cable.address, tmp_path, StoreLimits(close_seconds=0.1)) as store:
            cable.cut()
            store.rules.add(rule("r1"))
            await until(lambda: store.outage.is_on)
        assert "the permission rules are unchanged, without r1" in caplog.text
        cable.mend()
        async with opened(cable.address, tmp_path) as store:
            assert ids(store.rules) == []


async def test_what_another_thread_changes_is_stored_when_it_goes_on(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        await asyncio.to_thread(store.rules.add, rule("r1"))
        assert stored_ids(address) == ids(store.rules) == ["r1"]
        assert await asyncio.to_thread(store.rules.revoke, "r1")
        assert stored_ids(address) == ids(store.rules) == []
        assert not await asyncio.to_thread(store.rules.revoke, "r1")


async def test_what_the_database_refuses_does_not_hold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = empty_database()
    with psycopg.connect(address, autocommit=True) as strict:
        async with opened(address, tmp_path) as store:
            strict.execute("ALTER TABLE dragoman.rules ADD CONSTRAINT no CHECK (id <> 'r1')")
            try:
                store.rules.add(rule("r1"))
                await until(lambda: not store.rules.list())
            finally:
                strict.execute("ALTER TABLE dragoman.rules DROP CONSTRAINT no")
    assert "the permission rules are unchanged" in caplog.text


async def test_rules_that_cannot_be_read_allow_nothing(tmp_path: Path) -> None:
    address = empty_database()
    bad = "INSERT INTO dragoman.rules (id, body, created_at) VALUES ('bad', 'x', 1)"
    with psycopg.connect(address, autocommit=True) as other:
        other.execute(bad)
        async with opened(address, tmp_path) as store:
            await listening(store)
            with pytest.raises(StoreCorrupt, match="a rule cannot be read"):
                store.rules.list()
            other.execute("DELETE FROM dragoman.rules")
            other.execute("NOTIFY dragoman, 'rules'")
            await until(lambda: readable(store.rules))
            assert not store.rules.list()


async def test_the_use_of_a_rule_is_noted_without_waiting(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        store.rules.add(rule("r1"))
        before = time.time()
        store.rules.used("r1")
        await asyncio.to_thread(store.rules.used, "r1")
        store.rules.used("unknown")
        await until(lambda: store.rules.load()[0].used_at is not None)
        used_at = store.rules.load()[0].used_at
    assert used_at is not None
    assert before <= used_at <= time.time()
