"""What is known of a job before it is written: whether it may take a while."""

from __future__ import annotations

import asyncio

from store.stores import batch

from dragoman.store.postgres.database import Database
from dragoman.store.postgres.events import Sent
from dragoman.store.postgres.writer import Append, WriteJob, is_much
from dragoman.store.records import Batch, Lease


async def nothing(db: Database) -> None:
    raise AssertionError(db.place)


def append(given: Batch) -> Append:
    lease = Lease(session_id="s", epoch=1, owner_id="me")
    return Append(Sent(lease, given), asyncio.get_running_loop().create_future())


async def test_only_what_is_long_and_what_is_large_may_take_a_while() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    assert not is_much([WriteJob(nothing, future)])
    assert is_much([WriteJob(nothing, future, is_long=True)])
    assert not is_much([append(batch(1))])
    large = Batch(first_seq=1, events=[bytes(600_000)])
    assert not is_much([append(large)])
    assert is_much([append(large), append(large)])
