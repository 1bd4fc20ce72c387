"""Two turns with an agent of the lab's settings, the connection killed in between where it is
remote; what came of it as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from dragoman import Client, Policy, load_settings
from dragoman.transport.target import RemoteAgent


async def main(name: str) -> None:
    agent = load_settings(os.environ["LAB_SETTINGS"]).agents[name].target
    async with Client.start(agent, policy=Policy(yolo=True)) as client:
        session = await client.new_session(os.environ["LAB_CWD"])
        turns = [(await session.prompt("hello")).stop_reason]
        if isinstance(agent, RemoteAgent):
            await client.kill()
            await session.reconnect()
        turns.append((await session.prompt("again")).stop_reason)
        text = "".join(entry.text for entry in session.state.entries)
        told = {"turns": turns, "text": text, "continuity": session.continuity}
    sys.stdout.write(json.dumps(told))


asyncio.run(main(sys.argv[1]))
