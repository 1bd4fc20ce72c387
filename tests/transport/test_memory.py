from __future__ import annotations

import asyncio

import pytest
from support.peers import Turns, settled, soon

from dragoman.errors import ConnectionClosed
from dragoman.transport.memory import memory_pair
from dragoman.transport.transport import Transport


async def test_what_one_end_sends_the_other_receives_in_order() -> None:
    here, there = memory_pair()
    for data in (b"one", b"two", b"three"):
        here.send(data)
    assert [await soon(there.receive()) for _ in range(3)] == [b"one", b"two", b"three"]


async def test_both_directions_are_apart() -> None:
    here, there = memory_pair()
    here.send(b"to there")
    there.send(b"to here")
    assert await soon(here.receive()) == b"to here"
    assert await soon(there.receive()) == b"to there"


async def test_a_reader_that_waits_gets_what_comes() -> None:
    here, there = memory_pair()
    reading = asyncio.create_task(there.receive())
    await settled()
    assert not reading.done()
    here.send(b"late")
    assert await soon(reading) == b"late"


async def test_sending_nothing_is_not_the_end() -> None:
    here, there = memory_pair()
    here.send(b"")
    here.send(b"something")
    assert await soon(there.receive()) == b"something"


async def test_a_flood_lets_others_run() -> None:
    here, there = memory_pair()
    async with Turns() as turns:
        for _ in range(100):
            here.send(b"x")
        for _ in range(100):
            await soon(there.receive())
    assert turns.count >= 100


async def test_pending_counts_what_was_not_taken() -> None:
    here, there = memory_pair()
    here.send(b"four")
    here.send(b"three")
    assert here.pending == 9
    await soon(there.receive())
    assert (here.pending, there.pending) == (5, 0)


async def test_drain_returns_at_once_when_little_is_queued() -> None:
    here, _ = memory_pair()
    here.send(b"x")
    await soon(here.drain())


async def test_drain_waits_until_the_other_side_has_taken_enough() -> None:
    here, there = memory_pair()
    for _ in range(4):
        here.send(b"x" * 256 * 1024)
    draining = asyncio.create_task(here.drain())
    for _ in range(3):
        await settled()
        assert not draining.done()
        await soon(there.receive())
    await soon(draining)


@pytest.mark.parametrize("who", [0, 1], ids=["here", "there"])
async def test_drain_ends_with_the_connection(who: int) -> None:
    pair = memory_pair()
    pair[0].send(b"x" * 1024 * 1024)
    draining = asyncio.create_task(pair[0].drain())
    await settled()
    await pair[who].aclose()
    await soon(draining)


@pytest.mark.parametrize("who", [0, 1], ids=["here", "there"])
async def test_closing_either_end_ends_both(who: int) -> None:
    pair = memory_pair()
    reading = [asyncio.create_task(end.receive()) for end in pair]
    await settled()
    await pair[who].aclose()
    assert await soon(asyncio.gather(*reading)) == [b"", b""]


async def test_what_was_sent_before_the_end_still_arrives() -> None:
    here, there = memory_pair()
    here.send(b"last words")
    await here.aclose()
    assert [await soon(there.receive()) for _ in range(3)] == [b"last words", b"", b""]


async def test_what_is_sent_after_the_end_is_dropped() -> None:
    here, there = memory_pair()
    await there.aclose()
    here.send(b"too late")
    assert here.pending == 0
    assert await soon(there.receive()) == b""


async def test_closing_again_changes_nothing() -> None:
    here, there = memory_pair()
    await here.aclose()
    await here.aclose()
    await there.aclose()


async def test_the_reason_of_the_end_is_that_it_was_closed() -> None:
    here, there = memory_pair()
    await there.aclose()
    transport: Transport = here
    reason = await transport.failure(spoke=True, printed="")
    assert isinstance(reason, ConnectionClosed)
    assert str(reason) == "the other side closed the connection"
