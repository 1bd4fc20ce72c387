"""The official SDKs as editors: their clients drive `dragoman acp` as they would any agent."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from support.bridges import TOKEN, bridged
from support.examples_of_sdks import python_example
from support.peers import tidy_loop
from support.typescript import node, printed

from dragoman.transport.stdio import AgentCommand, StdioTransport

SECONDS = 100
WORDS = ("-P", "-m", "dragoman", "acp", "-a", "demo")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))


def test_the_example_client_of_the_python_sdk_talks_through_it(tmp_path: Path) -> None:
    client = python_example("client.py")
    done = subprocess.run(
        [sys.executable, client, sys.executable, *WORDS],
        input="/plan\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    said = "".join(
        line.removeprefix("> ").removeprefix("| Agent: ") for line in done.stdout.splitlines()
    )
    assert "how I would go about" in said
    assert "ERROR" not in done.stderr


@pytest.mark.parametrize("way", ["ws", "http"])
async def test_the_client_of_the_typescript_sdk_talks_through_a_bridge(
    tmp_path: Path, way: str
) -> None:
    command = AgentCommand(sys.executable, WORDS)
    async with tidy_loop(), bridged(partial(StdioTransport.start, command)) as web:
        url = f"{way}://127.0.0.1:{web.port}/acp"
        async with node("client.mjs", way, url, TOKEN, str(tmp_path)) as client:
            told = await printed(client)
            assert await client.wait() == 0
    assert (told["agent"], told["stopReason"]) == ("dragoman", "end_turn")
    assert {"plan", "tool_call", "agent_message_chunk"} <= set(told["kinds"])
    assert "You did not allow the change" in told["text"]
    assert len(told["asked"]) >= 1
