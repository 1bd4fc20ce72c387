"""Whoever watches is woken by what this process writes and by what others do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from store.stores import Opens, batch, begin, on_disk, record

from dragoman.store.records import SessionChange, StoredEvent
from dragoman.store.sqlite import writer
from dragoman.store.store_limits import StoreLimits


async def woken(event: asyncio.Event) -> bool:
    """Whether it is set soon; a generous bound, since the machine may be busy."""
    try:
        async with asyncio.timeout(60):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True


async def test_a_commit_of_ours_wakes_and_its_events_are_there(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        news = asyncio.Event()
        store.on_change(news.set)
        appended = asyncio.create_task(store.append(lease, batch(1)))
        found: list[StoredEvent] = []
        while not found:  # what was told before may be heard only now
            assert await woken(news)
            found = await store.events("s")
        assert len(found) == 1
        await appended


async def test_every_kind_of_write_wakes(opens: Opens) -> None:
    async with opens() as store:
        news = asyncio.Event()
        store.on_change(news.set)
        for write in (
            store.create_session(record("x")),
            store.change_session("x", SessionChange(title="t")),
            store.send("x", b"c"),
        ):
            await write
            assert await woken(news)


async def test_who_has_unsubscribed_is_not_woken(opens: Opens) -> None:
    async with opens() as store:
        calls: list[str] = []
        end_a = store.on_change(lambda: calls.append("a"))
        end_b = store.on_change(lambda: calls.append("b"))
        await store.create_session(record("x"))
        assert set(calls) == {"a", "b"}
        end_a()
        end_a()
        calls.clear()
        await store.create_session(record("y"))
        assert set(calls) == {"b"}
        end_b()
        calls.clear()
        await store.create_session(record("z"))
        assert calls == []


async def test_a_commit_of_another_connection_wakes(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store, on_disk(tmp_path) as other:
        await store.create_session(record("before"))
        news = asyncio.Event()
        end = store.on_change(news.set)
        await other.create_session(record("x"))
        assert await woken(news)
        assert await store.session("x") is not None
        end()
        again = store.on_change(news.set)
        await other.create_session(record("y"))
        assert await woken(news)
        again()


async def test_what_others_write_is_looked_for_only_while_somebody_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer waits for the next job, and for no longer than until its next look."""
    waits = asyncio.Queue[float | None]()
    loop = asyncio.get_running_loop()

    class Noting(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            if block:
                loop.call_soon_threadsafe(waits.put_nowait, timeout)
            return super().get(block, timeout)

    monkeypatch.setattr(writer, "SimpleQueue", Noting)
    limits = StoreLimits(poll_seconds=0.005)
    async with on_disk(tmp_path, limits) as store:
        assert await waits.get() is None, "nobody watches, and yet it would look"
        end = store.on_change(lambda: None)
        for _ in range(3):
            assert await waits.get() == limits.poll_seconds
        end()
        # One look may be under way; after the next job there is none.
        await store.create_session(record("x"))
        while await waits.get() is not None:
            pass
        assert waits.empty()


async def test_who_wakes_may_unsubscribe_and_subscribe(opens: Opens) -> None:
    async with opens() as store:
        ends: list[Any] = []

        def once() -> None:
            ends.pop()()
            store.on_change(lambda: None)

        ends.append(store.on_change(once))
        await store.create_session(record("x"))
        await store.create_session(record("y"))
        assert ends == []
