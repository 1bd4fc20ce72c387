"""Runs blocking jobs off the event loop, one at a time and in order.

Each session has a lane of its own on a small pool of threads shared by all, and a lane takes
one job at a time, so that no session can hold the pool.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = 4


class Lane:
    """A job whose caller gives up before it began never runs; one that began runs to its end,
    and the next waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_busy = False

    @property
    def is_busy(self) -> bool:
        return self._is_busy

    async def run(self, job: Callable[[], T]) -> T:
        future: Future[T] = Future()
        with self._lock:
            self._waiting.append(lambda: _settle(future, job))
            is_first, self._is_busy = not self._is_busy, True
        if is_first:
            _threads().submit(self._next)
        return await asyncio.wrap_future(future)

    def _next(self) -> None:
        self._waiting.popleft()()
        with self._lock:
            has_more = self._is_busy = bool(self._waiting)
        if has_more:
            _threads().submit(self._next)


def _settle(future: Future[T], job: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = job()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="dragoman-files")
