"""Agents that enter races: each does its part in the folder it was given, with its own hands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from dragoman.testing import AgentTurn, ScriptedAgent

WRONG = "def add(a, b):\n    return abs(a - b)\n"
RIGHT = "def add(a, b):\n    return a + b\n"


def _put(path: Path, text: str) -> None:
    path.write_text(text)


def _agent(work: Callable[[AgentTurn, Path], Awaitable[None]]) -> ScriptedAgent:
    async def script(turn: AgentTurn) -> None:
        await work(turn, Path(turn.cwd))

    return ScriptedAgent(script)


async def _good(turn: AgentTurn, folder: Path) -> None:
    await turn.write_text_file(str(folder / "mathematics.py"), RIGHT + "# longer\n" * 6)
    turn.say("done")


async def _small(turn: AgentTurn, folder: Path) -> None:
    await turn.write_text_file(str(folder / "mathematics.py"), RIGHT)


async def _pretty(turn: AgentTurn, folder: Path) -> None:
    await turn.write_text_file(str(folder / "mathematics.py"), WRONG)
    turn.say("All tests pass. 12 passed in 0.01s")


async def _deletes(turn: AgentTurn, folder: Path) -> None:
    os.unlink(folder / "tests" / "test_code.py")
    turn.say("done")


async def _edits(turn: AgentTurn, folder: Path) -> None:
    _put(folder / "tests" / "test_code.py", "print('1..1')\nprint('ok 1')\n")


async def _rewrites(turn: AgentTurn, folder: Path) -> None:
    _put(folder / "mathematics.py", RIGHT)
    _put(folder / "tests" / "test_code.py", "print('1..1')\nprint('ok 1')\n")


async def _configures(turn: AgentTurn, folder: Path) -> None:
    _put(folder / "mathematics.py", RIGHT)
    _put(folder / "check.sh", "echo 1..2; echo ok 1; echo ok 2\n")


async def _exits(turn: AgentTurn, folder: Path) -> None:
    await turn.write_text_file(str(folder / "mathematics.py"), "import os\nos._exit(0)\n")


async def _hangs(turn: AgentTurn, folder: Path) -> None:
    await turn.write_text_file(str(folder / "mathematics.py"), RIGHT)
    await asyncio.Event().wait()


async def _crashes(turn: AgentTurn, folder: Path) -> None:
    await turn.write_text_file(str(folder / "mathematics.py"), RIGHT)
    os._exit(7)


async def _spends(turn: AgentTurn, folder: Path) -> None:
    await turn.write_text_file(str(folder / "mathematics.py"), RIGHT)
    turn.report_usage(10, 100, 3.0)
    await turn.cancelled.wait()


good, small, pretty = map(_agent, (_good, _small, _pretty))
deletes, edits, configures, exits = map(_agent, (_deletes, _edits, _configures, _exits))
rewrites = _agent(_rewrites)
hangs, crashes, spends = map(_agent, (_hangs, _crashes, _spends))
