"""Pairs of a transport and its other side: in memory, or with a real process in between.

The process only passes bytes on, so that what a test writes is what an agent has printed, and
goes through real pipes.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol, TypeAlias

from dragoman.transport.memory import memory_pair
from dragoman.transport.stdio import AgentCommand, StdioTransport
from dragoman.transport.transport import Transport

_RELAY = """if True:
    import os, select, socket, sys
    test = socket.socket(socket.AF_UNIX)
    test.connect(sys.argv[1])
    poll = select.poll()
    ways = {0: test.fileno(), test.fileno(): 1}
    for source in ways:
        poll.register(source, select.POLLIN)
    while True:
        for source, _ in poll.poll():
            data = os.read(source, 65536)
            if not data:
                os._exit(0)
            while data:
                data = data[os.write(ways[source], data):]
"""


class OtherSide(Protocol):
    """What a test holds: the agent's end of a connection."""

    def send(self, data: bytes) -> None: ...
    async def receive(self) -> bytes: ...
    async def aclose(self) -> None: ...


Pair: TypeAlias = Callable[[], AbstractAsyncContextManager[tuple[Transport, OtherSide]]]


@asynccontextmanager
async def in_memory() -> AsyncGenerator[tuple[Transport, OtherSide]]:
    yield memory_pair()


@asynccontextmanager
async def by_process() -> AsyncGenerator[tuple[Transport, OtherSide]]:
    """Our side is an agent's process; when the other side closes, that process exits."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{folder}/door")
        door.listen()
        door.setblocking(False)
        words = ("-I", "-S", "-c", _RELAY, f"{folder}/door")
        ours = await StdioTransport.start(AgentCommand(sys.executable, words))
        try:
            async with asyncio.timeout(60):
                relay, _ = await asyncio.get_running_loop().sock_accept(door)
            theirs = _Relayed(*await asyncio.open_connection(sock=relay))
            try:
                yield ours, theirs
            finally:
                await theirs.aclose()
        finally:
            await ours.aclose()


class _Relayed:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def receive(self) -> bytes:
        return await self._reader.read(65536)

    async def aclose(self) -> None:
        self._writer.close()
        with suppress(OSError):  # the process may have gone first
            await self._writer.wait_closed()
