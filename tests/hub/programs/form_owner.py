"""Owns a session that waits for a form, and stands still once another process has asked for its
key: `form_owner.py FOLDER`. Prints `session ID` when the form is there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from one_agent import OneAgent

from dragoman import Client
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session.events import ElicitationRequested
from dragoman.store.open import open_store
from dragoman.testing import ScriptedAgent

FOLDER = Path(sys.argv[1])
AGENT = ScriptedAgent.command(
    f"{Path(__file__).with_name('agents.py')}:asks", env={"GOT": str(FOLDER / "got")}
)


def launched(name: str) -> Client:
    return Client.start(AGENT, name=name)


class StandsStill(Hub):
    """As soon as the other process has the key, and before it can send anything; not while the
    thread that writes has the database locked, or else nothing could be sent."""

    def stand_still(self) -> None:
        writer = vars(self.store)["_writer"]
        patience: Callable[[], float | None] = writer._patience
        stood = threading.Event()

        def waiting() -> float | None:
            if not stood.is_set():
                os.kill(os.getpid(), signal.SIGSTOP)
                stood.set()
            return patience()

        writer._patience = waiting
        stood.wait()

    async def _serve(self, session_id: str, command: c.Command) -> c.Reply:
        reply = await super()._serve(session_id, command)
        if isinstance(command, c.AskKey):
            settle = self.store.settle

            async def settled(*given: Any) -> None:
                await settle(*given)
                self.stand_still()

            self.store.settle = settled  # type: ignore[method-assign]
        return reply


async def main() -> None:
    store = await open_store(FOLDER / "data")
    async with StandsStill(store, OneAgent(launched)) as hub:
        live = await hub.create("asks", str(FOLDER))
        await hub.send(live.id, c.Prompt("CANARY-OF-THE-PROMPT"))
        async for page in hub.watch(live.id):
            if any(isinstance(each.decode(), ElicitationRequested) for each in page):
                sys.stdout.write(f"session {live.id}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
