"""Sessions whose agent stands behind proxies: recorded as any, and nothing of them is left."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from support.clients import until
from support.hubs import seen_until, stored
from support.proxies import alive, proxy

from dragoman import Policy
from dragoman.agents.settings.settings_file import AgentSettings, Settings
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.session import events as e
from dragoman.testing import ScriptedAgent

AGENT = f"{Path(__file__).parent}/programs/agents.py:remembers"


def launcher(tmp_path: Path) -> SettingsLauncher:
    agent = AgentSettings(
        name="it",
        command=ScriptedAgent.command(AGENT, env={"STORE": str(tmp_path)}),
        proxies=(proxy(), proxy("noisy")),
    )
    return SettingsLauncher(lambda: Settings(agents={"it": agent}), Policy())


async def said(hub: Hub, live: RunningSession, text: str) -> None:
    after = live.record.last_seq
    await hub.send(live.id, c.Prompt(text))
    await seen_until(hub.watch(live.id, after), e.TurnEnded)


async def test_every_process_of_a_chain_is_noted_and_all_end_with_the_hub(tmp_path: Path) -> None:
    notes = tmp_path / "running"
    async with stored(tmp_path) as store, Hub(store, launcher(tmp_path), notes=notes) as hub:
        live = await hub.create("it", str(tmp_path))
        pids = live.agent.client.pids
        [note] = [json.loads(file.read_text()) for file in notes.iterdir()]
        assert [child["pid"] for child in note["children"]] == pids
        assert len(set(pids)) == 3
        assert all(map(alive, pids))
    assert not any(map(alive, pids))


async def test_a_session_goes_on_after_one_of_its_proxies_was_killed(tmp_path: Path) -> None:
    async with stored(tmp_path) as store, Hub(store, launcher(tmp_path)) as hub:
        live = await hub.create("it", str(tmp_path))
        await said(hub, live, "one")
        os.kill(live.agent.client.pids[0], signal.SIGKILL)
        await until(lambda: live.agent.client.connection_error is not None)
        error = str(live.agent.client.connection_error)
        assert error.endswith("(1 of 2) was ended by SIGKILL")
        await said(hub, live, "two")
        assert live.state.turns[-1].stop_reason == "end_turn"
