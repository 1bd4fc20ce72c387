"""Events of some types are found among the others, also over HTTP."""

from __future__ import annotations

from pathlib import Path

from page.seeding import told_session
from support.serving import served

from dragoman.session.content import Text
from dragoman.session.events import AgentMessage, Event, UsageChanged
from dragoman.store.base import events_of_types
from dragoman.store.open import open_store
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say, usage


async def test_only_the_wanted_ones_come_between_the_bounds(tmp_path: Path) -> None:
    # What an agent says may look like the beginning of an event.
    events: list[Event] = [AgentMessage(Text('{"type":"usage"')), UsageChanged(1, 2)]
    async with told_session(tmp_path, "a", tmp_path) as teller:
        for _ in range(3):
            await teller.tell(events)
    store = await open_store(tmp_path)
    try:
        found = [each.seq async for each in events_of_types(store, "a", ["usage"])]
        assert found == [2, 4, 6]
        within = events_of_types(store, "a", ["usage", "plan"], after=2, until=5)
        assert [each.seq async for each in within] == [4]
    finally:
        await store.aclose()


async def test_a_page_of_events_has_the_types_that_were_asked_for(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("a"), usage(10, 100), say("b"), usage(20, 100)])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        await web.done(session_id)
        path = f"/api/sessions/{session_id}/events?types=usage,turn_ended"
        page = await web.call("GET", path)
        assert [event["type"] for event in page["events"]] == ["usage", "usage", "turn_ended"]
        assert page["last"] >= page["events"][-1]["seq"]
        first = await web.call("GET", f"{path}&limit=1")
        assert [event["used"] for event in first["events"]] == [10]
