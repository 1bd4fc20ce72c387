"""Whoever waits is woken every few seconds, also when no notification can be heard."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.store.postgres import news
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.news import StoreNews


async def test_everybody_is_woken_without_a_connection_to_listen_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(news, "POLL_SECONDS", 0.05)
    nowhere = Address("postgresql://nobody@127.0.0.1:1/nothing")
    deaf = StoreNews(nowhere, is_own=lambda pid: False, heard_of_rules=lambda: None)
    for _ in range(2):
        woken = asyncio.Event()
        end = deaf.subscribe(woken.set)
        await woken.wait()
        end()
    await deaf.aclose()
