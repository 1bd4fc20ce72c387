"""Old sessions are forgotten, all that they were made of; and nothing else is."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from store.stores import acquire, batch, fill
from support.hosting import Place, hosting
from support.hubs import TestLauncher
from support.peers import soon
from support.postgres import empty_database

from dragoman.agents.settings.settings_file import Retention, parse_settings
from dragoman.errors import ConfigError
from dragoman.hub.hub import Hub
from dragoman.hub.stored.retention import Pruned, in_words, keep_pruning, prune, unused, weigh
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.records import Said, SessionChange, SessionFilter, SessionRecord

DAY = 86400.0
MONTH = Retention(days=30)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, empty_database() if request.param == "postgresql" else None)


async def made(store: Store, session_id: str, days: float, **fields: object) -> None:
    """A session with an event that is so old."""
    then = time.time() - days * DAY
    given = {"agent": "it", "cwd": "/project", "home": "one"} | fields
    home = given["home"]
    record = SessionRecord(
        id=session_id,
        agent=str(given["agent"]),
        cwd=str(given["cwd"]),
        created_at=then,
        updated_at=then,
        home=str(home),
        archived=bool(given.get("archived")),
    )
    await store.create_session(record)
    lease = await acquire(store, session_id)
    said = [Said(1, "user", f"words of {session_id}")]
    await store.append(lease, batch(1, said=said))
    await store.release(lease)
    status = given.get("status", "idle")
    assert status in ("idle", "running", "waiting", "closed")
    # As it was then: what was stored just now is newer.
    await store.change_session(session_id, SessionChange(status=status, updated_at=then))


async def left(store: Store) -> set[str]:
    return {record.id for record in await store.sessions(SessionFilter(limit=1000))}


async def test_what_is_old_goes_with_all_of_it_and_what_is_in_use_or_kept_stays(
    place: Place,
) -> None:
    async with hosting(place, "one", {}) as one:
        store = one.store
        await made(store, "old", 31)
        await made(store, "young", 29)
        await made(store, "runs", 400, status="running")
        await made(store, "waits", 400, status="waiting")
        await made(store, "archived", 400, archived=True)
        await made(store, "owned", 400)
        lease = await acquire(store, "owned")
        found = await unused(store, MONTH)
        assert {record.id for record in found} == {"old", "owned"}
        foreseen = await weigh(store, found[:1])
        pruned = await soon(prune(one, found, MONTH))
        assert (pruned.sessions, pruned.bytes) == (1, foreseen.bytes)
        assert pruned.bytes > 0
        assert await left(store) == {"young", "runs", "waits", "archived", "owned"}
        assert await store.search("old") == []
        assert {event.session_id for event in await store.all_events()} == await left(store)
        await store.append(lease, batch(2))
        if place.database is None:
            mirrors = {path.stem for path in (place.folder / "store").rglob("*.jsonl")}
            assert not {each for each in mirrors if "old" in each}


async def test_one_that_is_used_meanwhile_stays(place: Place) -> None:
    async with hosting(place, "one", {}) as one:
        await made(one.store, "old", 31)
        found = await unused(one.store, MONTH)
        now = SessionChange(updated_at=time.time())
        await one.store.change_session("old", now)
        assert (await soon(prune(one, found, MONTH))).sessions == 0
        assert await left(one.store) == {"old"}


async def test_each_project_has_days_of_its_own(place: Place) -> None:
    async with hosting(place, "one", {}) as one:
        for name, cwd in (("a", "/a"), ("deep", "/a/deep/er"), ("kept", "/a/kept"), ("b", "/b")):
            await made(one.store, name, 10, cwd=cwd)
        await made(one.store, "beside", 10, cwd="/ab")
        projects = Retention(days=30, projects={"/a": 7, "/a/kept": None, "/ab": 20})
        assert {each.id for each in await unused(one.store, projects)} == {"a", "deep"}
        week = Retention(days=7)
        found = await unused(one.store, week, project="/a")
        assert {each.id for each in found} == {"a", "deep", "kept"}
        assert await unused(one.store, week, agent="another") == []
        assert await unused(one.store, Retention()) == []


async def test_a_server_prunes_what_is_its_own_as_the_settings_say_by_then(
    place: Place,
) -> None:
    async with hosting(place, "one", {}) as one:
        await made(one.store, "mine", 31)
        await made(one.store, "theirs", 31, home="two")
        told: asyncio.Queue[Pruned] = asyncio.Queue()
        kept = iter([Retention(), MONTH])
        pruning = keep_pruning(one, lambda: next(kept, MONTH), told.put_nowait, pause=0.01)
        keeping = asyncio.create_task(pruning)
        try:
            assert (await soon(told.get())).sessions == 1
            assert await left(one.store) == {"theirs"}
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])


async def test_the_file_becomes_smaller(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    async with Hub(store, TestLauncher({})) as hub:
        await made(store, "old", 31)
        lease = await acquire(store, "old")
        await fill(store, lease, 20_000, after=1)
        await store.release(lease)
        then = time.time() - 31 * DAY
        await store.change_session("old", SessionChange(status="idle", updated_at=then))
        pruned = await prune(hub, await unused(store, MONTH), MONTH)
        assert pruned.reclaimed > pruned.bytes / 2
        assert await store.reclaim() == 0
    await store.aclose()
    assert (tmp_path / "dragoman.db").stat().st_size < pruned.bytes


def test_retention_is_a_setting() -> None:
    def retention(value: object) -> Retention:
        return parse_settings(json.dumps({"retention": value}), "file").retention

    assert parse_settings("{}", "file").retention == Retention()
    assert retention({"days": 90}) == Retention(days=90)
    given = retention({"days": None, "projects": {"/a/": 3, "/b": None}})
    assert given == Retention(projects={"/a": 3, "/b": None})
    assert (given.days_in("/a/x"), given.days_in("/b"), given.days_in("/c")) == (3, None, None)
    for wrong, key in (
        ({"day": 3}, "retention.day"),
        ({"days": 0}, "retention.days"),
        ({"days": "90"}, "retention.days"),
        ({"days": True}, "retention.days"),
        ({"projects": {"a": 3}}, "retention.projects.a"),
        ("90", "retention"),
    ):
        with pytest.raises(ConfigError) as caught:
            retention(wrong)
        assert f"{key}: expected" in str(caught.value)


def test_what_was_pruned_in_words() -> None:
    assert in_words(Pruned(1, 1_234_567)) == "1 session, 1.2 MB"
    assert in_words(Pruned()) == "0 sessions, 0.0 MB"
