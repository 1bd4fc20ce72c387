"""`server.py SOCKET`: the agents of this folder, all in one process that outlasts their clients.

A client's agent process is then `relay.py`, which starts in a tenth of the time.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

from dragoman.testing.agent_stdio import StandardStreams
from dragoman.testing.serve import find_agent

PROGRAMS = Path(__file__).parent
NAME_BYTES = 64


async def main(path: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    listener.setblocking(False)
    print("ready", flush=True)  # noqa: T201 (whoever started us waits for it)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        while True:
            client, _ = await loop.sock_accept(listener)
            tasks.create_task(serve(client))


async def serve(client: socket.socket) -> None:
    client.setblocking(False)
    name = await asyncio.get_running_loop().sock_recv(client, NAME_BYTES)
    # Made anew for each client, as a process of its own would be.
    agent = find_agent(f"{PROGRAMS}/{name.decode().strip()}")
    streams = StandardStreams(os.dup(client.fileno()), client.detach())
    try:
        await agent.serve(streams)
    finally:
        await streams.aclose()


asyncio.run(main(sys.argv[1]))
