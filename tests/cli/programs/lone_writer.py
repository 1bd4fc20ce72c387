"""An agent that never asks: it writes where its prompt says, fetches the addresses in it, and says
what came of it."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from dragoman.testing import AgentTurn, ScriptedAgent


async def writes(turn: AgentTurn) -> None:
    for word in turn.text.split():
        if word.startswith("http://"):
            turn.say(f"{_fetched(word)}\n")
        else:
            turn.say(f"{Path(word).name}: {_written(word)}\n")


def _fetched(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}".strip()
    except OSError as error:
        return str(getattr(error, "reason", error))


def _written(path: str) -> str:
    try:
        Path(path).write_text("written by itself\n")
    except OSError as error:
        return error.strerror or "refused"
    return "written"


writer = ScriptedAgent(writes)
