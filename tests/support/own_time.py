"""A loop with a clock of its own: time passes only while nothing else can happen, and at once.

For what waits inside one process: no machine is too busy for it, and hours take no time.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any

import pytest


class _Clock(selectors.DefaultSelector):
    """Where the loop waits for files or for time, whatever comes first."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(None if timeout is None else 0)
        if not found and timeout is not None:
            self.now += max(0.0, timeout)
        return found


def run_in_own_time(work: Coroutine[Any, Any, None]) -> None:
    clock = _Clock()
    with (
        pytest.MonkeyPatch.context() as patch,
        asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(clock)) as runner,
    ):
        patch.setattr(time, "monotonic", lambda: clock.now)
        runner.run(work)
