"""Ready-made steps: `ScriptedAgent([think("hm"), say("hello"), write_file("/x/a.txt", "A")])`.

What an agent can do wrong is in `faults`. For anything that depends on what the client answers,
write the script as an async function of the turn instead.
"""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.testing.scripted_turn import AgentTurn, Step


def say(text: str) -> Step:
    return lambda turn: turn.say(text)


def think(text: str) -> Step:
    return lambda turn: turn.think(text)


def plan(*steps: tuple[str, str]) -> Step:
    """Each step is its text and its status."""
    return lambda turn: turn.plan(*steps)


def tool_call(tool_call_id: str, title: str, **fields: Any) -> Step:
    return lambda turn: turn.tool_call(tool_call_id, title, **fields)


def tool_call_update(tool_call_id: str, **fields: Any) -> Step:
    return lambda turn: turn.tool_call_update(tool_call_id, **fields)


def usage(used: int, size: int, cost: float | None = None) -> Step:
    return lambda turn: turn.report_usage(used, size, cost)


def update(wire: Any) -> Step:
    """Any update, as a v1 struct or as a dict."""
    return lambda turn: turn.update(wire)


def read_file(path: str) -> Step:
    """Read a file through the client and say what is in it."""

    async def step(turn: AgentTurn) -> None:
        turn.say(await turn.read_text_file(path))

    return step


def write_file(path: str, content: str) -> Step:
    """Write a file through the client, without asking first."""
    return lambda turn: turn.write_text_file(path, content)


def ask(tool_call_id: str, **fields: Any) -> Step:
    """Ask for permission, and say which option was chosen."""

    async def step(turn: AgentTurn) -> None:
        turn.say(str(await turn.request_permission(tool_call_id, **fields)))

    return step


def run(command: str, *args: str) -> Step:
    """Run a command in a terminal of the client, and say what it printed."""

    async def step(turn: AgentTurn) -> None:
        terminal_id = await turn.create_terminal(command, *args)
        await turn.terminal("wait_for_exit", terminal_id)
        turn.say((await turn.terminal("output", terminal_id))["output"])
        await turn.terminal("release", terminal_id)

    return step


def pause(seconds: float) -> Step:
    """Do nothing for a while, or until the client cancels."""

    async def step(turn: AgentTurn) -> None:
        await turn.until_cancelled(asyncio.sleep(seconds))

    return step


def stop(reason: str) -> Step:
    """End the turn with this reason; steps behind it still run."""

    def step(turn: AgentTurn) -> None:
        turn.stop_reason = reason

    return step


def fail(error: Exception) -> Step:
    """Answer the prompt with this error."""

    def step(turn: AgentTurn) -> None:
        raise error

    return step


def wait_for_cancel() -> Step:
    """Stay busy until the client cancels."""

    async def step(turn: AgentTurn) -> None:
        await turn.cancelled.wait()

    return step
