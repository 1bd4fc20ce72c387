"""Agents that run as processes of their own, for the tests of the page."""

from __future__ import annotations

import asyncio

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.faults import ignore_cancel

_FORM = {
    "type": "object",
    "required": ["colour"],
    "properties": {
        "colour": {"type": "string", "title": "Colour", "enum": ["red", "green"]},
        "count": {"type": "integer", "title": "How many"},
        "sure": {"type": "boolean", "title": "Are you sure"},
    },
}


async def _asks(turn: AgentTurn) -> None:
    reply = await turn.elicit("Which colour?", _FORM)
    turn.say(f"{reply['action']}: {reply.get('content')}")


def asks() -> ScriptedAgent:
    """Has a form for every prompt, and says what was filled in."""
    return ScriptedAgent(_asks)


def stubborn() -> ScriptedAgent:
    """Does not stop when it is asked to."""
    return ScriptedAgent([ignore_cancel(600)])


async def _runs(turn: AgentTurn) -> None:
    script = "for n in 1 2 3 4 5 6; do echo line $n; sleep 0.2; done; exit 3"
    terminal = await turn.create_terminal("sh", "-c", script)
    content = [{"type": "terminal", "terminalId": terminal}]
    turn.tool_call("run", "Count to six", kind="execute", status="in_progress", content=content)
    await turn.terminal("wait_for_exit", terminal)
    turn.tool_call_update("run", status="failed")
    await turn.terminal("release", terminal)


def runs() -> ScriptedAgent:
    """Has a command run that takes its time and fails."""
    return ScriptedAgent(_runs)


async def _streams(turn: AgentTurn) -> None:
    for word in range(400):
        turn.say(f"word{word} " + ("\n\n" if word % 40 == 39 else ""))
        await asyncio.sleep(0.005)


def streams() -> ScriptedAgent:
    """Answers at length, a word at a time."""
    return ScriptedAgent(_streams)
