"""Ends a server in bounded time, whatever hangs: a thread, an agent, or the event loop itself.

In order, sessions are recorded and agents are ended first. What is not done when the time is over
is left to the next start, which recovers the sessions; no agent outlives this process.
"""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dragoman.process.child import kill_all

GRACE_SECONDS = 28.0
"""From the signal until it is ended: with what comes behind that, it is gone within 30 s."""
_THREADS_SECONDS = 2.0
"""For threads that are still at work when all else has ended."""
_LAST_WORDS_SECONDS = 1.0
"""For the log to say that the server is ended, if someone reads it."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Deadline:
    """Use it as a context manager around the event loop; `log` is called when time is up."""

    def __init__(self, log: Callable[[str], None], seconds: float = GRACE_SECONDS) -> None:
        self._log = log
        self._seconds = seconds
        self._all_done = threading.Event()
        # Whether a signal came, or all ended without one. A signal's handler may put it there
        # wherever it interrupts, also itself; an event could wait for its own lock.
        self._begun: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Deadline:
        # Now, not at the signal: by then the machine may have no room for one more thread.
        threading.Thread(target=self._wait, name="deadline", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._begun.put(False)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def on_signal(self, end: Callable[[], None]) -> None:
        """From now on each signal calls `end` in the running loop, and the first begins the last
        `seconds`. The loop's own handlers would hear nothing while it is held up."""
        loop = asyncio.get_running_loop()

        def handle(number: int, frame: object) -> None:
            self._begun.put(True)
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(end)

        self._handlers = {number: signal.signal(number, handle) for number in _SIGNALS}

    def all_is_done(self) -> None:
        """Sessions are recorded, agents are ended, the store is closed: what still runs in a thread
        holds nothing that anyone needs."""
        self._all_done.set()

    def _wait(self) -> None:
        if not self._begun.get():
            return
        if self._all_done.wait(self._seconds):
            time.sleep(_THREADS_SECONDS)
            os._exit(0)
        kill_all()
        self._say_why()
        os._exit(1)

    def _say_why(self) -> None:
        """From a thread of its own: the reader may be what hangs."""
        words = f"the server did not stop within {self._seconds:g} s; killing it now"
        with suppress(RuntimeError):  # no thread can be started
            threading.Thread(target=self._log, args=(words,), daemon=True).start()
            time.sleep(_LAST_WORDS_SECONDS)
