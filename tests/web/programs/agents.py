"""Agents for servers that run in a process of their own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from dragoman.errors import RemoteError
from dragoman.testing import AgentTurn, ScriptedAgent


async def _steadily(turn: AgentTurn) -> None:
    """`COUNT RATE`: so many words, so many of them a second."""
    count, rate = map(int, turn.text.split())
    started = time.monotonic()
    for number in range(count):
        turn.say(f"w{number} ")
        if number % 20 == 0:
            await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))


async def _endlessly(turn: AgentTurn) -> None:
    """Talks until it is stopped."""
    number = 0
    while not turn.cancelled.is_set():
        turn.say(f"w{number} ")
        number += 1
        await asyncio.sleep(0.002)


async def _waiting(turn: AgentTurn) -> None:
    """Starts a command that never ends, and waits for it."""
    terminal_id = await turn.create_terminal("sleep", "1000")
    turn.say("it runs")
    await turn.until_cancelled(_exit_of(turn, terminal_id))


async def _exit_of(turn: AgentTurn, terminal_id: str) -> None:
    await turn.terminal("wait_for_exit", terminal_id)


async def _until_told(turn: AgentTurn) -> None:
    """Talks until there is a file of the name it was told."""
    told = Path(turn.text).exists
    while not told():
        turn.say("still ")
        await asyncio.sleep(0.05)


async def _crowding(turn: AgentTurn) -> None:
    """Starts commands that never end until it is refused one, says why, and waits."""
    terminal_id = await turn.create_terminal("sleep", "1000")
    try:
        while True:
            await turn.create_terminal("sleep", "1000")
    except RemoteError as error:
        turn.say(str(error))
    await turn.until_cancelled(_exit_of(turn, terminal_id))


_FLOOD = "lorem ipsum dolor sit amet " * 40
_SAID = {"text": _FLOOD, "wide": "\U0001f600" * 1000, "escaped": "\1" * 1000}
_UNKNOWN = {"sessionUpdate": "unheard_of", "said": _FLOOD}
_MEGABYTE = 1_000_000


async def _floods(turn: AgentTurn) -> None:
    """`terminal`, `text`, `wide`, `escaped`, `calls` or `unknown` and how many megabytes to say;
    `tools`, `plans` or `messages` and how many."""
    what, told = turn.text.split()
    count = int(told)
    if what == "terminal":
        line = f"yes {_FLOOD.strip()} | head -c {count * _MEGABYTE}"
        terminal_id = await turn.create_terminal("sh", "-c", line)
        await turn.terminal("wait_for_exit", terminal_id)
        return
    if what not in ("tools", "plans", "messages"):
        count = count * _MEGABYTE // len(_SAID.get(what, _FLOOD).encode())
    for number in range(count):
        _say_one(turn, what, number)
        if number % 100 == 0:
            await turn.drain()


def _say_one(turn: AgentTurn, what: str, number: int) -> None:
    match what:
        case "text":
            turn.say(_FLOOD)
        case "tools":
            title = f"Change file {number} of many"
            turn.tool_call(f"call-{number}", title, kind="edit", status="completed")
        case "calls":
            content = [{"type": "content", "content": {"type": "text", "text": _FLOOD}}]
            _tell(turn, sessionUpdate="tool_call_update", toolCallId=f"c{number}", content=content)
        case "plans":
            step = {"content": f"step {number}", "priority": "high", "status": "pending"}
            plan = {"type": "items", "planId": f"p{number}", "entries": [step]}
            _tell(turn, sessionUpdate="plan_update", plan=plan)
        case "messages":
            content = [{"type": "text", "text": f"message {number} of another session"}]
            _tell(turn, sessionUpdate="session_message", messageId=f"m{number}", content=content)
        case "unknown":
            _tell(turn, **_UNKNOWN)
        case _:
            # Many messages: a single one would be cut.
            turn.say(_SAID[what], f"m{number // 100}")


def _tell(turn: AgentTurn, **update: Any) -> None:
    """Word for word, and without remembering it."""
    turn.update(update, keep=False)


steady = ScriptedAgent(_steadily, name="steady")
endless = ScriptedAgent(_endlessly, name="endless")
waiting = ScriptedAgent(_waiting, name="waiting")
until_told = ScriptedAgent(_until_told, name="until_told")
crowding = ScriptedAgent(_crowding, name="crowding")
floods = ScriptedAgent(_floods, name="floods")
