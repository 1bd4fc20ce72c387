"""A hub notes what agents say of their sign-in, for lists of agents."""

from __future__ import annotations

from pathlib import Path

from support.clients import until
from support.hubs import TestLauncher, stored
from support.raw_agent import RawAgent

from dragoman import AuthStatus
from dragoman.agents.listing import list_agents
from dragoman.agents.settings.settings_file import AgentSettings, Settings
from dragoman.agents.sign_ins import SignInNotes
from dragoman.hub.hub import Hub
from dragoman.transport.stdio import AgentCommand


async def test_an_agent_is_asked_as_soon_as_it_runs_and_may_say_more_later(
    tmp_path: Path,
) -> None:
    notes = SignInNotes(tmp_path / "sign_ins.json")
    agent = RawAgent({"auth": {"status": {}}}, auth__status={"state": "unauthenticated"})
    settings = Settings(agents={"it": AgentSettings(name="it", command=AgentCommand("it"))})

    def listed() -> bool | None:
        return list_agents(settings, notes)[0].signed_in

    assert listed() is None
    launcher = TestLauncher({"it": agent})
    async with stored(tmp_path) as store, Hub(store, launcher, sign_ins=notes) as hub:
        await hub.create("it", str(tmp_path))
        await until(lambda: listed() is False)
        told = {"state": "authenticated", "accounts": [{"label": "Ada"}]}
        agent.send({"method": "auth/status_update", "params": told})
        await until(lambda: listed() is True)
    assert notes.all()["it"].status == AuthStatus("authenticated", "Ada")
