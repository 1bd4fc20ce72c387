"""Entries that a state has let go are told by their numbers, from the events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from store.stores import begin
from support.hubs import stored

from dragoman.hub.stored import stored_sessions
from dragoman.hub.stored.stored_sessions import Past, stored_state, whole_thread
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState, ToolCall
from dragoman.session.state_limits import Limits
from dragoman.store.base import Store
from dragoman.store.records import Batch, StoredEvent, decode_events, encode_event

SMALL = Limits(entries=20)
COUNT = 500


async def filled(store: Store, *last: e.Event) -> list[e.Event]:
    """A session of many tool calls, each told in two events, and what comes last."""
    events: list[e.Event] = [e.TurnStarted("t", [Text("Go")])]
    for number in range(1, COUNT):
        events.append(e.ToolCallUpdated(f"call-{number}", title=str(number)))
        events.append(e.ToolCallUpdated(f"call-{number}", status="completed"))
    events += last
    await keep(store, events)
    return events


async def keep(store: Store, events: Sequence[e.Event]) -> None:
    for seq, event in enumerate(events, 1):
        event.seq = seq
    bodies = [encode_event(event) for event in events]
    await store.append(await begin(store), Batch(first_seq=1, events=bodies))


async def test_all_entries_are_told_in_their_order_and_as_they_ended(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        await filled(store)
        thread = [entry async for entry in whole_thread(store, "s", SMALL)]
    calls = [entry for entry in thread if isinstance(entry, ToolCall)]
    assert [call.title for call in calls] == [str(number) for number in range(1, COUNT)]
    assert {call.status for call in calls} == {"completed"}
    assert len(thread) == COUNT


async def test_what_was_told_too_late_is_an_entry_of_its_own(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        events = await filled(store, e.ToolCallUpdated("call-1", status="failed"))
        thread = [entry async for entry in whole_thread(store, "s", SMALL)]
    state = fold(SessionState(), events, SMALL)
    assert len(thread) == state.entry_count == COUNT + 1
    assert thread[-len(state.entries) :] == state.entries
    assert isinstance(thread[-1], ToolCall)
    assert (thread[-1].title, thread[-1].status) == ("", "failed")


async def test_older_entries_are_paged_back_to_the_first(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        state = fold(SessionState(), await filled(store), SMALL)
        past, before, told = Past(store, SMALL), state.entries_before, list(state.entries)
        while before > 0:
            older = await past.entries("s", before, 7)
            assert 0 < len(older) <= 7
            told, before = [*older, *told], before - len(older)
        past.forget()
        assert told == [entry async for entry in whole_thread(store, "s", SMALL)]


async def test_what_was_read_stays_at_hand_for_the_next_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as store:
        await filled(store)
        past = Past(store, SMALL)
        first = await past.entries("s", 100, 5)
        reads: list[int] = []
        events = store.events

        async def counted(
            session_id: str, *, after: int = 0, limit: int = 1000
        ) -> list[StoredEvent]:
            reads.append(after)
            return await events(session_id, after=after, limit=limit)

        monkeypatch.setattr(store, "events", counted)
        again = await past.entries("s", 95, 5)
        assert [entry.text for entry in (*again, *first)] == [str(n) for n in range(90, 100)]
        assert reads == []
        past.forget()
        await past.entries("s", 95, 5)
        assert reads
        past.forget()


@pytest.mark.parametrize("size", [300, 40_000, 200_000])
async def test_others_run_while_a_session_is_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """By how much the loop decodes and folds without a pause: what it costs grows with that."""
    values = {f"k{number}": [{"x": 0}, [0], "a"] for number in range(size // 20)}
    calls = [e.ToolCallUpdated(f"c{n}", raw_input=values) for n in range(2_000_000 // size)]
    step = asyncio.Handle._run  # pyright: ignore[reportPrivateUsage]
    loop, read, stretches = threading.get_ident(), list[int](), [0]

    def weighed(events: Sequence[StoredEvent]) -> list[e.Event]:
        read.append(sum(len(event.body) for event in events))
        if threading.get_ident() == loop:
            stretches[-1] += read[-1]
        return decode_events(events)

    def stepped(handle: asyncio.Handle) -> None:
        stretches.append(0)
        step(handle)

    async with stored(tmp_path) as store:
        await keep(store, calls)
        monkeypatch.setattr(stored_sessions, "decode_events", weighed)
        monkeypatch.setattr(asyncio.Handle, "_run", stepped)
        assert (await stored_state(store, "s")).last_seq == len(calls)
        assert sum(read) > 1_500_000
        assert len([entry async for entry in whole_thread(store, "s")]) == len(calls)
    assert max(stretches) <= 128 << 10


# ── of a subagent ─────────────────────────────────────────────────────────────────────────────


async def with_subagents(store: Store) -> list[e.Event]:
    """Two of them that use many tools, at the same time."""
    events: list[e.Event] = [e.TurnStarted("t", [Text("Go")])]
    for number in range(1, COUNT):
        for name in ("a", "b"):
            call = e.ToolCallUpdated(f"call-{number}", title=f"{name}{number}", status="completed")
            events.append(e.SubagentEvent(name, call))
    await keep(store, events)
    return events


async def test_all_entries_of_a_subagent_are_told_in_their_order(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        events = await with_subagents(store)
        thread = [entry async for entry in whole_thread(store, "s", SMALL, "b")]
        nobody = [entry async for entry in whole_thread(store, "s", SMALL, "c")]
    calls = [entry.title for entry in thread if isinstance(entry, ToolCall)]
    assert calls == [f"b{number}" for number in range(1, COUNT)]
    assert nobody == []
    child = fold(SessionState(), events, SMALL).subagents["b"].thread
    assert child.entries_before > 0
    assert child.entry_count == len(thread)


async def test_earlier_entries_of_a_subagent_are_found_by_their_numbers(tmp_path: Path) -> None:
    async with stored(tmp_path) as store:
        await with_subagents(store)
        past = Past(store, SMALL)
        own = await past.entries("s", 1, 10)
        for name in ("b", "a"):
            found = await past.entries("s", 100, 3, name)
            titles = [entry.title for entry in found if isinstance(entry, ToolCall)]
            assert titles == [f"{name}98", f"{name}99", f"{name}100"]
        past.forget()
    assert len(own) == 1
