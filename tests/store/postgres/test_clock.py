"""Sessions are ordered by the database's clock, whatever a host believes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from store.postgres.stores import opened
from support.hosting import Place, hosting
from support.hubs import seen_until
from support.peers import soon
from support.postgres import empty_database

from dragoman.hub.cluster import commands as c
from dragoman.session import events as e
from dragoman.store.records import SessionFilter
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say

HOUR = 3600.0


@pytest.mark.parametrize("apart", [-HOUR, HOUR])
async def test_a_session_of_a_host_whose_clock_is_wrong_is_listed_where_it_belongs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: float
) -> None:
    right = time.time
    agents = {"it": ScriptedAgent([say("yes")])}
    async with hosting(Place(tmp_path, empty_database()), "one", agents) as one:
        before = await one.create("it", str(tmp_path))
        await before.recording.settled()
        monkeypatch.setattr(time, "time", lambda: right() + apart)
        wrong = await one.create("it", str(tmp_path))
        await soon(one.send(wrong.id, c.Prompt("go")))
        await seen_until(one.watch(wrong.id), e.TurnEnded)
        await wrong.recording.settled()
        monkeypatch.undo()
        after = await one.create("it", str(tmp_path))
        await after.recording.settled()
        listed = await one.store.sessions(SessionFilter())
        assert [record.id for record in listed] == [after.id, wrong.id, before.id]
        for record in listed:
            assert abs(record.updated_at - right()) < HOUR / 2
            assert abs(record.created_at - right()) < HOUR / 2


async def test_the_clock_is_read_again_with_each_renewal(tmp_path: Path) -> None:
    async with opened(empty_database(), tmp_path) as store:
        store._clock = 0.0, time.monotonic()  # pyright: ignore[reportPrivateUsage]
        assert store.now() < HOUR
        async with hosting(Place(tmp_path, empty_database()), "one", {}) as one:
            await store.renew(one.owner, seconds=60)
        assert abs(store.now() - time.time()) < HOUR
