"""Whoever waits is woken every few seconds, also when no notification can be heard."""

from __future__ import annotations

import asyncio

from dragoman.store.postgres.database import Address
from dragoman.store.postgres.news import StoreNews
from dragoman.store.store_limits import StoreLimits


async def test_everybody_is_woken_without_a_connection_to_listen_on() -> None:
    limits = StoreLimits(news_seconds=0.05)
    nowhere = Address("postgresql://nobody@127.0.0.1:1/nothing", limits)
    deaf = StoreNews(nowhere, is_own=lambda pid: False, heard_of_rules=lambda: None)
    for _ in range(2):
        woken = asyncio.Event()
        end = deaf.subscribe(woken.set)
        await woken.wait()
        end()
    await deaf.aclose()
