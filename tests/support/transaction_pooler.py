"""A pooler in transaction mode, as PgBouncer is: one connection to the server for all clients, each
of which has it for a transaction. It greets clients itself, with a process number of its own."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

_IDLE = b"Z\0\0\0\x05I"
_OURS = struct.pack("!cIII", b"K", 12, 1, 1)


class _Pooler:
    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._turn = asyncio.Lock()
        self._server: asyncio.StreamWriter | None = None
        self._told: asyncio.Queue[bytes] = asyncio.Queue()
        """What the server says."""
        self._greeting = b""
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
            [size] = struct.unpack("!I", await reader.readexactly(4))
            startup = await reader.readexactly(size - 4)
            async with self._turn:
                if self._server is None:
                    await self._open(struct.pack("!I", size) + startup)
            writer.write(self._greeting + _OURS + _IDLE)
            asked = self._messages(reader)
            while (first := await asked.get()) and not first.startswith(b"X"):
                async with self._turn:
                    await self._transaction(first, asked, writer)
        writer.close()

    async def _open(self, startup: bytes) -> None:
        there, self._server = await asyncio.open_unix_connection(self._socket_path)
        self._told = self._messages(there)
        self._server.write(startup)
        while (message := await self._told.get()) != _IDLE:
            if not message.startswith(b"K"):
                self._greeting += message

    async def _transaction(
        self, first: bytes, asked: asyncio.Queue[bytes], writer: asyncio.StreamWriter
    ) -> None:
        """Until the server is ready for anyone's next one."""
        assert self._server is not None
        self._server.write(first)
        message = b""
        while message != _IDLE:
            while not asked.empty():
                self._server.write(asked.get_nowait())
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    writer.write(message := await self._told.get())

    def _messages(self, reader: asyncio.StreamReader) -> asyncio.Queue[bytes]:
        """What comes there, and nothing at its end."""
        found: asyncio.Queue[bytes] = asyncio.Queue()

        async def read() -> None:
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    head = await reader.readexactly(5)
                    rest = await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
                    found.put_nowait(head + rest)
            found.put_nowait(b"")

        task = asyncio.create_task(read())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return found

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._server is not None:
            self._server.close()


@asynccontextmanager
async def transaction_pooler(address: str) -> AsyncGenerator[str]:
    """Its address, for a database on a Unix socket."""
    parts = urlsplit(address)
    pooler = _Pooler(f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432")
    server = await asyncio.start_server(pooler.connect, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    database = f"{parts.path}?sslmode=disable&gssencmode=disable"
    try:
        yield f"postgresql://dragoman@127.0.0.1:{port}{database}"
    finally:
        server.close()
        await pooler.aclose()
