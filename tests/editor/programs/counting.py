"""An agent that counts, and remembers its sessions when it is started again."""

from __future__ import annotations

import asyncio
import os
import time

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.demo.demo_agent import StoredSessions


def _wait_for(file: str) -> None:
    while not os.path.exists(file):
        time.sleep(0.01)


async def _count(turn: AgentTurn) -> None:
    """Up to the number in the prompt, and further once the file `go` is there."""
    for number in range(1, 301):
        turn.say(f"{number} ")
        if number == int(turn.text):
            await asyncio.to_thread(_wait_for, f"{turn.cwd}/go")
        await asyncio.sleep(0.005)


def counting() -> ScriptedAgent:
    os.makedirs(os.environ["STORE"], exist_ok=True)
    return ScriptedAgent(_count, sessions=StoredSessions(os.environ["STORE"]))
