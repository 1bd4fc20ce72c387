"""What is read together is recorded together; one event that cannot be encoded ends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from store.stores import begin, record
from support.hubs import hub_with, seen_until, stored
from support.peers import soon
from support.raw_agent import Json, RawAgent, notification, text_block
from support.v2_agent import second_agent

from dragoman.errors import DragomanError
from dragoman.hub.cluster import commands as c
from dragoman.hub.running.event_recorder import EventRecorder
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.store.base import Store
from dragoman.store.records import Batch, Lease

COUNT = 1_000


def counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each append brings."""
    append, sizes = store.append, list[int]()

    async def count(lease: Lease, batch: Batch) -> int:
        sizes.append(len(batch.events))
        return await append(lease, batch)

    monkeypatch.setattr(store, "append", count)
    return sizes


def chunks() -> list[Json]:
    block = [text_block(f"{number} ") for number in range(COUNT)]
    return [notification("agent_message_chunk", messageId="m", content=each) for each in block]


def ends_v1(agent: RawAgent, prompt: Json) -> Json:
    return {"id": prompt["id"], "result": {"stopReason": "end_turn"}}


def ends_v2(agent: RawAgent, prompt: Json) -> Json:
    return notification("state_update", state="idle", stopReason="end_turn")


@pytest.mark.parametrize(
    ("make", "end", "options"),
    [(RawAgent, ends_v1, {}), (second_agent, ends_v2, {"protocol": 2})],
    ids=["v1", "v2"],
)
async def test_a_read_of_many_updates_is_recorded_in_few_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, end: Any, options: dict[str, Any]
) -> None:
    agent = make()
    async with hub_with(tmp_path, agent, **options) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go"))
        prompt = await agent.expect("session/prompt")
        await soon(live.recording.settled())
        sizes = counted(hub.store, monkeypatch)
        agent.send(*chunks(), end(agent, prompt))
        seen = await seen_until(hub.watch(live.id), e.TurnEnded)
    said = [event for event in seen if isinstance(event, e.AgentMessage)]
    assert [event.text for event in said] == [f"{number} " for number in range(COUNT)]
    assert sum(sizes) > COUNT
    assert len(sizes) <= 5
    # They were stamped together, and not each with its own look at the clock.
    assert len({event.at for event in said}) <= 5


async def test_one_event_that_cannot_be_encoded_is_named_and_ends_the_recording(
    tmp_path: Path,
) -> None:
    async with stored(tmp_path) as store:
        recording = EventRecorder(store, record(), await begin(store), on_stored=lambda _: None)
        failed: list[DragomanError] = []
        recording.on_failed = failed.append
        recording.take([e.AgentMessage(Text("stored"), seq=1)])
        await soon(recording.settled())
        odd = e.ToolCallUpdated("x", raw_input=object(), seq=3)
        recording.take([e.AgentMessage(Text("lost"), seq=2), odd])
        recording.take([e.AgentMessage(Text("late"), seq=4)])
        await soon(recording.settled())
        assert [each.decode().text for each in await store.events("s")] == ["stored"]
    assert failed == [recording.error]
    assert "event 3 cannot be stored" in str(recording.error)
