"""A relay between an agent and the stand-in for its model, which refuses as a provider does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

_ERROR = {"type": "rate_limit_error", "code": 429, "status": "RESOURCE_EXHAUSTED"}
"""Understood by the SDKs of several providers."""
_REFUSAL = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n"
    b"X-Should-Retry: false\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
)
_HEAD = b"\r\n\r\n"
_PIECE = 65536


def _never() -> bool:
    return False


class ModelRelay:
    """`refuses` is asked about each request."""

    def __init__(self, model: str) -> None:
        self.refuses: Callable[[], bool] = _never
        self.seconds = 3
        """Which a refusal says to wait."""
        self.base = ""
        self._model = urlsplit(model)

    def let_through(self) -> None:
        self.refuses = _never

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[ModelRelay]:
        async with await asyncio.start_server(self._relay, "127.0.0.1", 0, limit=2**24) as server:
            port = server.sockets[0].getsockname()[1]
            self.base = f"http://127.0.0.1:{port}"
            yield self

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, then the connection ends: the next one is asked about again."""
        with suppress(OSError, asyncio.IncompleteReadError):
            request = await _request(reader)
            if self.refuses():
                writer.write(self._refusal)
            else:
                await self._pass_on(request, writer)
            await writer.drain()
        writer.close()

    @property
    def _refusal(self) -> bytes:
        said = f"Rate limit exceeded. Please try again in {self.seconds}s"
        body = json.dumps({"type": "error", "error": _ERROR | {"message": said}}).encode()
        return _REFUSAL % (len(body), body)

    async def _pass_on(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        host, port = self._model.hostname or "127.0.0.1", self._model.port or 80
        there, to_there = await asyncio.open_connection(host, port, limit=2**24)
        try:
            to_there.write(request)
            writer.write(_once(await there.readuntil(_HEAD)))
            while piece := await there.read(_PIECE):
                writer.write(piece)
                await writer.drain()
        finally:
            to_there.close()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """With its body, as one that is the last of its connection."""
    head = await reader.readuntil(_HEAD)
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = await reader.readuntil(b"\r\n0\r\n\r\n")
    else:
        body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
    return _once(head) + body


def _once(head: bytes) -> bytes:
    lines = head.removesuffix(_HEAD).split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([*kept, b"Connection: close"]) + _HEAD
