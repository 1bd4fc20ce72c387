"""An agent that never asks: it writes where its prompt says, and says what came of it."""

from __future__ import annotations

from pathlib import Path

from dragoman.testing import AgentTurn, ScriptedAgent


async def writes(turn: AgentTurn) -> None:
    for path in turn.text.split():
        turn.say(f"{Path(path).name}: {_written(path)}\n")


def _written(path: str) -> str:
    try:
        Path(path).write_text("written by itself\n")
    except OSError as error:
        return error.strerror or "refused"
    return "written"


writer = ScriptedAgent(writes)
