"""An `async def` test as a coroutine that ends within five minutes, or as its marker says."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

import pytest

_SECONDS = 300.0


def bounded(item: pytest.Function) -> Coroutine[Any, Any, None] | None:
    """None for a test that is no coroutine."""
    test: Any = item.obj
    if not inspect.iscoroutinefunction(test):
        return None
    names = inspect.signature(test).parameters
    arguments = {name: item.funcargs[name] for name in names}
    marker = item.get_closest_marker("within")
    return _within(marker.args[0] if marker else _SECONDS, test(**arguments))


async def _within(seconds: float, test: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(seconds):
        await test
