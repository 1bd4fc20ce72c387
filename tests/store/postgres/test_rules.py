"""Rules for a program without a store: read each time, and held while the database is away."""

from __future__ import annotations

import asyncio

import msgspec
import psycopg
import pytest
from support.database_cable import cable_to
from support.postgres import bare_database, empty_database, own_server

from dragoman.errors import StoreAway, StoreError
from dragoman.host.rules.rule import Rule
from dragoman.store.postgres import tables
from dragoman.store.postgres.database import Address, Database
from dragoman.store.postgres.rules import PostgresRules
from dragoman.store.postgres.tables import migrate
from dragoman.store.store_limits import StoreLimits


def rule(rule_id: str) -> Rule:
    return Rule(effect="allow", operation="execute", argv=("npm", rule_id), id=rule_id)


def test_the_last_ones_known_hold_while_the_database_is_away() -> None:
    server = own_server()
    rules = PostgresRules(Address(server.address()), "a")
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


async def test_a_database_that_does_not_answer_is_waited_for_some_seconds_only() -> None:
    address, limits = empty_database(), StoreLimits()
    await made(address)
    async with cable_to(address) as cable:
        rules = PostgresRules(Address(f"{cable.address}&connect_timeout=2", limits), "a")
        await asyncio.to_thread(rules.add, rule("r1"))
        known = await asyncio.to_thread(rules.load)
        limits.answer_seconds = 0.3
        cable.is_pinched = True
        assert await asyncio.to_thread(rules.load) == known
        with pytest.raises(StoreAway):
            await asyncio.to_thread(rules.add, rule("r2"))
        rules.close()


async def made(address: str) -> None:
    db = await Database.connect(Address(address))
    await migrate(db)
    await db.close()


async def test_what_one_program_changes_the_next_decision_of_another_knows() -> None:
    address = empty_database()
    await made(address)
    one, other = PostgresRules(Address(address), "a"), PostgresRules(Address(address), "a")
    one.add(rule("r1"))
    assert [each.id for each in other.list()] == ["r1"]
    one.used("r1")
    [stored] = other.load()
    assert stored.used_at is not None
    assert other.revoke("r1")
    assert not other.revoke("r1")
    assert one.load() == ()
    one.close()
    other.close()


async def test_what_is_allowed_counts_on_the_host_where_it_was_given() -> None:
    address = empty_database()
    await made(address)
    one, other = PostgresRules(Address(address), "a"), PostgresRules(Address(address), "b")
    refusal = Rule(effect="deny", id="r2")
    one.add(rule("r1"))
    one.add(refusal)
    assert list(one.list()) == [rule("r1"), refusal]
    assert list(other.list()) == [refusal]
    assert [(each.home, each.here) for each in other.load()] == [("a", False), ("a", True)]
    other.add(rule("r3"), "a")
    assert list(one.list()) == [rule("r1"), refusal, rule("r3")]
    one.close()
    other.close()


BEFORE_HOMES = 3
"""The steps that there were while rules had none."""


@pytest.mark.parametrize("homes", [(), ("a",), ("a", "b")])
async def test_what_was_allowed_before_counts_nowhere_and_what_was_refused_everywhere(
    homes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine that gave it may be one that is no longer known."""
    address = bare_database()
    with monkeypatch.context() as before:
        before.setattr(tables, "STEPS", tables.STEPS[:BEFORE_HOMES])
        await made(address)
    old = "INSERT INTO dragoman.rules (id, body, created_at) VALUES (%s, %s, 1.0)"
    host = "INSERT INTO dragoman.hosts VALUES (%s, %s, '', now(), now())"
    refusal = Rule(effect="deny", id="r2")
    with psycopg.connect(address, autocommit=True) as connection:
        for each in (rule("r1"), refusal):
            connection.execute(old, (each.id, msgspec.json.encode(each)))
        for home in homes:
            connection.execute(host, (home, home))
    await made(address)
    one = PostgresRules(Address(address), "a")
    assert list(one.list()) == [refusal]
    assert one.load()[0].home is None
    one.close()


def test_where_nothing_was_ever_stored_nothing_is_made() -> None:
    address = bare_database()
    one = PostgresRules(Address(address), "a")
    assert one.load() == ()
    with pytest.raises(StoreError):
        one.add(rule("r1"))
    one.close()
