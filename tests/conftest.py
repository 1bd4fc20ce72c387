"""Runs `async def` tests, each on a loop of its own and within a bound."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

ASYNC_TEST_SECONDS = 60


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test: Any = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    names = inspect.signature(test).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    marker = pyfuncitem.get_closest_marker("within")
    seconds: float = marker.args[0] if marker else ASYNC_TEST_SECONDS

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await test(**arguments)

    asyncio.run(bounded())
    return True
