"""An agent that remembers its sessions, and exits when it is told to."""

from __future__ import annotations

import os

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.demo.demo_agent import StoredSessions


async def _crash(turn: AgentTurn) -> None:
    turn.say("begun ")
    if turn.text == "go":
        await turn.drain()
        await turn.vanish()


def crashing() -> ScriptedAgent:
    os.makedirs(os.environ["STORE"], exist_ok=True)
    return ScriptedAgent(_crash, sessions=StoredSessions(os.environ["STORE"]))
