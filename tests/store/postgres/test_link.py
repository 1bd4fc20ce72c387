"""A link notices what does not answer, leaves time to what takes long, and comes back unasked."""

from __future__ import annotations

import asyncio

import pytest
from store.postgres.stores import until
from support.database_cable import cable_to
from support.postgres import empty_database

from dragoman.errors import StoreAway
from dragoman.store.outage import Outage
from dragoman.store.postgres import link
from dragoman.store.postgres.database import Address, Database
from dragoman.store.postgres.link import Link
from dragoman.store.store_limits import StoreLimits


async def fails(db: Database) -> None:
    raise StoreAway(db.place, "the database has gone")


@pytest.mark.parametrize("reads_within", [None, 1.0])
async def test_one_that_nobody_uses_any_more_comes_back_and_ends_the_outage(
    reads_within: float | None,
) -> None:
    async with cable_to(empty_database()) as cable:
        outage = Outage("here", limits=StoreLimits(outage_seconds=0.1))
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


async def test_what_does_not_answer_is_noticed_long_before_what_may_take_long() -> None:
    async with cable_to(empty_database()) as cable:
        outage = Outage("here")
        used = Link(Address(cable.address, StoreLimits(answer_seconds=0.3)), outage)
        await used.once(lambda db: db.rows("SELECT pg_sleep(0.6)"), is_long=True)
        cable.is_pinched = True
        with pytest.raises(StoreAway):
            await used.once(lambda db: db.rows("SELECT 1"))
        assert outage.is_on
        cable.cut()
        await used.aclose()


async def test_each_answer_shows_that_the_database_is_there() -> None:
    async def many(db: Database) -> None:
        for _ in range(8):
            await db.rows("SELECT pg_sleep(0.2)")

    outage = Outage("here")
    used = Link(Address(empty_database(), StoreLimits(answer_seconds=1.5)), outage)
    await used.once(many)
    assert not outage.is_on
    await used.aclose()


def test_ordinary_work_is_bounded_by_seconds_and_a_read_ends_before_it_counts_as_lost() -> None:
    assert link.READ_SECONDS < StoreLimits().answer_seconds <= 10.0
