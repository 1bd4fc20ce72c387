"""The newest events at hand: what is not there is read from the store; nothing is seen twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hub.test_two_windows import two_windows
from support.clients import until
from support.hubs import seen_until
from support.peers import soon

from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.stored.event_readers import Tail
from dragoman.session import events as e
from dragoman.store.records import StoredEvent
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say


def bodies(count: int, size: int = 10) -> list[bytes]:
    return [b"x" * size] * count


def push(tail: Tail, first: int, events: list[bytes]) -> None:
    tail.push(first, events, sum(map(len, events)))


def numbers(events: list[StoredEvent] | None) -> list[int] | None:
    return None if events is None else [each.seq for each in events]


def test_a_tail_has_what_came_since_it_began() -> None:
    tail = Tail("s", 10)
    assert tail.after(9) is None
    assert tail.after(10) == []
    push(tail, 11, bodies(2))
    assert numbers(tail.after(10)) == [11, 12]
    assert numbers(tail.after(11)) == [12]
    assert tail.after(9) is None


def test_a_tail_keeps_the_newest_that_fit() -> None:
    tail = Tail("s", 0)
    for seq in range(1, 101):
        push(tail, seq, bodies(1, 100_000))
    assert tail.after(80) is None
    assert numbers(tail.after(95)) == [96, 97, 98, 99, 100]


def test_of_a_batch_that_is_too_large_a_tail_keeps_the_newest_that_fit() -> None:
    tail = Tail("s", 0)
    push(tail, 1, bodies(5))
    push(tail, 6, bodies(100, 100_000))
    assert tail.after(94) is None
    assert numbers(tail.after(95)) == list(range(96, 106))
    push(tail, 106, bodies(1, 5_000_000))
    assert tail.after(104) is None
    assert numbers(tail.after(105)) == [106]
    push(tail, 107, bodies(1))
    assert numbers(tail.after(106)) == [107]


def test_a_tail_keeps_no_more_than_so_many_bytes_and_one_batch() -> None:
    tail = Tail("s", 0)
    for first in range(1, 1_001, 10):
        push(tail, first, bodies(10, 60_000))
    assert tail.after(979) is None
    assert numbers(tail.after(980)) == list(range(981, 1_001))


def test_a_tail_keeps_no_more_than_so_many_events_however_small() -> None:
    tail = Tail("s", 0)
    for _ in range(6):
        push(tail, 1, bodies(5_000, 2))
    assert tail.after(30_000 - 10_001) is None
    assert numbers(tail.after(30_000 - 10_000)) == list(range(20_001, 21_001))
    assert numbers(tail.after(29_998)) == [29_999, 30_000]


def test_a_page_of_the_tail_has_the_positions_of_every_batch() -> None:
    tail = Tail("s", 0)
    push(tail, 10, bodies(2))
    push(tail, 50, bodies(1))
    push(tail, 70, bodies(997))
    push(tail, 2_000, bodies(3))
    page = tail.after(1)
    assert page is not None
    places = [(event.position, event.seq) for event in page]
    assert places[:3] == [(11, 2), (50, 3), (70, 4)]
    assert places[-2:] == [(1_066, 1_000), (2_000, 1_001)]
    assert [(each.position, each.seq) for each in tail.after(1_001) or []] == [
        (2_001, 1_002),
        (2_002, 1_003),
    ]


def test_a_tail_that_forgot_goes_on_behind_it() -> None:
    tail = Tail("s", 0)
    push(tail, 1, bodies(2))
    tail.forget()
    assert tail.after(1) is None
    assert tail.after(2) == []
    push(tail, 3, bodies(1))
    assert numbers(tail.after(2)) == [3]
    assert tail.after(1) is None


async def test_a_reader_is_done_when_the_session_was_deleted(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (a, b):
        live = await a.create("it", str(tmp_path))
        await a.send(live.id, c.Prompt("go"))
        seen: list[list[e.Event]] = [[], []]
        readers = [
            asyncio.create_task(_read(hub, live.id, into))
            for hub, into in zip((a, b), seen, strict=True)
        ]
        await until(lambda: all(_is_over(events) for events in seen))
        await a.delete(live.id)
        await soon(asyncio.gather(*readers))


async def _read(hub: Hub, session_id: str, into: list[e.Event]) -> None:
    async for page in hub.watch(session_id):
        into.extend(stored.decode() for stored in page)


def _is_over(events: list[e.Event]) -> bool:
    return bool(events) and isinstance(events[-1], e.TurnEnded)


async def test_a_reader_sees_everything_once_wherever_the_session_runs(tmp_path: Path) -> None:
    async with two_windows(tmp_path, ScriptedAgent([say("yes")])) as (a, b):
        live = await a.create("it", str(tmp_path))
        readers = [
            asyncio.create_task(seen_until(hub.watch(live.id), e.TurnEnded, times=6))
            for hub in (a, b)
        ]
        for number in range(6):
            owner = (a, b)[number % 2]
            await owner.send(live.id, c.Prompt(str(number)))
            await seen_until(owner.watch(live.id), e.TurnEnded, times=number + 1)
            owner.live[live.id].recording.tail.forget()
            if number < 5:
                await owner.detach(owner.live[live.id])
        for seen in await soon(asyncio.gather(*readers)):
            assert [each.seq for each in seen] == list(range(1, len(seen) + 1))
            assert sum(isinstance(each, e.TurnEnded) for each in seen) == 6
