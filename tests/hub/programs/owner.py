"""Owns a session and runs turn after turn until it is killed: `owner.py FOLDER`.

Prints a line for each event as a reader sees it: `seen SEQ`; and before that `session ID`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from one_agent import OneAgent

from dragoman import Client, Policy
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.store.open import open_store
from dragoman.testing import ScriptedAgent

FOLDER = Path(sys.argv[1])
AGENT = ScriptedAgent.command(
    f"{Path(__file__).with_name('agents.py')}:busy", env={"STORE": str(FOLDER / "agent")}
)


def launched(name: str) -> Client:
    return Client.start(AGENT, name=name, policy=Policy(yolo=True))


async def main() -> None:
    store = await open_store(FOLDER / "store")
    async with Hub(store, OneAgent(launched)) as hub:
        live = await hub.create("busy", str(FOLDER))
        say(f"session {live.id}")
        for number in range(15):
            await hub.send(live.id, c.Prompt(f"turn {number}"))
        async for page in hub.watch(live.id):
            for event in page:
                say(f"seen {event.seq}")


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
