"""Rules as hosts have them: no decision waits for the database, and changes are heard of by all."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import psycopg
import pytest
from store.postgres.stores import opened, until
from store.stores import batch, begin
from support.cable import cable_to
from support.postgres import empty_database

from dragoman.errors import StoreAway, StoreCorrupt
from dragoman.host.matching import Rule
from dragoman.store.postgres.kept_rules import KeptRules
from dragoman.store.postgres.store import PostgresStore


def rule(rule_id: str) -> Rule:
    return Rule(effect="allow", operation="execute", argv=("npm", rule_id), id=rule_id)


def ids(rules: KeptRules) -> list[str]:
    return [each.id for each in rules.list()]


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
        await until(lambda: not store.rules.list())


async def test_they_are_there_from_the_first_decision_on(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path / "a") as store:
        store.rules.add(rule("r1"))
    async with opened(address, tmp_path / "b") as store:
        assert ids(store.rules) == ["r1"]


async def test_they_are_read_again_only_after_news(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        await listening(store)
        await asyncio.to_thread(store.rules.add, rule("r1"))
        await store.last_position()  # behind what was read because of that
        with psycopg.connect(address, autocommit=True) as silent:
            silent.execute("DELETE FROM dragoman.rules")
            assert ids(store.rules) == ["r1"]
            silent.execute("NOTIFY dragoman, 'rules'")
        await until(lambda: not store.rules.list())


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
    assert "the permission rules stay as they were" in caplog.text


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


def readable(rules: KeptRules) -> bool:
    try:
        return not rules.load()
    except StoreCorrupt:
        return False


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
