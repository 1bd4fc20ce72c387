"""Agents for servers that run in a process of their own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

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


async def _floods(turn: AgentTurn) -> None:
    """`text MEGABYTES`, `tools COUNT` or `terminal MEGABYTES`: says, does or prints so much."""
    what, told = turn.text.split()
    count = int(told)
    if what == "terminal":
        line = f"yes {_FLOOD.strip()} | head -c {count * 1_000_000}"
        terminal_id = await turn.create_terminal("sh", "-c", line)
        await turn.terminal("wait_for_exit", terminal_id)
    for number in range(count * 1_000_000 // len(_FLOOD) if what == "text" else 0):
        turn.say(_FLOOD)
        if number % 100 == 0:
            await turn.drain()
    for number in range(count if what == "tools" else 0):
        title = f"Change file {number} of many"
        turn.tool_call(f"call-{number}", title, kind="edit", status="completed")
        if number % 100 == 0:
            await turn.drain()


steady = ScriptedAgent(_steadily, name="steady")
endless = ScriptedAgent(_endlessly, name="endless")
waiting = ScriptedAgent(_waiting, name="waiting")
until_told = ScriptedAgent(_until_told, name="until_told")
crowding = ScriptedAgent(_crowding, name="crowding")
floods = ScriptedAgent(_floods, name="floods")
