"""`kill -9` of whatever is between an editor and its agent: the next load has every update once."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from os import environ, kill
from pathlib import Path

import msgspec
import pytest
from support.clients import until
from support.peers import soon

from dragoman import AgentCommand, Client, Session
from dragoman.errors import DragomanError
from dragoman.session.state import AgentEntry
from dragoman.testing import ScriptedAgent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

PROGRAMS = Path(__file__).parent / "programs"


def settings(folder: Path) -> dict[str, str]:
    """The environment of a user whose only agent counts."""
    env = {"STORE": str(folder / "agent")}
    command = ScriptedAgent.command(f"{PROGRAMS}/counting.py:counting", env=env)
    entry = {"command": command.command, "args": list(command.args), "env": dict(command.env)}
    path = folder / "settings.json"
    path.write_bytes(msgspec.json.encode({"agent_servers": {"counting": entry}}))
    return {"DRAGOMAN_HOME": str(folder / "home"), "DRAGOMAN_SETTINGS": str(path)}


@asynccontextmanager
async def editor(env: dict[str, str]) -> AsyncGenerator[Client]:
    """An editor with a `dragoman acp` of its own."""
    command = AgentCommand(
        sys.executable, ("-m", "dragoman", "acp", "-a", "counting"), {**environ, **env}
    )
    async with Client.start(command) as client:
        yield client


def counted(session: Session) -> list[str]:
    texts = (entry.text for entry in session.state.entries if isinstance(entry, AgentEntry))
    return "".join(texts).split()


async def check(folder: Path, victim: str, after: int) -> None:
    """Kill the process that runs the session, or the one that only shows it, in a turn."""
    env = settings(folder)
    async with editor(env) as first, editor(env) as second:
        session = await first.new_session(folder)
        turn = session.prompt(str(after))
        await until(lambda: len(counted(session)) >= after)
        other = await soon(second.load_session(session.id, folder))
        await until(lambda: len(counted(other)) >= after)
        (folder / "go").touch()
        kill((first if victim == "owner" else second).pids[0], signal.SIGKILL)
        if victim == "owner":
            with pytest.raises(DragomanError):
                await soon(turn)
        else:
            await asyncio.wait_for(turn, 60)
        seen = max(len(counted(session)), len(counted(other)))
    async with editor(env) as third:
        again = await soon(third.load_session(session.id, folder))
        words = counted(again)
        assert words == [str(number) for number in range(1, len(words) + 1)]
        assert len(words) >= seen
        if victim == "window":
            assert len(words) == 300


@pytest.mark.parametrize("victim", ["owner", "window"])
async def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path, victim: str) -> None:
    await check(tmp_path, victim, 10)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
async def test_a_hundred_kills(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    await check(tmp_path, random_.choice(["owner", "window"]), random_.randrange(1, 150))
