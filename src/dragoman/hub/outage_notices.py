"""Reports when the database becomes unavailable and when it is back.

Without that, a delayed turn would look like one that has stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from dragoman.store.base import Store

_LOOK_SECONDS = 0.5
BACK = "the database is back"


@asynccontextmanager
async def told_of_outages(store: Store, tell: Callable[[str], None]) -> AsyncGenerator[None]:
    """As long as this lasts."""
    telling = asyncio.create_task(_tell(store, tell))
    try:
        yield
    finally:
        telling.cancel()


async def _tell(store: Store, tell: Callable[[str], None]) -> None:
    async for away in outages(store):
        tell(away or BACK)


async def outages(store: Store) -> AsyncGenerator[str | None]:
    """What the store says of being away, whenever that changes; None when it is back."""
    told: str | None = None
    while True:
        if (away := store.away) != told:
            told = away
            yield away
        await asyncio.sleep(_LOOK_SECONDS)
