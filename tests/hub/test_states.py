"""The state of a stored session: from its snapshot, where that counts, and the events behind it."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from store.stores import begin
from support.clients import until
from support.hubs import TestLauncher, hub_with, stored

from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.stored import stored_sessions
from dragoman.hub.stored.stored_sessions import (
    MOST_SAVED,
    StoredStates,
    snapshot_of,
    state_to_go_on,
    stored_state,
    written_snapshot,
)
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.reduce import fold, reduce
from dragoman.session.state import SessionState, ToolCall
from dragoman.store.base import Store
from dragoman.store.records import Batch, Lease, SessionRecord, Snapshot, StoredEvent, encode_event
from dragoman.testing import AgentTurn, ScriptedAgent

MANY = stored_sessions.WORTH_A_SNAPSHOT


async def talk(store: Store, lease: Lease, after: int, count: int) -> None:
    events: list[e.Event] = [
        e.AgentMessage(Text(f"{seq} "), seq=seq) for seq in range(after + 1, after + count + 1)
    ]
    bodies = [encode_event(event) for event in events]
    await store.append(lease, Batch(first_seq=after + 1, events=bodies))


async def test_a_long_session_is_folded_once(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        lease = await begin(store)
        await talk(store, lease, 0, MANY - 1)
        await state_to_go_on(store, lease)
        assert await store.snapshot("s") is None
        # A few events with each owner: none of them sees much, but there is a lot at last.
        await talk(store, lease, MANY - 1, 1)
        state = await state_to_go_on(store, lease)
        snapshot = await store.snapshot("s")
        assert snapshot is not None
        assert snapshot.seq == MANY
        await talk(store, lease, MANY, 5)
        assert (await stored_state(store, "s")).last_seq == MANY + 5
        state.title = "folded before"
        await store.save_snapshot(lease, snapshot_of(state))
        assert (await stored_state(store, "s")).title == "folded before"


class Folds:
    """Counts how often a session is read from its first event on, and can hold that up."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.reading, self.may_go_on = asyncio.Event(), asyncio.Event()
        original = store.events

        async def events(session_id: str, *, after: int = 0, limit: int = 1000) -> Any:
            found = await original(session_id, after=after, limit=limit)
            self.count += not after
            self.reading.set()
            await self.may_go_on.wait()
            return found

        monkeypatch.setattr(store, "events", events)


async def test_those_who_ask_at_the_same_time_share_one_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as store, Hub(store, TestLauncher({})) as hub:
        await talk(store, await begin(store), 0, 10)
        folds = Folds(store, monkeypatch)
        asking = [asyncio.create_task(hub.state("s")) for _ in range(24)]
        await folds.reading.wait()
        asking.pop(0).cancel()  # the one for whom it was begun
        folds.may_go_on.set()
        states = await asyncio.gather(*asking)
        assert folds.count == 1
        assert {state.last_seq for state in states} == {10}
        # Nothing is kept for those who ask later.
        await hub.state("s")
        assert folds.count == 2


async def test_one_who_asks_during_a_fold_sees_what_was_stored_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as store:
        lease, states = await begin(store), StoredStates(store)
        await talk(store, lease, 0, 10)
        folds = Folds(store, monkeypatch)
        early = asyncio.create_task(states.of(await known(store)))
        await folds.reading.wait()
        await talk(store, lease, 10, 1)
        late = asyncio.create_task(states.of(await known(store)))
        await asyncio.sleep(0)  # it joins
        folds.may_go_on.set()
        assert (await early).last_seq == 10
        assert (await late).last_seq == 11


async def known(store: Store) -> SessionRecord:
    record = await store.session("s")
    assert record is not None
    return record


async def test_a_fold_that_is_left_when_the_hub_closes_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as store:
        async with Hub(store, TestLauncher({})) as hub:
            await talk(store, await begin(store), 0, 10)
            folds = Folds(store, monkeypatch)
            asking = asyncio.create_task(hub.state("s"))
            await folds.reading.wait()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_snapshot_is_the_state_and_others_run_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = SessionState()
    for seq in range(1, 2_001):
        reduce(saved, e.AgentMessage(Text("x"), message_id=str(seq), seq=seq))

    async def at_once(_: str) -> Snapshot:
        return snapshot_of(saved)

    async def nothing_more(*_: object, **__: object) -> list[StoredEvent]:
        return []

    async with stored(tmp_path) as store:
        # Nothing but the decoding is waited for.
        monkeypatch.setattr(store, "snapshot", at_once)
        monkeypatch.setattr(store, "events", nothing_more)
        reading = asyncio.create_task(stored_state(store, "s"))
        turns = 0
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= len(saved.entries) / 500
        assert await reading == saved


def test_a_snapshot_is_in_small_parts_also_of_large_entries() -> None:
    saved = SessionState()
    values = {f"k{number}": [{"x": 0}, [0], "a"] for number in range(1_000)}
    for seq in range(1, 101):
        reduce(saved, e.ToolCallUpdated(str(seq), raw_input=values, seq=seq))
    parts = msgspec.json.decode(snapshot_of(saved).body)[2]
    assert [len(part) for part in parts] == [1] * len(saved.entries)


def _state_of(text: str) -> SessionState:
    """A thread of as many messages of a hundred thousand characters as it has room for."""
    said = [
        e.AgentMessage(Text(text * 100_000), message_id=str(seq), seq=seq) for seq in range(160)
    ]
    return fold(SessionState(), said)


def test_a_snapshot_takes_no_more_memory_than_its_body() -> None:
    state = _state_of("x")
    tracemalloc.start()
    try:
        body = snapshot_of(state).body
        [_, peak] = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A buffer grows by half of what it has; encoded at once, the body would be there twice.
    assert len(body) > 15_000_000
    assert peak < 1.75 * len(body)


def test_a_state_that_is_far_larger_as_json_is_not_saved() -> None:
    plain, escaped = _state_of("x"), _state_of("\1")
    assert escaped.size == plain.size
    assert written_snapshot("s", plain) is not None
    tracemalloc.start()
    try:
        assert written_snapshot("s", escaped) is None
        [_, peak] = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * MOST_SAVED


@pytest.mark.parametrize("how", ["another version", "nonsense", "what was once saved"])
async def test_a_snapshot_of_another_version_does_not_count(tmp_path: Path, how: str) -> None:
    async with stored(tmp_path) as store:
        lease = await begin(store)
        await talk(store, lease, 0, 10)
        wrong = SessionState(title="folded otherwise", last_seq=10)
        bodies = {
            "another version": snapshot_of(wrong).body.replace(b"0.", b"9.", 1),
            "nonsense": b"\xc1",
            "what was once saved": msgspec.msgpack.encode(wrong),
        }
        await store.save_snapshot(lease, Snapshot(10, snapshot_of(wrong).body))
        assert (await stored_state(store, "s")).title == "folded otherwise", "the control"
        await store.save_snapshot(lease, Snapshot(10, bodies[how]))
        state = await stored_state(store, "s")
        assert (state.title, state.last_seq) == (None, 10)


async def test_what_is_not_durable_is_in_no_state_that_is_shown(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        launcher = TestLauncher({"it": ScriptedAgent()})
        async with Hub(store, launcher) as hub:
            live = await hub.create("it", str(tmp_path))
            for number in range(50):
                live.session.log.record(e.Notice(f"number {number}"))
                state = await hub.state(live.id)
                assert state.last_seq <= live.record.last_seq
                assert len(await store.events(live.id)) >= state.last_seq


async def test_integers_beyond_64_bits_do_not_keep_a_session_from_going_on(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        lease = await begin(store)
        given = [10**30, -(10**30), 10**300]
        call = e.ToolCallUpdated("call", title="x", raw_input=given, seq=1)
        await store.append(lease, Batch(first_seq=1, events=[encode_event(call)]))
        await talk(store, lease, 1, MANY)
        state = await state_to_go_on(store, lease)
        assert await store.snapshot("s") is not None
        assert await stored_state(store, "s") == state
        assert [entry.raw_input for entry in state.entries if isinstance(entry, ToolCall)] == [
            given
        ]


async def test_a_state_that_cannot_be_written_opens_and_runs_without_a_snapshot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    launcher = TestLauncher({"it": ScriptedAgent()})
    async with stored(tmp_path) as store, Hub(store, launcher) as hub:
        live = await hub.create("it", str(tmp_path))
        live.state.title = "\ud800"  # no text that any encoding has
        await live.save_snapshot()
        live.state.title = None
        assert "continues without a snapshot" in caplog.text
        assert await store.snapshot(live.id) is None


async def test_the_state_of_an_agent_that_never_stops_is_not_made_from_all_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def floods(turn: AgentTurn) -> None:
        while not turn.cancelled.is_set():
            turn.say("x" * 1000)
            await asyncio.sleep(0)

    async with hub_with(tmp_path, ScriptedAgent(floods)) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go"))
        read = list[int]()
        events = hub.store.events

        async def noted(session_id: str, **given: Any) -> list[StoredEvent]:
            read.append(given["after"])
            return await events(session_id, **given)

        monkeypatch.setattr(hub.store, "events", noted)
        last = 0
        for _ in range(20):
            before = live.state.last_seq
            await until(lambda before=before: live.state.last_seq > before)
            state = await hub.state(live.id)
            assert state.last_seq > last
            last = state.last_seq
            assert (await hub.record(live.id)).last_seq >= last
        assert read == []
        await hub.send(live.id, c.Cancel())
        await until(lambda: live.idle)
