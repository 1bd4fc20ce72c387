"""Version 2 with agents of others: the examples of the official SDKs."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.clients import gathered, started
from support.examples_of_sdks import python_example, typescript_example
from support.peers import tidy_loop
from support.v2_agent import Judge

from dragoman import AgentCommand, Client
from dragoman.session import events as e
from dragoman.testing import ScriptedAgent


def dual_agent() -> AgentCommand:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run the TypeScript SDK's example with")
    return AgentCommand(node, (str(typescript_example("dual-version-agent.js")),))


async def test_the_dual_agent_of_the_typescript_sdk_in_version_2(tmp_path: Path) -> None:
    judge = Judge()
    async with tidy_loop(), Client.start(dual_agent(), protocol=2, tap=judge) as client:
        assert (client.protocol_version, client.agent_info.name) == (2, "dual-version-example")
        session = await client.new_session(tmp_path)
        events = await gathered(session.prompt("Hello"))
        assert [type(event) for event in events] == [e.TurnStarted, e.AgentMessage, e.TurnEnded]
        turn = session.prompt("Once more")
        await asyncio.sleep(0)
        await session.cancel()
        assert turn.stop_reason == "cancelled"
        loaded = await client.load_session(session.id, tmp_path)
        assert [entry.text for entry in loaded.state.entries] == [
            "Hello",
            "Hello from the v2 implementation.",
            *(["Once more"] if len(loaded.state.entries) > 2 else []),
        ]
        assert [info.id async for info in client.list_sessions(tmp_path)] == [session.id]
        await loaded.close()
    assert judge.wrong == []


async def test_the_dual_agent_of_the_typescript_sdk_in_version_1(tmp_path: Path) -> None:
    async with tidy_loop(), Client.start(dual_agent()) as client:
        session = await client.new_session(tmp_path)
        events = await gathered(session.prompt("Hello"))
        assert events[1].text == "Hello from the v1 implementation."


async def test_the_echo_agent_of_the_python_sdk_repeats_2_and_speaks_1(tmp_path: Path) -> None:
    command = AgentCommand(sys.executable, (str(python_example("echo_agent.py")),))
    async with tidy_loop(), Client.start(command, protocol=2) as client:
        assert client.protocol_version == 1
        session = await client.new_session(tmp_path)
        turn = session.prompt("Hello")
        events = await gathered(turn)
        assert turn.stop_reason == "end_turn"
        assert "Hello" in [event.text for event in events if isinstance(event, e.AgentMessage)]


@pytest.mark.skipif(not os.environ.get("DRAGOMAN_LAB"), reason="DRAGOMAN_LAB names no laboratory")
def test_the_labs_agent_of_both_versions_completes_a_turn() -> None:
    lab = Path(os.environ["DRAGOMAN_LAB"]) / "lab"
    line = (
        f'{sys.executable} -m dragoman --settings "$LAB_SETTINGS" -a ts-v2 --cwd "$LAB_CWD" '
        "--no-store --protocol 2 -o simple hello"
    )
    done = subprocess.run(
        [str(lab), "run", "ts-v2", "--", "sh", "-c", line],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if "not installed" in done.stderr:
        pytest.skip("the lab has no ts-v2 installed")
    assert (done.returncode, done.stdout.strip()) == (0, "Hello from the v2 implementation.")


async def test_an_agent_may_speak_the_first_version_alone(tmp_path: Path) -> None:
    agent = ScriptedAgent(protocol_versions=(1,))
    async with started(agent, protocol=2) as client:
        assert client.protocol_version == 1
