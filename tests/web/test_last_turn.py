"""Whether the last turn of a session failed, as a list of sessions says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from page.seeding import told_session
from support.serving import served

from dragoman.errors import InternalError
from dragoman.session.content import Text
from dragoman.session.events import (
    AgentMessage,
    Event,
    TurnCancelling,
    TurnEnded,
    TurnStarted,
    UsageChanged,
)
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.records import SessionRecord, StoredEvent
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.web.last_turn import Endings


def _turn(name: str, error: str | None = None) -> list[Event]:
    return [TurnStarted(name, [Text("go")]), TurnEnded(name, error=error)]


async def _record(store: Store) -> SessionRecord:
    record = await store.session("a")
    assert record is not None
    return record


async def failed(endings: Endings, store: Store) -> bool:
    ended = await endings.last(await _record(store))
    return ended is not None and ended.failed


async def test_the_last_turn_counts_whatever_came_after_it(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    endings = Endings(store)
    try:
        async with told_session(tmp_path, "a", tmp_path) as teller:
            assert not await failed(endings, store)
            await teller.tell([*_turn("t1"), *_turn("t2", "no")])
            await teller.tell([AgentMessage(Text("word "), replay=True)] * 100)
            assert await failed(Endings(store), store)
            assert await failed(endings, store)
            await teller.tell([UsageChanged(1, 2)])
            assert await failed(endings, store)
            await teller.tell(_turn("t3"))
            assert not await failed(endings, store)
            await teller.tell(_turn("t4", "no"), status="running")
            assert not await failed(endings, store)
    finally:
        await store.aclose()


async def test_what_was_read_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(tmp_path)
    read: list[int] = []
    events = store.events

    async def counted(session_id: str, *, after: int = 0, limit: int = 1000) -> list[StoredEvent]:
        read.append(after)
        return await events(session_id, after=after, limit=limit)

    monkeypatch.setattr(store, "events", counted)
    endings = Endings(store)
    try:
        async with told_session(tmp_path, "a", tmp_path) as teller:
            await teller.tell(_turn("t", "no"))
            assert await failed(endings, store)
            read.clear()
            assert await failed(endings, store)
            assert read == []
    finally:
        await store.aclose()


async def _fails_once(turn: AgentTurn) -> None:
    if turn.text == "fail":
        raise InternalError("no")
    turn.say("well")


async def test_each_ending_has_its_word(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    endings = Endings(store)

    async def word() -> str | None:
        ended = await endings.last(await _record(store))
        return None if ended is None else ended.ending

    try:
        async with told_session(tmp_path, "a", tmp_path) as teller:
            assert await word() is None
            await teller.tell(_turn("t1"))
            assert await word() == "completed"
            await teller.tell([TurnStarted("t2", []), TurnEnded("t2", "cancelled")])
            assert await word() == "cancelled"
            # Some agents answer a cancel with another reason.
            told = [TurnStarted("t3", []), TurnCancelling("t3"), TurnEnded("t3", "end_turn")]
            await teller.tell(told)
            assert await word() == "cancelled"
            await teller.tell(_turn("t4", "no"))
            assert await word() == "failed"
            await teller.tell([TurnStarted("t5", []), TurnEnded("t5", interrupted=True)])
            assert await word() == "interrupted"
    finally:
        await store.aclose()


async def test_a_list_tells_a_failed_turn_until_the_next_one_is_well(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent(_fails_once)}) as web:
        session_id = await web.new_session()

        async def failed() -> tuple[bool, bool]:
            [listed] = (await web.call("GET", "/api/sessions"))["sessions"]
            shown = await web.detail(session_id)
            assert listed["lastEnding"] == shown["lastEnding"]
            return listed["failed"], shown["failed"]

        assert await failed() == (False, False)
        await web.done(session_id, "fail")
        assert await failed() == (True, True)
        await web.done(session_id, "again")
        assert await failed() == (False, False)
