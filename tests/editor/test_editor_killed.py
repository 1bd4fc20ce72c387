"""`kill -9` of whatever is between an editor and its agent: the next load has every update once."""

from __future__ import annotations

import asyncio
import random
import shlex
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from os import environ, kill
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec
import pytest
from support.clients import until
from support.peers import soon

from dragoman import AgentCommand, Client, RemoteAgent, Session, Turn
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


def words(*command: str) -> tuple[str, ...]:
    return ("-m", "dragoman", *command)


ACP = words("acp", "-a", "counting")


@asynccontextmanager
async def editor(env: dict[str, str]) -> AsyncGenerator[Client]:
    """An editor with a `dragoman acp` of its own."""
    async with Client.start(AgentCommand(sys.executable, ACP, {**environ, **env})) as client:
        yield client


class Server(NamedTuple):
    """`dragoman serve`, or a bridge; `address` is what it prints, with its token."""

    pid: int
    address: str


@asynccontextmanager
async def server(env: dict[str, str], *command: str) -> AsyncGenerator[Server]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *words(*command)),
        env={**environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        line = await soon(process.stdout.readline())
        yield Server(process.pid, line.decode().strip())
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def counted(session: Session) -> list[str]:
    texts = (entry.text for entry in session.state.entries if isinstance(entry, AgentEntry))
    return "".join(texts).split()


async def check(folder: Path, victim: str, after: int) -> None:
    """Kill what is between an editor and its agent, in a turn, and load the session again."""
    env = settings(folder)
    seen = await VICTIMS[victim](env, folder, after)
    async with editor(env) as another:
        again = await soon(another.load_session(seen.id, folder))
        found = counted(again)
        assert found == [str(number) for number in range(1, len(found) + 1)]
        assert len(found) >= seen.words
        if victim == "window":
            assert len(found) == 300


class Seen(NamedTuple):
    """The session, and how many words of it an editor has seen."""

    id: str
    words: int


async def cut(pid: int, session: Session, turn: Turn, folder: Path, after: int) -> None:
    """Kill what serves this turn once so many words were seen: it ends, and says so."""
    await until(lambda: len(counted(session)) >= after)
    (folder / "go").touch()
    kill(pid, signal.SIGKILL)
    with pytest.raises(DragomanError):
        await soon(turn)


async def kill_owner(env: dict[str, str], folder: Path, after: int) -> Seen:
    """The process that runs the session, which another editor watches."""
    async with editor(env) as first, editor(env) as second:
        session = await first.new_session(folder)
        turn = session.prompt(str(after))
        await until(lambda: counted(session))
        other = await soon(second.load_session(session.id, folder))
        await cut(first.pids[0], session, turn, folder, after)
        return Seen(session.id, max(len(counted(session)), len(counted(other))))


async def kill_window(env: dict[str, str], folder: Path, after: int) -> Seen:
    """A process that only shows the session: its turn continues."""
    async with editor(env) as first, editor(env) as second:
        session = await first.new_session(folder)
        turn = session.prompt(str(after))
        await until(lambda: counted(session))
        other = await soon(second.load_session(session.id, folder))
        await until(lambda: len(counted(other)) >= after)
        (folder / "go").touch()
        kill(second.pids[0], signal.SIGKILL)
        await asyncio.wait_for(turn, 60)
        return Seen(session.id, len(counted(session)))


async def kill_hub(env: dict[str, str], folder: Path, after: int) -> Seen:
    """The server that runs a session for an editor."""
    async with server(env, "serve", "--port", "0") as serving, editor(env) as first:
        origin, _, token = serving.address.partition("/#token=")
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=origin, headers=headers, timeout=60) as page:
            made = await page.post("/api/sessions", json={"agent": "counting", "cwd": str(folder)})
        session = await soon(first.load_session(made.json()["id"], folder))
        turn = session.prompt(str(after))
        await cut(serving.pid, session, turn, folder, after)
        return Seen(session.id, len(counted(session)))


async def kill_bridge(env: dict[str, str], folder: Path, after: int) -> Seen:
    """The bridge between an editor and `dragoman acp`, over a WebSocket."""
    command = shlex.join([sys.executable, *ACP])
    async with server(env, "bridge", "--agent-command", command) as bridge:
        away = RemoteAgent(bridge.address, files="here")
        async with Client.start(away) as first:
            session = await first.new_session(folder)
            turn = session.prompt(str(after))
            await cut(bridge.pid, session, turn, folder, after)
            return Seen(session.id, len(counted(session)))


VICTIMS = {
    "owner": kill_owner,
    "window": kill_window,
    "hub": kill_hub,
    "bridge": kill_bridge,
}


@pytest.mark.parametrize("victim", VICTIMS)
async def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path, victim: str) -> None:
    await check(tmp_path, victim, 10)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("victim", ["owner", "hub", "bridge"])
async def test_a_hundred_kills_of_each(tmp_path: Path, victim: str, seed: int) -> None:
    await check(tmp_path, victim, random.Random(seed).randrange(1, 150))
