"""An agent under load: every prompt leaves a mark that can be counted, and asks once."""

from __future__ import annotations

import asyncio
import os

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.demo.demo_agent import StoredSessions


def _mark(text: str) -> None:
    with open(os.environ["MARKS"], "a", encoding="utf-8") as marks:
        marks.write(f"{text}\n")


async def _works(turn: AgentTurn) -> None:
    _mark(turn.text)
    await _talks(turn)
    turn.say(str(await turn.request_permission("call", title="Delete it", kind="delete")))
    await _talks(turn)


async def _talks(turn: AgentTurn) -> None:
    for number in range(30):
        turn.say(f"{number} ")
        await asyncio.sleep(0.02)


def loaded() -> ScriptedAgent:
    os.makedirs(os.environ["MEMORY"], exist_ok=True)
    return ScriptedAgent(_works, sessions=StoredSessions(os.environ["MEMORY"]))
