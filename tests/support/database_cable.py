"""A cable between a store and its database that can be cut, pinched, or told when to break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit


class Cable:
    """`address` leads through it. It is whole until it is told otherwise."""

    def __init__(self, socket_path: str) -> None:
        self.address = ""
        self.is_cut = False
        self.is_pinched = False
        """Nothing gets through, and nobody is told."""
        self.breaks_there: bytes | None = None
        """It is cut when these bytes are about to pass on their way to the database, …"""
        self.breaks_back: bytes | None = None
        """… or on their way back."""
        self.trips = 0
        """How often something was sent there after something had come back, or first of all: each
        costs the time to the database and back."""
        self._socket_path = socket_path
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Every connection ends, and there is no new one until `mend`."""
        self.is_cut = True
        for end in self._ends:
            end.transport.abort()

    def mend(self) -> None:
        self.is_cut = self.is_pinched = False
        self.breaks_there = self.breaks_back = None

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # Cancelled at the end of a test, when nobody is left to be told.
            with suppress(OSError, asyncio.CancelledError):
                if not self.is_cut:
                    there, back = await asyncio.open_unix_connection(self._socket_path)
                    await self._join(reader, writer, there, back)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _join(
        self,
        here: asyncio.StreamReader,
        here_out: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        there_out: asyncio.StreamWriter,
    ) -> None:
        self._ends |= {here_out, there_out}
        try:
            way = _Way()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._carry(here, there_out, way, back=False))
                tasks.create_task(self._carry(there, here_out, way, back=True))
        finally:
            self._ends -= {here_out, there_out}
            there_out.transport.abort()

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: _Way, *, back: bool
    ) -> None:
        with suppress(OSError):
            while piece := await source.read(65536):
                self.trips += not back and way.was_back
                way.was_back = back
                breaks = self.breaks_back if back else self.breaks_there
                if breaks is not None and breaks in piece:
                    self.cut()
                    break
                if not self.is_pinched:
                    sink.write(piece)
                    await sink.drain()
        sink.transport.abort()

    async def aclose(self) -> None:
        self.cut()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class _Way:
    """Which way something last went on a connection."""

    was_back = True


@asynccontextmanager
async def cable_to(address: str) -> AsyncGenerator[Cable]:
    """To a database on a Unix socket."""
    parts = urlsplit(address)
    cable = Cable(f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432")
    server = await asyncio.start_server(cable.connect, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    database = f"{parts.path}?sslmode=disable&gssencmode=disable"
    cable.address = f"postgresql://dragoman@127.0.0.1:{port}{database}"
    try:
        yield cable
    finally:
        server.close()
        await cable.aclose()
