from __future__ import annotations

import asyncio
import threading

import pytest

from dragoman.host.serial_worker import THREADS, Lane

BOUND = 30


async def test_jobs_run_one_at_a_time_in_the_order_asked_for() -> None:
    lane, begun, running = Lane(), list[int](), list[int]()

    def job(number: int) -> int:
        running.append(number)
        assert len(running) == 1
        begun.append(number)
        running.remove(number)
        return number

    results = await asyncio.gather(*(lane.run(lambda n=n: job(n)) for n in range(200)))
    assert results == begun == list(range(200))


async def test_an_error_belongs_to_its_own_caller() -> None:
    lane = Lane()

    def fail() -> int:
        raise KeyError("mine")

    failing, fine = await asyncio.gather(
        lane.run(fail), lane.run(lambda: 1), return_exceptions=True
    )
    assert isinstance(failing, KeyError)
    assert fine == 1


async def test_a_cancelled_job_never_begins_and_one_that_began_runs_to_its_end() -> None:
    lane, release, begun, ended = Lane(), threading.Event(), threading.Event(), list[str]()

    def slow() -> None:
        begun.set()
        release.wait(BOUND)
        ended.append("slow")

    first = asyncio.create_task(lane.run(slow))
    second = asyncio.create_task(lane.run(lambda: ended.append("never")))
    third = asyncio.create_task(lane.run(lambda: ended.append("third")))
    await asyncio.to_thread(begun.wait, BOUND)
    first.cancel()
    second.cancel()
    for cancelled in (first, second):
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert lane.is_busy
    assert not ended
    release.set()
    await third
    assert ended == ["slow", "third"]


async def test_one_busy_lane_does_not_hold_up_another() -> None:
    release = threading.Event()
    blocked = [Lane() for _ in range(THREADS - 1)]
    waiting = [
        asyncio.create_task(lane.run(lambda: release.wait(BOUND)))
        for lane in blocked
        for _ in range(50)
    ]
    assert await Lane().run(lambda: "done") == "done"
    release.set()
    assert all(await asyncio.gather(*waiting))


def test_a_lane_outlives_an_event_loop() -> None:
    lane = Lane()
    for number in range(3):
        assert asyncio.run(lane.run(lambda n=number: n)) == number
