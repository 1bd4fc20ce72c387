"""Runs `async def` tests, each on a loop of its own and within a bound, and programs that can be
interrupted."""

from __future__ import annotations

import asyncio
import signal

import pytest
from support.bounded import bounded

# What a shell starts in the background ignores these, and so would all that a test interrupts.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = bounded(pyfuncitem)
    if test is None:
        return None
    asyncio.run(test)
    return True
