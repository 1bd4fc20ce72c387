"""The system prompt of a session: sent whenever its agent opens it, and kept with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.hubs import TestLauncher, stored
from support.raw_agent import RawAgent, text_block

from dragoman import Unsupported
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.session.facts import SystemPrompt
from dragoman.store.archive import exported, import_session, read_archive
from dragoman.store.records import SessionFilter

BRIEF = SystemPrompt("Be brief.")
INSTEAD = SystemPrompt("You are a parrot.", "override")
BY_MODE: dict[str, Any] = {"systemPrompt": {"mode": {"override": {}}}}
ACCEPTS: dict[str, Any] = {
    "loadSession": True,
    "sessionCapabilities": {"resume": {}, "fork": {}, **BY_MODE},
}


def told(agent: RawAgent, method: str) -> list[Any]:
    return [params.get("systemPrompt") for params in agent.sent(method)]


def wire(prompt: SystemPrompt) -> dict[str, Any]:
    return {"mode": prompt.mode, "content": [text_block(prompt.text)]}


async def test_it_is_sent_again_by_every_process_that_opens_the_session(tmp_path: Path) -> None:
    first, second = RawAgent(ACCEPTS), RawAgent(ACCEPTS)
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": first})) as hub:
        live = await hub.create("it", str(tmp_path), system_prompt=INSTEAD)
        assert (await hub.record(live.id)).system_prompt == INSTEAD
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": second})) as hub:
        await hub.open(live.id)
        assert (await hub.record(live.id)).system_prompt == INSTEAD
    assert told(first, "session/new") == [wire(INSTEAD)]
    assert told(second, "session/resume") == [wire(INSTEAD)]


async def test_one_given_later_takes_its_place(tmp_path: Path) -> None:
    agent = RawAgent(ACCEPTS)
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": agent})) as hub:
        live = await hub.create("it", str(tmp_path), system_prompt=BRIEF)
        await hub.detach(live)
        await hub.open(live.id, system_prompt=INSTEAD)
        assert (await hub.record(live.id)).system_prompt == INSTEAD
    assert told(agent, "session/resume") == [wire(INSTEAD)]


async def test_one_that_was_refused_later_does_not(tmp_path: Path) -> None:
    modest: dict[str, Any] = {"sessionCapabilities": {"resume": {}, "systemPrompt": {}}}
    agent = RawAgent(modest)
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": agent})) as hub:
        live = await hub.create("it", str(tmp_path), system_prompt=BRIEF)
        await hub.detach(live)
        with pytest.raises(Unsupported, match="in the place of its own"):
            await hub.open(live.id, system_prompt=INSTEAD)
        assert (await hub.record(live.id)).system_prompt == BRIEF


async def test_a_fork_has_that_of_its_parent_unless_it_is_given_one(tmp_path: Path) -> None:
    agent = RawAgent(ACCEPTS)
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": agent})) as hub:
        parent = await hub.create("it", str(tmp_path), system_prompt=BRIEF)
        same = await hub.fork(parent.id)
        assert same.record.system_prompt == BRIEF
        agent.answers["session/fork"] = {"sessionId": "s3"}
        other = await hub.fork(parent.id, system_prompt=INSTEAD)
        assert other.record.system_prompt == INSTEAD
    assert told(agent, "session/fork") == [wire(BRIEF), wire(INSTEAD)]


async def test_nothing_is_begun_in_an_agent_that_does_not_accept_it(tmp_path: Path) -> None:
    agent = RawAgent({})
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"it": agent})) as hub:
        with pytest.raises(Unsupported, match="does not support a system prompt"):
            await hub.create("it", str(tmp_path), system_prompt=BRIEF)
        assert await store.sessions(SessionFilter()) == []
    assert agent.sent("session/new") == []


async def test_that_of_the_settings_is_kept_with_a_session_that_begins(tmp_path: Path) -> None:
    agents = TestLauncher({"it": (agent := RawAgent(ACCEPTS))})
    agents.prompts = {"it": BRIEF}
    async with stored(tmp_path) as store, Hub(store, agents) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.detach(live)
        agents.prompts = {"it": INSTEAD}  # for those that begin from now on
        await hub.open(live.id)
        agent.answers["session/new"] = {"sessionId": "s9"}
        await hub.create("it", str(tmp_path), system_prompt=SystemPrompt("Its own."))
    assert told(agent, "session/new") == [wire(BRIEF), wire(SystemPrompt("Its own."))]
    assert told(agent, "session/resume") == [wire(BRIEF)]


async def test_that_for_all_agents_is_not_demanded_of_each(tmp_path: Path) -> None:
    agents = TestLauncher({"it": (agent := RawAgent({}))})
    agents.prompts = {None: BRIEF, "it": BRIEF}
    async with stored(tmp_path) as store, Hub(store, agents) as hub:
        live = await hub.create("it", str(tmp_path))
        [note] = [entry.text for entry in live.state.entries]
        assert "system prompt was not sent" in note
        agents.prompts = {None: BRIEF, "it": INSTEAD}  # which was said of this agent
        with pytest.raises(Unsupported):
            await hub.create("it", str(tmp_path))
    assert told(agent, "session/new") == [None]


async def test_a_file_that_is_imported_does_not_choose_one(tmp_path: Path) -> None:
    agents = TestLauncher({"it": RawAgent(ACCEPTS)})
    async with stored(tmp_path) as store, Hub(store, agents) as hub:
        live = await hub.create("it", str(tmp_path), system_prompt=BRIEF)
        await live.recording.settled()
        lines = [line async for line in exported(store, live.id)]
        archive = read_archive(lines)
        assert archive.record.system_prompt == BRIEF
        await import_session(store, archive, "imported", this_process())
        assert (await hub.record("imported")).system_prompt is None
