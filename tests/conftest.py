"""Runs `async def` tests, each on a loop of its own and within a bound."""

from __future__ import annotations

import asyncio

import pytest
from support.bounded import bounded


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = bounded(pyfuncitem)
    if test is None:
        return None
    asyncio.run(test)
    return True
