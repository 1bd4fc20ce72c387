"""Our column over a WebSocket: the same client as in `ours`, another transport."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bench.clients.ours import Counting, converse
from dragoman.transport.reconnection import ReconnectingRoute
from dragoman.transport.target import RemoteAgent

_AGENT = Path(__file__).parent.parent / "websocket_agent.py"


async def main(*scene: str) -> None:
    agent = await asyncio.create_subprocess_exec(
        sys.executable, str(_AGENT), *scene, stdout=asyncio.subprocess.PIPE
    )
    assert agent.stdout is not None
    port = int(await agent.stdout.readline())
    transport = await ReconnectingRoute(RemoteAgent(f"ws://127.0.0.1:{port}/")).connect()
    await converse(transport, Counting())
    await agent.wait()


asyncio.run(main(*sys.argv[1:]))
