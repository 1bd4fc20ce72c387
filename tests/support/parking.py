"""Hubs whose agent reports a limit for its first prompt."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from support.clients import until
from support.hubs import TestLauncher

from dragoman.errors import RemoteError
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.host_service import Presence
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.facts import OnLimit
from dragoman.store.base import Store
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.scripted_agent import EVERYTHING


class Limited:
    """Reports a limit for its first prompt."""

    def __init__(
        self, when: str = "5 hours", capabilities: v1.AgentCapabilities = EVERYTHING
    ) -> None:
        self.prompts: list[str] = []
        self._when = when
        self.agent = ScriptedAgent(self, capabilities=capabilities)
        self.agents = {"it": self.agent, "other": ScriptedAgent(self)}

    async def __call__(self, turn: AgentTurn) -> None:
        self.prompts.append(turn.text)
        if len(self.prompts) == 1:
            raise RemoteError(f"Rate limit exceeded: try again in {self._when}")
        turn.say("done")


def hub_of(
    store: Store, agent: Limited, on_limit: OnLimit = "park", snapshots: Snapshots | None = None
) -> Hub:
    return Hub(store, TestLauncher(agent.agents, on_limit=on_limit), snapshots=snapshots)


@asynccontextmanager
async def host_on(
    store: Store, agent: Limited, on_limit: OnLimit = "park", snapshots: Snapshots | None = None
) -> AsyncGenerator[Hub]:
    """As `dragoman serve` is one."""
    async with hub_of(store, agent, on_limit, snapshots) as hub:
        await hub.be_host(Presence(name="it", agents=lambda: list(agent.agents)))
        yield hub


async def parked_in(hub: Hub, cwd: Path) -> RunningSession:
    live = await hub.create("it", str(cwd))
    await hub.send(live.id, c.Prompt("fix it"))
    await until(lambda: live.state.parked is not None and live.state.turn is None)
    await live.recording.settled()
    return live


async def events_of(store: Store, session_id: str) -> list[e.Event]:
    return [each.decode() for each in await store.events(session_id, limit=10_000)]
