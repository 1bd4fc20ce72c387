"""Our column with the disk too: a session in a hub, recorded in SQLite, read as it is stored."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from bench.clients.gauge import Gauge
from dragoman import AgentCommand, Client
from dragoman.agents.settings.project_settings import NO_TERMS, ProjectTerms
from dragoman.client.mcp import McpServer
from dragoman.events import AgentMessage, TurnEnded
from dragoman.hub.cluster import commands
from dragoman.hub.hub import Hub
from dragoman.session.facts import Offer, SystemPrompt
from dragoman.store.open import open_store
from dragoman.store.records import decode_events


class Launcher:
    def __init__(self, command: str, *args: str) -> None:
        self._agent = AgentCommand(command, args)

    def client(self, agent: str, cwd: str, offer: Offer) -> Client:
        return Client.start(self._agent, name=agent)

    def is_shared(self, agent: str) -> bool:
        return True

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        return []

    def system_prompt(self, agent: str | None, cwd: str) -> SystemPrompt | None:
        return None

    def of_project(self, agent: str, cwd: str) -> ProjectTerms:
        return NO_TERMS


async def main(directory: Path, launcher: Launcher) -> None:
    gauge = Gauge()
    store = await open_store(directory / "store")
    async with Hub(store, launcher) as hub:
        live = await hub.create("bench", str(directory))
        reading = asyncio.create_task(read(hub, live.id, gauge))
        gauge.start()
        await hub.send(live.id, commands.Prompt("go"))
        await reading
        gauge.stop()
    await store.aclose()


async def read(hub: Hub, session_id: str, gauge: Gauge) -> None:
    async for page in hub.watch(session_id):
        for event in decode_events(page):
            match event:
                case AgentMessage():
                    gauge.saw(len(event.text))
                case TurnEnded():
                    return
                case _:
                    pass


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(Path(directory), Launcher(*sys.argv[1:])))
