"""Rules on several hosts: kept at hand, renewed by news, and held while the database is away."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import psycopg
import pytest
from store.postgres.stores import opened, until
from support.postgres import bare_database, empty_database, own_server

from dragoman.errors import StoreAway, StoreError
from dragoman.host.matching import Rule
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.rules import PostgresRules
from dragoman.store.postgres.tables import migrate


def rule(rule_id: str) -> Rule:
    return Rule(effect="allow", operation="execute", argv=("npm", rule_id), id=rule_id)


async def test_what_another_host_revokes_does_not_hold_any_more(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path / "a") as store, opened(address, tmp_path / "b") as other:
        woken: list[int] = []
        store.on_change(lambda: woken.append(1))
        await until(lambda: bool(woken))
        store.rules.add(rule("r1"))
        assert [each.id for each in other.rules.list()] == ["r1"]
        assert [each.id for each in store.rules.list()] == ["r1"]
        assert other.rules.revoke("r1")
        await until(lambda: not store.rules.list())


async def test_they_are_read_again_only_after_news(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        woken: list[int] = []
        store.on_change(lambda: woken.append(1))
        await until(lambda: bool(woken))
        woken.clear()
        store.rules.add(rule("r1"))
        await until(lambda: bool(woken))  # we are told of it too; from then on nothing is new
        assert len(store.rules.list()) == 1
        with psycopg.connect(address, autocommit=True) as silent:
            silent.execute("DELETE FROM dragoman.rules")
            assert len(store.rules.list()) == 1
            silent.execute("NOTIFY dragoman, 'rules'")
        await until(lambda: not store.rules.list())


def test_the_last_ones_known_hold_while_the_database_is_away() -> None:
    server = own_server()
    rules = PostgresRules(Address(server.address()))
    try:
        asyncio.run(made(server.address()))
        rules.add(rule("r1"))
        assert [each.id for each in rules.list()] == ["r1"]
        server.stop()
        assert [each.id for each in rules.list()] == ["r1"]
        with pytest.raises(StoreAway):
            rules.add(rule("r2"))
        server.start()
        rules.add(rule("r2"))
        assert [each.id for each in rules.list()] == ["r1", "r2"]
    finally:
        rules.close()
        server.remove()


async def made(address: str) -> None:
    db = await Database.connect(Address(address))
    await migrate(db)
    await db.close()


async def test_what_is_known_to_be_away_is_not_asked() -> None:
    away = [False]
    rules = PostgresRules(Address(empty_database()), is_away=lambda: away[0])
    assert rules.load() == ()
    away[0] = True
    assert rules.load() == ()
    with pytest.raises(StoreAway):
        rules.revoke("r1")
    rules.close()


async def test_the_use_of_a_rule_is_noted_without_waiting(tmp_path: Path) -> None:
    address = empty_database()
    async with opened(address, tmp_path) as store:
        store.rules.add(rule("r1"))
        before = time.time()
        store.rules.used("r1")
        store.rules.used("unknown")
    alone = PostgresRules(Address(address))
    [stored] = alone.load()
    assert stored.used_at is not None
    assert before <= stored.used_at <= time.time()
    alone.used("r1")
    alone.close()


def test_without_a_store_they_are_read_each_time() -> None:
    address = bare_database()
    one = PostgresRules(Address(address))
    assert one.load() == ()
    with pytest.raises(StoreError):
        one.add(rule("r1"))
    one.close()
