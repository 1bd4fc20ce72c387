"""A host for one session that is parked: `parked_host.py FOLDER STORE [begin]`.

With `begin` it makes the session and has its agent report a limit; then, and without it at once, it
prints `session ID`. It takes up what is parked, as every host does, until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from one_agent import OneAgent

from dragoman import Client
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.host_service import Presence
from dragoman.hub.hub import Hub
from dragoman.hub.hub_limits import HubLimits
from dragoman.session.events import TurnLimited
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.postgres.store import open_postgres
from dragoman.testing import ScriptedAgent

FOLDER, STORE = Path(sys.argv[1]), sys.argv[2]
AGENT = ScriptedAgent.command(
    f"{Path(__file__).with_name('agents.py')}:limited",
    env={"STORE": str(FOLDER / "agent"), "PROMPTS": str(FOLDER / "prompts.txt")},
)


def launched(name: str) -> Client:
    return Client.start(AGENT, name=name, on_limit="park")


async def main() -> None:
    is_shared = "://" in STORE
    place = FOLDER / "home"
    store: Store = await (open_postgres(STORE, place) if is_shared else open_store(Path(STORE)))
    # All of these processes are on one machine, which has one home.
    async with Hub(
        store,
        OneAgent(launched),
        home="machine" if is_shared else None,
        snapshots=Snapshots(FOLDER / "snapshots"),
        limits=HubLimits(parked_seconds=0.05),
    ) as hub:
        await hub.be_host(Presence(name="it", agents=lambda: ["limited"], renamed=True))
        session_id = "-"
        if sys.argv[3:] == ["begin"]:
            work = FOLDER / "work"
            work.mkdir()
            live = await hub.create("limited", str(work))
            session_id = live.id
            await hub.send(live.id, c.Prompt("fix it"))
            async for page in hub.watch(live.id):
                if any(isinstance(each.decode(), TurnLimited) for each in page):
                    break
        sys.stdout.write(f"session {session_id}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
