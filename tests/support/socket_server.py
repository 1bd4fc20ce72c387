"""The other side of a WebSocket, by hand: what it sends are bytes, so that nothing keeps it from
sending nonsense. The handshake and what is received are the work of the library `websockets`."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from support.peers import SECONDS
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from dragoman.transport.reconnection import ReconnectingRoute, RouteTimeouts
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport
from dragoman.wire.framing import MAX_FRAME_BYTES

Answer = Callable[[ServerProtocol, Request], Response]


def frame(payload: bytes, opcode: int = 0x1, *, fin: bool = True) -> bytes:
    """As a server sends it, whatever is in it."""
    return head(len(payload), opcode, fin=fin) + payload


def head(size: int, opcode: int = 0x1, *, fin: bool = True) -> bytes:
    first = (0x80 if fin else 0) | opcode
    if size < 126:
        return bytes((first, size))
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2)
    return bytes((first, 127)) + size.to_bytes(8)


class SocketSide:
    """One connection, as the agent has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.protocol = ServerProtocol(max_size=MAX_FRAME_BYTES)
        self.request: Request | None = None
        self.pings = 0
        self._unfinished = b""

    async def shake_hands(self, answer: Answer) -> bool:
        self.protocol.receive_data(await self.reader.readuntil(b"\r\n\r\n"))
        for event in self.protocol.events_received():
            assert isinstance(event, Request)
            self.request = event
            response = answer(self.protocol, event)
            self.protocol.send_response(response)
            self._flush()
            return response.status_code == 101
        return False

    def _flush(self) -> None:
        self.writer.write(b"".join(self.protocol.data_to_send()))

    def send(self, data: bytes) -> None:
        """Each line is a message."""
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        self.writer.write(b"".join(map(frame, lines)))

    async def receive(self) -> bytes:
        while data := await self.reader.read(65536):
            self.protocol.receive_data(data)
            self._flush()  # what the library answers by itself: pongs
            events = self.protocol.events_received()
            self.pings += sum(isinstance(e, Frame) and e.opcode is Opcode.PING for e in events)
            texts = [e.data for e in events if isinstance(e, Frame) and e.opcode is Opcode.TEXT]
            if texts:
                return b"".join(bytes(text) + b"\n" for text in texts)
        return b""

    async def aclose(self) -> None:
        """In order, as far as that is possible still."""
        with suppress(OSError):
            self.writer.write(frame((1000).to_bytes(2), 0x8))
            await self.writer.drain()
        await self.cut()

    async def cut(self) -> None:
        """Without a word."""
        self.writer.close()
        with suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()


class SocketServer:
    def __init__(self, scheme: str, answer: Answer) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self._scheme = scheme
        self._answer = answer
        self._arrived: asyncio.Queue[SocketSide] = asyncio.Queue()
        self._sides: list[SocketSide] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        side = SocketSide(reader, writer)
        self._sides.append(side)
        with suppress(OSError, EOFError, ssl.SSLError):
            is_open = await side.shake_hands(self._answer)
            assert side.request is not None
            self.requests.append(side.request)
            if is_open:
                self._arrived.put_nowait(side)
            else:
                await side.cut()

    def listens_at(self, port: int) -> None:
        self.url = f"{self._scheme}://127.0.0.1:{port}/acp"

    async def connection(self) -> SocketSide:
        async with asyncio.timeout(SECONDS):
            return await self._arrived.get()

    async def aclose(self) -> None:
        for side in self._sides:
            await side.cut()


def accept(protocol: ServerProtocol, request: Request) -> Response:
    return protocol.accept(request)


@asynccontextmanager
async def socket_server(
    answer: Answer = accept, *, certificate: Path | None = None, port: int = 0
) -> AsyncGenerator[SocketServer]:
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    server = SocketServer("ws" if certificate is None else "wss", answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", port, ssl=context)
    server.listens_at(listening.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listening.close()
        await server.aclose()
        await listening.wait_closed()


@asynccontextmanager
async def by_websocket(*, beat: float = 20.0) -> AsyncGenerator[tuple[Transport, SocketSide]]:
    # Few who test with it read on until they are told goodbye.
    timeouts = RouteTimeouts(close=0.05, beat=beat)
    async with socket_server() as server:
        ours = await ReconnectingRoute(RemoteAgent(server.url), timeouts=timeouts).connect()
        try:
            yield ours, await server.connection()
        finally:
            await ours.aclose()
