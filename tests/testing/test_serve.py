"""A scripted agent as a process: frames alone on its output, and ends as it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from support.peers import soon, tidy_loop

from dragoman import AgentCommand, Client, Session
from dragoman.errors import AgentExited, PeerStalled
from dragoman.rpc import Peer, PeerLimits
from dragoman.session import events as e
from dragoman.testing import ScriptedAgent
from dragoman.testing.serve import find_agent
from dragoman.transport.stdio import StdioTransport

AGENTS = Path(__file__).parent / "programs" / "agents.py"
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
SECONDS = 60


def command(name: str) -> AgentCommand:
    return ScriptedAgent.command(f"{AGENTS}:{name}")


def run(name: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
    agent = command(name)
    argv = [agent.command, *agent.args]
    return subprocess.run(argv, input=data, capture_output=True, timeout=SECONDS, check=False)


@asynccontextmanager
async def session_with(name: str, cwd: Path) -> AsyncGenerator[Session]:
    async with tidy_loop(), Client.start(command(name)) as client:
        yield await client.new_session(cwd)


async def said(session: Session) -> list[str]:
    turn = session.prompt("go")
    return [event.text async for event in turn if isinstance(event, e.AgentMessage)]


# ── standard input and output ─────────────────────────────────────────────────────────────────


def test_it_ends_quietly_with_its_input() -> None:
    done = run("polite", INITIALIZE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert msgspec.json.decode(done.stdout)["result"]["protocolVersion"] == 1


def test_it_ends_quietly_when_nothing_was_asked() -> None:
    done = run("polite", b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_its_input_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(INITIALIZE)
    agent = command("polite")
    with path.open("rb") as requests:
        argv = [agent.command, *agent.args]
        out = subprocess.run(
            argv, stdin=requests, capture_output=True, timeout=SECONDS, check=True
        ).stdout
    assert msgspec.json.decode(out)["id"] == 0


def test_what_a_script_prints_is_no_frame() -> None:
    new = b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
    prompt = (
        b'{"jsonrpc":"2.0","id":2,"method":"session/prompt",'
        b'"params":{"sessionId":"session-1","prompt":[]}}\n'
    )
    agent = command("polite")
    argv = [agent.command, *agent.args]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE + new + prompt)
        process.stdin.flush()
        frames = [msgspec.json.decode(process.stdout.readline()) for _ in range(4)]
        _, errors = process.communicate(timeout=SECONDS)
    assert [frame.get("id", frame.get("method")) for frame in frames] == [0, 1, "session/update", 2]
    assert errors == b"this is no frame\n"


async def test_a_function_can_make_the_agent(tmp_path: Path) -> None:
    async with session_with("made", tmp_path) as session:
        assert await said(session) == ["made to order"]


async def test_a_module_can_hold_the_agent(tmp_path: Path) -> None:
    (tmp_path / "my_agents.py").write_bytes(AGENTS.read_bytes())
    agent = ScriptedAgent.command("my_agents:polite", env={"PYTHONPATH": str(tmp_path)})
    async with tidy_loop(), Client.start(agent) as client:
        assert await said(await client.new_session(tmp_path)) == ["hello"]


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("nothing", ValueError),
        ("no.such.module:agent", ImportError),
        ("dragoman.testing:no_such_agent", AttributeError),
    ],
)
def test_a_target_that_is_not_there_is_an_error(target: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        find_agent(target)


def test_without_a_target_it_says_how_it_is_used() -> None:
    argv = [sys.executable, "-m", "dragoman.testing.serve"]
    done = subprocess.run(argv, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert b"usage" in done.stderr


# ── faults ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "code"), [("crashing", 7), ("half", 8), ("asking", 9)])
async def test_a_crash_exits_at_once_with_its_code(name: str, code: int, tmp_path: Path) -> None:
    async with session_with(name, tmp_path) as session:
        with pytest.raises(AgentExited) as ended:
            await session.prompt("go")
        assert ended.value.code == code
        heard = [entry.text for entry in session.state.entries]
        assert name == "asking" or "last words" in heard


async def test_a_banner_is_passed_over(tmp_path: Path) -> None:
    async with session_with("bannered", tmp_path) as session:
        assert await said(session) == ["hello"]


async def test_a_flood_of_complaints_holds_nobody_up(tmp_path: Path) -> None:
    async with session_with("complaining", tmp_path) as session:
        assert await soon(said(session)) == ["hello"]


async def test_a_cancel_reaches_the_process(tmp_path: Path) -> None:
    async with session_with("cancellable", tmp_path) as session:
        turn = session.prompt("go")
        async for event in turn:
            if event.text == "started":
                await soon(session.cancel())
        assert turn.stop_reason == "cancelled"


async def test_an_agent_that_stops_reading_is_given_up() -> None:
    limits = PeerLimits(unsent_bytes=2 << 20)
    async with talking_to("deaf", limits) as (peer, transport, prompting):
        peer.notify("_x/lots", b'"%b"' % (b"x" * (1 << 20)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(transport.drain(), 0.3)
        peer.notify("_x/lots", b'"%b"' % (b"x" * (2 << 20)))
        with pytest.raises(PeerStalled):
            await soon(prompting)
        await transport.aclose(exit_within=0.1)


async def test_an_agent_that_will_not_end_is_killed() -> None:
    async with talking_to("stubborn") as (peer, transport, prompting):
        os.kill(transport.pid, signal.SIGTERM)
        assert await soon(peer.call("session/list", b"{}"))
        await transport.aclose(exit_within=0.2, term_within=0.2)
        ended = transport._process.status  # pyright: ignore[reportPrivateUsage]
        assert ended is not None
        assert ended.signal == "SIGKILL"
        with pytest.raises(ProcessLookupError):
            os.kill(transport.pid, 0)
        prompting.cancel()


@asynccontextmanager
async def talking_to(
    name: str, limits: PeerLimits | None = None
) -> AsyncGenerator[tuple[Peer, StdioTransport, asyncio.Future[msgspec.Raw]]]:
    """In the middle of a turn, after the agent's first word."""
    spoke = asyncio.Event()
    transport = await StdioTransport.start(command(name))
    peer = Peer(
        transport,
        on_notification=lambda method, params: spoke.set(),
        on_request=lambda method, params: b"{}",
        limits=limits,
    )
    async with peer:
        await peer.call("session/new", b'{"cwd":"/","mcpServers":[]}', timeout=SECONDS)
        prompt = b'{"sessionId":"session-1","prompt":[]}'
        prompting = asyncio.ensure_future(peer.call("session/prompt", prompt))
        await soon(spoke.wait())
        yield peer, transport, prompting
