"""Three agents of a flow: each answers with the JSON that its prompt asks for, and notes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.errors import RemoteError
from dragoman.testing import AgentTurn, ScriptedAgent


def _noted(turn: AgentTurn, who: str) -> int:
    """How often this agent was asked."""
    log = Path(turn.cwd, "asked.txt")
    lines = [*(log.read_text().split() if log.exists() else ()), who]
    log.write_text("\n".join(lines))
    return lines.count(who)


def _answer(turn: AgentTurn, value: Any) -> None:
    turn.say(f"```json\n{json.dumps(value)}\n```")


async def plan(turn: AgentTurn) -> None:
    _noted(turn, "planner")
    _answer(turn, {"steps": ["write hello.txt"]})


async def code(turn: AgentTurn) -> None:
    if _noted(turn, "coder") == 1:
        raise RemoteError("it has no credits")
    await turn.write_text_file(f"{turn.cwd}/hello.txt", turn.text.split("\n\n")[0])
    _answer(turn, {"summary": "wrote it"})


async def review(turn: AgentTurn) -> None:
    times = _noted(turn, "reviewer")
    findings = [] if times > 1 else ["write it better"]
    _answer(turn, {"good": times > 1, "findings": findings})


async def solve(turn: AgentTurn) -> None:
    if "nothing" in turn.text:
        _answer(turn, {"fixed": False, "message": "there is nothing to do"})
        return
    await turn.write_text_file(f"{turn.cwd}/fixed.txt", "fixed")
    _answer(turn, {"fixed": True, "message": "Fix the parser\n\nIt was wrong."})


planner, coder, reviewer = ScriptedAgent(plan), ScriptedAgent(code), ScriptedAgent(review)
solver = ScriptedAgent(solve)
