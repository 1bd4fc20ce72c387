"""The bridge as a process: what stands in its log."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from support.command import COMMAND
from support.peers import soon

from dragoman.errors import Unreachable
from dragoman.transport.reconnection import ReconnectingRoute
from dragoman.transport.target import RemoteAgent

SECONDS = 60


def test_why_no_agent_was_started_stands_beside_the_requests(tmp_path: Path) -> None:
    bridge = subprocess.Popen(
        [COMMAND, "bridge", "--agent-command", "/nonexist/agent"],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert bridge.stdout is not None
        agent = RemoteAgent(bridge.stdout.readline().strip())
        with pytest.raises(Unreachable, match="could not start '/nonexist/agent': no such file"):
            asyncio.run(_connect(agent))
        bridge.send_signal(signal.SIGTERM)
        _, log = bridge.communicate(timeout=SECONDS)
    finally:
        bridge.kill()
        bridge.wait()
    lines = [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "", line) for line in log.splitlines()]
    assert (
        lines[0] == "WARNING no agent was started: could not start '/nonexist/agent': no such file"
    )
    assert lines[1].startswith("GET /acp 409 ")
    assert len(lines) == 2


async def _connect(agent: RemoteAgent) -> None:
    await soon(ReconnectingRoute(agent).connect())
