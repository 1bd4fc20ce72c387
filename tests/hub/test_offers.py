"""What of the machine a session's agent is offered: advertised, and kept with the session."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.hubs import TestLauncher, stored

from dragoman.agents.settings.settings_file import Settings
from dragoman.host.rules.policy import Policy
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.session.facts import EVERYTHING, Offer
from dragoman.store.archive import exported, import_session, read_archive
from dragoman.testing import AgentTurn, ScriptedAgent

NO_FILES = Offer(files=False)
NO_TERMINALS = Offer(terminals=False)


async def _tell(turn: AgentTurn) -> None:
    files = turn.client.fs
    turn.say(f"files {bool(files and files.read_text_file)} terminals {bool(turn.client.terminal)}")


def launcher() -> TestLauncher:
    return TestLauncher({"it": ScriptedAgent(_tell)})


async def told(hub: Hub, live: RunningSession) -> str:
    before = len(live.state.turns)
    await hub.send(live.id, c.Prompt("what do you have?"))
    await until(lambda: live.idle and len(live.state.turns) > before)
    said: Any = live.state.entries[-1]
    return said.text


async def test_a_process_serves_only_sessions_that_are_offered_the_same(tmp_path: Path) -> None:
    agents = launcher()
    async with stored(tmp_path) as store, Hub(store, agents) as hub:
        offers = [EVERYTHING, NO_FILES, NO_TERMINALS, Offer(files=False), EVERYTHING]
        lives = [await hub.create("it", str(tmp_path), offer=offer) for offer in offers]
        assert [await told(hub, live) for live in lives] == [
            "files True terminals True",
            "files False terminals True",
            "files True terminals False",
            "files False terminals True",
            "files True terminals True",
        ]
        assert len(agents.started) == 3
        assert lives[1].agent is lives[3].agent


def test_the_stricter_fence_of_two_offers_holds() -> None:
    asking, fenced = Offer(fence="ask"), Offer(files=False, fence="on")
    assert asking.within(fenced) == fenced.within(asking) == Offer(files=False, fence="ask")
    assert EVERYTHING.within(asking) == asking.within(EVERYTHING) == asking
    assert Offer(fence="require").within(asking).fence == "require"


async def test_a_session_keeps_its_offer_when_another_process_goes_on_with_it(
    tmp_path: Path,
) -> None:
    async with stored(tmp_path) as store, Hub(store, launcher()) as hub:
        begun = (await hub.create("it", str(tmp_path), offer=NO_FILES)).id
    async with stored(tmp_path) as store, Hub(store, launcher()) as hub:
        live = await hub.open(begun, on_reset="new")
        assert live.record.offer == NO_FILES
        assert await told(hub, live) == "files False terminals True"


@pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")
async def test_a_session_is_fenced_again_when_another_process_goes_on_with_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "ws").mkdir()
    offer = Offer(fence="require")
    ways: list[str | None] = []
    begun = None
    for _ in range(2):
        launcher = SettingsLauncher(Settings, Policy())
        async with stored(tmp_path) as store, Hub(store, launcher) as hub:
            if begun is None:
                live = await hub.create("demo", str(tmp_path / "ws"), offer=offer)
            else:
                live = await hub.open(begun, on_reset="new")
            assert live.agent.client.fence is not None
            ways += [live.agent.client.fence.way, live.state.fence]
            begun = live.id
    assert ways[0] is not None
    assert ways == [ways[0]] * 4


@pytest.mark.parametrize("way", ["adopt", "fork_known", "import"])
async def test_an_offer_holds_however_the_session_came_here(tmp_path: Path, way: str) -> None:
    agents = launcher()
    async with stored(tmp_path / "there") as store, Hub(store, agents) as hub:
        before = await hub.create("it", str(tmp_path), offer=NO_FILES)
        await told(hub, before)
        await before.recording.settled()
        known, lines = before.session.id, [line async for line in exported(store, before.id)]
    async with stored(tmp_path / "here") as store, Hub(store, agents) as hub:
        match way:
            case "adopt":
                live = await hub.adopt("it", known, str(tmp_path), offer=NO_FILES)
            case "fork_known":
                live = await hub.fork_known("it", known, str(tmp_path), offer=NO_FILES)
            case _:
                archive, cwd = read_archive(lines), str(tmp_path)
                await import_session(store, archive, "imported", this_process(), cwd=cwd)
                live = await hub.open("imported", on_reset="new")
        assert await told(hub, live) == "files False terminals True"
        assert (await hub.record(live.id)).offer == NO_FILES


async def test_a_fork_is_offered_no_more_than_its_parent(tmp_path: Path) -> None:
    async with stored(tmp_path) as store, Hub(store, launcher()) as hub:
        parent = await hub.create("it", str(tmp_path), offer=NO_FILES)
        same = await hub.fork(parent.id)
        less = await hub.fork(parent.id, offer=NO_TERMINALS)
        assert await told(hub, same) == "files False terminals True"
        assert await told(hub, less) == "files False terminals False"
