from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import ConnectionClosed, SlowConsumer
from dragoman.stream import MAX_STREAM_BYTES, Stream


async def rest_of(stream: Stream[int]) -> list[int]:
    async with asyncio.timeout(60):
        return [item async for item in stream]


async def test_items_come_out_in_the_order_they_went_in() -> None:
    stream: Stream[int] = Stream()
    for number in range(100):
        stream.push([number], 1)
    stream.close()
    assert await rest_of(stream) == list(range(100))


async def test_a_reader_that_waits_gets_the_next_item() -> None:
    stream: Stream[int] = Stream()
    reading = asyncio.create_task(rest_of(stream))
    for number in range(3):
        await asyncio.sleep(0)
        stream.push([number], 1)
    await asyncio.sleep(0)
    stream.close()
    assert await reading == [0, 1, 2]


async def test_a_closed_stream_stays_closed() -> None:
    stream: Stream[int] = Stream()
    stream.close()
    stream.push([1], 1)
    assert await rest_of(stream) == []
    assert await rest_of(stream) == []


async def test_an_error_given_at_the_end_comes_behind_what_was_pushed() -> None:
    stream: Stream[int] = Stream()
    stream.push([1], 1)
    stream.close(ConnectionClosed())
    assert await anext(stream) == 1
    for _ in range(2):
        with pytest.raises(ConnectionClosed):
            await anext(stream)


async def test_the_first_end_decides() -> None:
    stream: Stream[int] = Stream()
    stream.close()
    stream.close(ConnectionClosed())
    assert await rest_of(stream) == []


async def test_a_reader_that_waits_learns_of_the_end() -> None:
    stream: Stream[int] = Stream()
    reading = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    stream.close(ConnectionClosed())
    with pytest.raises(ConnectionClosed):
        await reading


async def test_a_reader_behind_by_exactly_the_limit_is_served() -> None:
    stream: Stream[int] = Stream(limit=10)
    stream.push([1], 4)
    stream.push([2], 6)
    stream.close()
    assert await rest_of(stream) == [1, 2]


async def test_a_reader_one_byte_too_far_behind_gets_what_was_kept_and_then_the_error() -> None:
    stream: Stream[int] = Stream(limit=10)
    for number, size in enumerate([4, 6, 1, 1]):
        stream.push([number], size)
    assert [await anext(stream), await anext(stream)] == [0, 1]
    with pytest.raises(SlowConsumer) as caught:
        await anext(stream)
    assert caught.value.limit == 10


async def test_what_was_read_no_longer_counts() -> None:
    stream: Stream[int] = Stream(limit=10)
    for number in range(100):
        stream.push([number], 10)
        assert await anext(stream) == number


async def test_what_was_pushed_together_counts_until_all_of_it_was_read() -> None:
    stream: Stream[int] = Stream(limit=10)
    stream.push([1, 2], 10)
    assert await anext(stream) == 1
    assert await anext(stream) == 2
    stream.push([3, 4], 10)
    assert await anext(stream) == 3
    stream.push([5], 1)
    assert await anext(stream) == 4
    with pytest.raises(SlowConsumer):
        await anext(stream)


async def test_a_slow_reader_fails_alone() -> None:
    slow: Stream[int] = Stream(limit=10)
    quick: Stream[int] = Stream(limit=10)
    for number in range(100):
        slow.push([number], 1)
        quick.push([number], 1)
        assert await anext(quick) == number
    with pytest.raises(SlowConsumer):
        await rest_of(slow)


async def test_a_reader_may_give_up_waiting_and_come_back() -> None:
    stream: Stream[int] = Stream()
    reading = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    stream.push([1], 1)
    assert await anext(stream) == 1


async def test_a_reader_cancelled_as_an_item_comes_loses_nothing() -> None:
    stream: Stream[int] = Stream()
    reading = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    stream.push([1], 1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await anext(stream) == 1


def test_the_limit_is_64_mib_unless_told() -> None:
    assert Stream[int]().limit == MAX_STREAM_BYTES == 64 * 1024 * 1024
