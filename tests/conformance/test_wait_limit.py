"""How long the other side may keep us waiting: a busy machine does not shorten it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest

from dragoman.conformance.probing.wait_limit import ProcessorQueue, Wait, WaitLimit, ended


class Queue(ProcessorQueue):
    """Processes that stand ready to run for this part of the time."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._asked = time.monotonic()
        super().__init__(lambda: ())

    def seconds(self) -> float:
        now = time.monotonic()
        self._asked, waited = now, (now - self._asked) * self._share
        return waited


async def never() -> None:
    await asyncio.Event().wait()


def after(seconds: float) -> asyncio.Event:
    """It happens then."""
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, event.set)
    return event


async def lasts(share: float) -> float:
    """How long a wait of ten seconds lasts, if nothing comes."""
    start = time.monotonic()
    assert not await Wait(10.0, Queue(share)).happens(never)
    return time.monotonic() - start


@pytest.mark.own_time
async def test_a_wait_ends_after_its_seconds() -> None:
    assert await lasts(0.0) == pytest.approx(10.0)


@pytest.mark.own_time
async def test_the_time_without_a_processor_does_not_count() -> None:
    assert await lasts(0.75) == pytest.approx(40.0)


@pytest.mark.own_time
async def test_a_wait_has_its_time_again_whenever_something_comes_but_not_without_end() -> None:
    wait, start, count = WaitLimit(10.0).wait(), time.monotonic(), 0
    while await wait.happens(after(9.0).wait):
        count += 1
    assert (count, time.monotonic() - start) == (6, pytest.approx(60.0))


@pytest.mark.own_time
async def test_what_comes_at_the_last_moment_has_come() -> None:
    assert await WaitLimit(10.0).happens(after(9.99).wait)
    assert not await WaitLimit(10.0).happens(after(10.01).wait)


def test_the_kernel_says_how_long_a_process_has_waited_for_a_processor() -> None:
    """Three that compute without end on one processor."""
    [processor, *_] = os.sched_getaffinity(0)
    spin = f"import os; os.sched_setaffinity(0, [{processor}])\nwhile True: pass"
    spinning = [subprocess.Popen([sys.executable, "-S", "-c", spin]) for _ in range(3)]
    queue = ProcessorQueue(lambda: [spinning[0].pid])
    try:
        assert any(queue.seconds() or time.sleep(0.01) for _ in range(6000))
    finally:
        for each in spinning:
            each.kill()
            each.wait()
    assert queue.seconds() == 0.0


async def test_the_end_of_a_process_is_noticed_and_one_that_stays_is_not_waited_for() -> None:
    stays = await asyncio.create_subprocess_exec("sleep", "600")
    assert not await ended(stays.pid, WaitLimit(0.01))
    waiting = asyncio.create_task(ended(stays.pid, WaitLimit(60.0)))
    stays.kill()
    assert await waiting
    await stays.wait()
    assert await ended(stays.pid, WaitLimit(60.0))
