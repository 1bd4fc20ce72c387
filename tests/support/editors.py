"""Editors of a hub: our own client at the other end of Dragoman as an agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from support.hubs import Agent, TestLauncher, stored

from dragoman import Client
from dragoman.client.mcp import McpServer
from dragoman.editor.acp_agent import EditorConnection
from dragoman.editor.editor_launcher import EditorPlace, start_served
from dragoman.editor.open_editors import Editors
from dragoman.hub.hub import Hub
from dragoman.transport.memory import memory_pair
from dragoman.transport.transport import Transport


class TestAgents(TestLauncher):
    """The agents of an editor's hub; the first is the one for sessions that name none."""

    __test__ = False

    def __init__(self, agents: Mapping[str, Agent], **options: Any) -> None:
        super().__init__(agents, **options)
        self.places: dict[str, EditorPlace] = {}
        self.editors = Editors()
        self._names = list(agents)

    def start(self, reached: Any, **options: Any) -> Client:
        return start_served(reached, self.editors, **options)

    def default_in(self, cwd: str) -> str:
        return self._names[0]

    def usable(self) -> list[str]:
        return self._names

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        place = self.places.get(session_id)
        return [] if place is None else list(place.mcp_servers)


class Office:
    """A hub with agents, and any number of editors on it."""

    def __init__(self, hub: Hub, agents: TestAgents) -> None:
        self.hub = hub
        self.agents = agents

    async def _hub(self) -> Hub:
        return self.hub

    @asynccontextmanager
    async def connection(self, **options: Any) -> AsyncGenerator[Transport]:
        """The transport of an editor, connected to Dragoman as its agent."""
        ours, theirs = memory_pair()
        agents = self.agents
        async with EditorConnection(
            ours, self._hub, agents, agents.places, agents.editors, **options
        ):
            yield theirs

    @asynccontextmanager
    async def editor(
        self, options: Mapping[str, Any] | None = None, **editor: Any
    ) -> AsyncGenerator[Client]:
        """An editor; `options` are those of `dragoman acp`, the others of the client."""
        async with (
            self.connection(**(options or {})) as transport,
            Client.start(transport, name="dragoman", questions="wait", **editor) as client,
        ):
            yield client


@asynccontextmanager
async def office(folder: Path, agent: Agent, **options: Any) -> AsyncGenerator[Office]:
    """A hub with one agent, "it"."""
    async with offices(folder, [{"it": agent}], **options) as [only]:
        yield only


@asynccontextmanager
async def offices(
    folder: Path, agents: Sequence[Mapping[str, Agent]], **options: Any
) -> AsyncGenerator[list[Office]]:
    """Several hubs on one store, each with connections of its own, as several processes have."""
    async with AsyncExitStack() as stack:
        found: list[Office] = []
        for each in agents:
            store = await stack.enter_async_context(stored(folder))
            launcher = TestAgents(each, **options)
            hub = await stack.enter_async_context(Hub(store, launcher))
            found.append(Office(hub, launcher))
        yield found
