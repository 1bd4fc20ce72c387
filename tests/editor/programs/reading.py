"""An agent that reads a file through its client, and writes another."""

from __future__ import annotations

from dragoman.testing import AgentTurn, ScriptedAgent


async def script(turn: AgentTurn) -> None:
    turn.say(await turn.read_text_file(f"{turn.cwd}/notes.txt"))
    await turn.write_text_file(f"{turn.cwd}/new.txt", "new")


reading = ScriptedAgent(script)
