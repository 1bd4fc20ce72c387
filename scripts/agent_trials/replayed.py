"""A conversation with the real agent, recorded and played again: each time the same comes of it."""

from __future__ import annotations

import shutil
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from agent_trials.lab import LabAgent
from agent_trials.turns import run
from dragoman import Client
from dragoman.testing import Recorder, ReplayAgent

KINDS = ("say", "think", "write", "shell", "plan")


async def record(agent: LabAgent, env: dict[str, str], workspace: Path, path: Path) -> list[str]:
    """Have the agent do what it can, recorded at `path`; what came of it."""
    with Recorder(path) as tap:
        async with agent.client(env, tap=tap) as client:
            return await _conversation(client, agent, workspace)


async def replay(agent: LabAgent, workspace: Path, path: Path) -> list[str]:
    """The same with the recording instead of the agent."""
    async with Client.start(ReplayAgent(path).connect(), name=agent.name) as client:
        return await _conversation(client, agent, workspace)


async def _conversation(client: Client, agent: LabAgent, workspace: Path) -> list[str]:
    empty(workspace)
    session = await client.new_session(workspace)
    for kind in KINDS:
        if kind in agent.prompts:
            await run(session, agent.prompts[kind])
    return digest(msgspec.to_builtins(session.state.entries), workspace)


def empty(workspace: Path) -> None:
    for path in workspace.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def digest(entries: list[dict[str, Any]], *workspaces: Path) -> list[str]:
    """The entries without what is different each time: numbers, times, and where it was.

    Our own notices are left out too: they tell of files that the agent changed by itself while it
    waited for an answer, and a recording changes none.
    """
    told = [" ".join(_words(entry)) for entry in entries if entry.get("source") != "client"]
    for workspace in workspaces:
        told = [words.replace(str(workspace), "…") for words in told]
    return told


def _words(entry: dict[str, Any]) -> list[str]:
    pieces = [p if isinstance(p, str) else str(p.get("text")) for p in entry.get("pieces", [])]
    steps = [step["content"] for step in entry.get("steps", [])]
    told = [str(entry.get(key, "")) for key in ("type", "title", "status", "message")]
    return [*told, "".join(pieces), *steps]


def difference(live: list[str], played: list[str]) -> str:
    differing = [pair for pair in zip_longest(live, played) if pair[0] != pair[1]]
    return f"{differing[0][0]!r} became {differing[0][1]!r}"
