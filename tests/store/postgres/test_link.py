"""A link notices what does not answer, leaves time to what takes long, and comes back unasked."""

from __future__ import annotations

import asyncio

import pytest
from store.postgres.stores import until
from support.cable import cable_to
from support.postgres import empty_database

from dragoman.errors import StoreAway
from dragoman.store.outage import Outage
from dragoman.store.postgres import link
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.link import Link


async def fails(db: Database) -> None:
    raise StoreAway(db.place, "the database has gone")


@pytest.mark.parametrize("reads_within", [None, 1.0])
async def test_one_that_nobody_uses_any_more_comes_back_and_ends_the_outage(
    monkeypatch: pytest.MonkeyPatch, reads_within: float | None
) -> None:
    monkeypatch.setattr("dragoman.store.outage.PATIENCE_SECONDS", 0.1)
    async with cable_to(empty_database()) as cable:
        outage = Outage("here")
        lost = Link(Address(cable.address), outage, reads_within=reads_within)
        assert await lost.use(lambda db: db.rows("SELECT 1")) == [(1,)]
        cable.cut()
        with pytest.raises(StoreAway):
            await lost.use(lambda db: db.rows("SELECT 1"))
        assert outage.is_on
        cable.mend()
        await until(lambda: not outage.is_on)
        await lost.aclose()


async def test_one_that_writes_is_not_back_while_the_database_can_only_be_read() -> None:
    outage = Outage("here")
    readable = f"{empty_database()}&options=-c%20default_transaction_read_only%3Don"
    writing = Link(Address(readable), outage)
    with pytest.raises(StoreAway):
        await writing.once(fails)
    await until(lambda: outage.reason == "the database is read-only")
    assert outage.is_on
    await writing.aclose()


async def test_one_that_is_closed_meanwhile_does_not_come_back() -> None:
    before = asyncio.all_tasks()
    lost = Link(Address(empty_database()), Outage("here"))
    with pytest.raises(StoreAway):
        await lost.once(fails)
    assert asyncio.all_tasks() != before
    await lost.aclose()
    assert asyncio.all_tasks() == before


async def test_what_does_not_answer_is_noticed_long_before_what_may_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "ANSWER_SECONDS", 0.3)
    async with cable_to(empty_database()) as cable:
        outage = Outage("here")
        used = Link(Address(cable.address), outage)
        await used.once(lambda db: db.rows("SELECT pg_sleep(0.6)"), is_long=True)
        cable.is_pinched = True
        with pytest.raises(StoreAway):
            await used.once(lambda db: db.rows("SELECT 1"))
        assert outage.is_on
        cable.cut()
        await used.aclose()


async def test_each_answer_shows_that_the_database_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def many(db: Database) -> None:
        for _ in range(8):
            await db.rows("SELECT pg_sleep(0.2)")

    monkeypatch.setattr(link, "ANSWER_SECONDS", 1.5)
    outage = Outage("here")
    used = Link(Address(empty_database()), outage)
    await used.once(many)
    assert not outage.is_on
    await used.aclose()


def test_ordinary_work_is_bounded_by_seconds_and_a_read_ends_before_it_counts_as_lost() -> None:
    assert link.READ_SECONDS < link.ANSWER_SECONDS <= 10.0
