"""A tree of subagents in a store: recorded, read again, exported, imported, and told again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.hubs import hub_with, seen_until, stored_events
from support.programs.tree_agent import NAMES, agent

from dragoman.errors import CommandRefused
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.stored.stored_sessions import snapshot_of, stored_state
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.state import PendingPermission, SessionState
from dragoman.store.archive import exported, import_session, read_archive


async def answered(hub: Hub, live: RunningSession) -> dict[str, str | None]:
    """Allow all that the tree asks, by its ids; who asked."""
    asked: dict[str, str | None] = {}
    await hub.send(live.id, c.Prompt("go"))
    async for page in hub.watch(live.id, 0):
        for event in (each.decode() for each in page):
            match event:
                case e.PermissionRequested():
                    asked[event.subagent or ""] = event.asked_by
                    answer = c.AnswerPermission(event.request_id, event.options[0].id)
                    await hub.send(live.id, answer)
                case e.ElicitationRequested():
                    await hub.send(live.id, c.AnswerElicitation(event.request_id, "decline"))
                case e.TurnEnded():
                    return asked
                case _:
                    pass
    return asked


def tree(state: SessionState) -> dict[str, Any]:
    return {
        key: (each.parent, each.title, [entry.text for entry in each.thread.entries])
        for key, each in state.subagents.items()
    }


async def test_a_tree_is_in_the_store_as_it_was(tmp_path: Path) -> None:
    async with hub_with(tmp_path, agent()) as hub:
        live = await hub.create("it", str(tmp_path))
        assert await answered(hub, live) == NAMES
        await live.recording.stored()
        assert await stored_state(hub.store, live.id) == live.state
        await hub.store.save_snapshot(live.recording.lease, snapshot_of(live.state))
        assert await stored_state(hub.store, live.id) == live.state


async def test_a_tree_is_exported_and_imported(tmp_path: Path) -> None:
    async with hub_with(tmp_path, agent()) as hub:
        live = await hub.create("it", str(tmp_path))
        await answered(hub, live)
        await hub.detach(live)
        lines = [line async for line in exported(hub.store, live.id)]
        archive = read_archive(lines)
        copy = await import_session(hub.store, archive, "copy", this_process())
        found = await stored_state(hub.store, copy.id)
    assert tree(found) == tree(live.state)
    assert found.subagents.keys() == NAMES.keys()


async def test_a_tree_that_the_agent_tells_again_is_not_recorded_twice(tmp_path: Path) -> None:
    scripted = agent()
    scripted.capabilities = v1.AgentCapabilities(load_session=True)
    async with hub_with(tmp_path, scripted) as hub:
        live = await hub.create("it", str(tmp_path))
        await answered(hub, live)
        before = tree(live.state)
        told = [each for each in await stored_events(hub, live.id) if _is_told(each)]
        await hub.detach(live)
        again = await hub.open(live.id)
        assert again.session.continuity == "replayed"
        after = again.record.last_seq
        await hub.send(live.id, c.Prompt("alone"))
        await seen_until(hub.watch(live.id, after), e.TurnEnded)
        now = [each for each in await stored_events(hub, live.id) if _is_told(each)]
    assert tree(again.state) == before
    assert len(now) == len(told)


def _is_told(event: e.Event) -> bool:
    return isinstance(event, e.SubagentEvent)


async def test_one_subagent_is_stopped_by_a_command(tmp_path: Path) -> None:
    async with hub_with(tmp_path, agent()) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go"))
        await until(lambda: len(live.state.pending) == len(NAMES))
        assert await hub.send(live.id, c.CancelSubagent("reader")) == {"cancelled": True}
        left = [each for each in live.state.pending.values() if isinstance(each, PendingPermission)]
        assert {each.subagent for each in left} == NAMES.keys() - {"reader", "reader-1"}
        with pytest.raises(CommandRefused, match="no subagent nobody in this session"):
            await hub.send(live.id, c.CancelSubagent("nobody"))
        with pytest.raises(CommandRefused, match="stopping the subagent Speller alone"):
            await hub.send(live.id, c.CancelSubagent("writer-1"))
        await hub.send(live.id, c.Cancel())
        assert await hub.send(live.id, c.CancelSubagent("writer")) == {"cancelled": False}


async def test_what_a_subagent_said_is_found(tmp_path: Path) -> None:
    async with hub_with(tmp_path, agent()) as hub:
        live = await hub.create("it", str(tmp_path))
        await answered(hub, live)
        await live.recording.stored()
        found = {each: await hub.store.search(f'"{each}:7 {each}:8"') for each in NAMES}
    said = {key: each.thread.entries for key, each in live.state.subagents.items()}
    for key, hits in found.items():
        assert [(hit.session_id, hit.kind) for hit in hits] == [(live.id, "subagent")]
        assert hits[0].seq in [entry.seq for entry in said[key]]
