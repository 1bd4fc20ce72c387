"""Says what it was asked; asked to wait, it waits to be cancelled."""

from __future__ import annotations

from dragoman.testing import AgentTurn, ScriptedAgent


async def echo(turn: AgentTurn) -> None:
    turn.say(f"heard {turn.text}")
    if turn.text == "wait":
        await turn.cancelled.wait()


agent = ScriptedAgent(echo)
