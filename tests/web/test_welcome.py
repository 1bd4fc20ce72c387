"""Whoever has no session yet finds one: a whole turn with the demo agent."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from support.hubs import TestLauncher, stored

from dragoman import AgentCommand
from dragoman.hub.hub import Hub
from dragoman.store.records import SessionFilter
from dragoman.web.server.lifecycle import first_session

DEMO = AgentCommand(sys.executable, ("-m", "dragoman", "demo-agent"))


async def test_the_first_session_has_a_finished_turn_and_there_is_no_second(tmp_path: Path) -> None:
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"demo": DEMO})) as hub:
        first = await first_session(hub)
        assert first is not None
        state = await hub.state(first)
        assert state.turns[-1].stop_reason == "end_turn"
        assert [call.status for call in state.tool_calls.values()] == ["completed"] * 3
        assert not state.pending
        assert Path(state.cwd).is_relative_to(tempfile.gettempdir())
        shutil.rmtree(state.cwd)
        assert await first_session(hub) is None
        assert len(await hub.store.sessions(SessionFilter())) == 1


async def test_a_server_without_the_demo_goes_on_without_a_first_session(tmp_path: Path) -> None:
    broken = AgentCommand("/nowhere/demo")
    async with stored(tmp_path) as store, Hub(store, TestLauncher({"demo": broken})) as hub:
        assert await first_session(hub) is None
