"""The proxy of a fence: the only way out of its network, by HTTP and CONNECT. Nothing is opened.

Each connection is judged by the name it asks for and by the address that name has; that address is
connected to, so that a name cannot mean another one a moment later.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from http import HTTPStatus

import msgspec

from dragoman.host.fence.network.host_patterns import Address, read_address, read_host
from dragoman.host.fence.network.network_rules import HostRefused, NetworkRules
from dragoman.process import descriptors

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Lookup = Callable[[str, int], Awaitable[list[Address]]]
_Serve = Callable[[Streams], Awaitable[None]]

_CHUNK = 64 << 10
_LONGEST_LINE = 8 << 10
_LOOKUPS = 4
_REFUSAL_SECONDS = 10.0
_PAUSE_SECONDS = 0.1
_FOR_A_CONNECTION = 2
"""Descriptors: one inside, one outside."""
_SHORT = (*descriptors.SHORTAGES, errno.ENOBUFS, errno.ENOMEM)


class ProxyLimits(msgspec.Struct, frozen=True):
    """What the programs of one fence may use up."""

    connections: int = 128
    head: int = 64 << 10
    """Bytes of a request's head; no more than twice as much waits in a connection."""
    head_seconds: float = 30.0
    connect_seconds: float = 30.0
    idle_seconds: float = 3600.0
    """A connection in which nothing moves for so long is closed."""


class _Everywhere:
    """The connections of all proxies of this process: a quarter of its descriptors, at most."""

    count = 0

    @classmethod
    def has_room(cls, own: int) -> bool:
        """For a proxy that has `own`: as many as it takes, it leaves to the others."""
        most = max(8, descriptors.limit() // 8)
        return own < most - cls.count


class Proxy:
    """Serves what arrives on a listening socket until it is closed. The first is the proxy's own,
    and on the others a program reaches the server of this machine on the same port."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        rules: NetworkRules,
        limits: ProxyLimits | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        self._listener = listeners[0]
        self._rules = rules
        self._limits = limits or ProxyLimits()
        self._lookup = lookup or _Lookups()
        self._connections: set[asyncio.Task[None]] = set()
        self._accepting = [asyncio.create_task(self._accept(each)) for each in listeners]

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"http://{host}:{port}"

    async def aclose(self) -> None:
        """End every connection."""
        tasks = [*self._accepting, *self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        serve = self._answer if listener is self._listener else self._forward
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno not in _SHORT and error.errno != errno.ECONNABORTED:
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._admit(client, serve)

    def _admit(self, client: socket.socket, serve: _Serve) -> None:
        if (
            len(self._connections) >= self._limits.connections
            or not _Everywhere.has_room(len(self._connections))
            or not descriptors.has_room_to_spare(_FOR_A_CONNECTION)
        ):
            with contextlib.suppress(OSError):
                client.send(_reply(503, "too many connections are open"))
            client.close()
            return
        task = asyncio.create_task(self._serve(client, serve))
        _Everywhere.count += 1
        descriptors.count(_FOR_A_CONNECTION)
        self._connections.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        _Everywhere.count -= 1
        descriptors.count(-_FOR_A_CONNECTION)
        self._connections.discard(task)

    async def _serve(self, client: socket.socket, serve: _Serve) -> None:
        try:
            inside = await asyncio.open_connection(sock=client, limit=self._limits.head)
        except OSError:
            client.close()
            return
        try:
            await serve(inside)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            return  # one of the two has gone, or says what makes no sense
        finally:
            _close(inside[1])

    async def _answer(self, inside: Streams) -> None:
        reader, writer = inside
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                head = await reader.readuntil(b"\r\n\r\n")
            request = read_request(head)
            outside = await self._connected(request)
        except asyncio.LimitOverrunError:
            await _refuse(writer, 431, "the head of the request is too long")
        except ValueError as error:
            await _refuse(writer, 400, str(error))
        except HostRefused as error:
            await _refuse(writer, 403, f"the fence refused {error}")
        except TimeoutError:
            await _refuse(writer, 504, "it took too long")
        except OSError as error:
            await _refuse(writer, 502, error.strerror or str(error))
        else:
            await self._pass_on(request, inside, outside)

    async def _forward(self, inside: Streams) -> None:
        """A program connected to what it takes for the machine's own loopback."""
        port = inside[1].get_extra_info("sockname")[1]
        try:
            outside = await self._connected(ProxiedRequest("localhost", port))
        except HostRefused:
            return
        await self._pass_on(None, inside, outside)

    async def _connected(self, request: ProxiedRequest) -> Streams:
        """Raises HostRefused, which is on record then."""
        host, port = request.host, request.port
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                found = self._rules.candidates(host, port)
                if found is None:
                    found = self._rules.reachable(await self._lookup(host, port), port)
                return await self._connect(found, port)
        except HostRefused as error:
            name = str(read_host(host))  # it was one for the rules
            self._rules.refused(name, port, error)
            raise HostRefused(f"{name}:{port}: {error}") from None

    async def _connect(self, addresses: Sequence[Address], port: int) -> Streams:
        failed = OSError("it has no address")
        for address in addresses:
            try:
                return await asyncio.open_connection(str(address), port, limit=_CHUNK)
            except OSError as error:
                failed = error
        raise failed

    async def _pass_on(
        self, request: ProxiedRequest | None, inside: Streams, outside: Streams
    ) -> None:
        try:
            async with asyncio.timeout(self._limits.idle_seconds) as idle:
                flow = _Flow(idle, self._limits.idle_seconds)
                answer = flow.all(outside[0], inside[1])
                if request is not None and request.head is not None:
                    outside[1].write(request.head)
                    await _exchange(flow.body(request, inside[0], outside[1]), answer)
                else:
                    if request is not None:
                        inside[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await _exchange(flow.all(inside[0], outside[1]), answer, is_tunnel=True)
        finally:
            _close(outside[1])


class _Flow:
    """Moves bytes one way, no more than fit between the two; `idle` is put off with each piece."""

    def __init__(self, idle: asyncio.Timeout, seconds: float) -> None:
        self._idle = idle
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()

    async def all(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Until there is no more; then this way is closed."""
        while data := await source.read(_CHUNK):
            await self._put(data, sink)
        if sink.can_write_eof():
            sink.write_eof()

    async def body(
        self, request: ProxiedRequest, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        """What belongs to this request; what a program sends after it goes nowhere."""
        if not request.is_chunked:
            await self._some(request.length, source, sink)
            return
        while size := await self._size(source, sink):
            await self._some(size, source, sink)
            if await source.readexactly(2) != b"\r\n":
                raise ValueError("a chunk is longer than its size")
            await self._put(b"\r\n", sink)
        # No server needs the fields after the body, and one that reads bare line feeds might take
        # another request out of them.
        while await self._line(source) != b"\r\n":
            pass
        await self._put(b"\r\n", sink)

    async def _some(
        self, count: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        while count and (data := await source.read(min(count, _CHUNK))):
            count -= len(data)
            await self._put(data, sink)

    async def _size(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> int:
        """Of the next chunk. Python would also read `0x10` and `-1`, a server something else."""
        line = await self._line(source)
        found = _CHUNK_SIZE.fullmatch(line)
        if found is None:
            raise ValueError("the size of a chunk cannot be read")
        await self._put(line, sink)
        return int(found[1], 16)

    async def _line(self, source: asyncio.StreamReader) -> bytes:
        line = await source.readuntil(b"\r\n")
        if len(line) > _LONGEST_LINE:
            raise ValueError("a line of the body is too long")
        return line

    async def _put(self, data: bytes, sink: asyncio.StreamWriter) -> None:
        self._idle.reschedule(self._loop.time() + self._seconds)
        sink.write(data)
        await sink.drain()


async def _exchange(
    sending: Coroutine[None, None, None],
    answering: Coroutine[None, None, None],
    *,
    is_tunnel: bool = False,
) -> None:
    """Both ways at once. An answer that is complete ends a request; a tunnel ends with the second
    of the two. Where one fails, nothing more goes the other way."""
    answer, sent = asyncio.create_task(answering), asyncio.create_task(sending)
    waiting = {answer, sent}
    try:
        while waiting and (is_tunnel or not answer.done()):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(answer, sent, return_exceptions=True)  # both may have failed at once


class _Lookups:
    """Looks names up, a few at once, each in a thread that nobody waits for at the end."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_LOOKUPS)

    async def __call__(self, name: str, port: int) -> list[Address]:
        """The addresses of a name, in the order to try them. Raises OSError."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Address] | OSError] = loop.create_future()

        def deliver(found: list[Address] | OSError) -> None:
            self._free.release()
            if not answer.done():
                answer.set_result(found)

        def work() -> None:
            found = _addresses(name, port)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
                loop.call_soon_threadsafe(deliver, found)

        await self._free.acquire()
        try:
            threading.Thread(target=work, name=f"lookup-{name}", daemon=True).start()
        except RuntimeError:
            self._free.release()
            raise OSError(errno.EAGAIN, "no thread can be started") from None
        found = await answer
        if isinstance(found, OSError):
            raise found
        return found


def _addresses(name: str, port: int) -> list[Address] | OSError:
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError:
        return OSError(errno.EINVAL, "the name cannot be looked up")
    return list(dict.fromkeys(read_address(str(each[4][0])) for each in found))


def _reply(status: int, words: str) -> bytes:
    body = f"Dragoman: {words}\n".encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def _refuse(writer: asyncio.StreamWriter, status: int, words: str) -> None:
    writer.write(_reply(status, words))
    async with asyncio.timeout(_REFUSAL_SECONDS):
        await writer.drain()


def _close(writer: asyncio.StreamWriter) -> None:
    """Without waiting for what the other side does not take."""
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


# ── the head of a request ───────────────────────────────────────────────────────────────────────

# What a program asks of the proxy: a tunnel, or one HTTP request to be passed on. Pure.


_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) (HTTP/1\.[01])")
_FIELD_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT_VALUE = re.compile(rb"[\r\n\0]")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_ADDRESS = re.compile(rb"http://([^/?#]*)([^#]*)", re.IGNORECASE)
_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[^:@\[\]]+)(?::([0-9]{1,5}))?")
_HOP_BY_HOP = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"upgrade")
)
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))


class ProxiedRequest(msgspec.Struct, frozen=True):
    """Where to, and the head to send there; `head` is None for a tunnel."""

    host: str
    port: int
    head: bytes | None = None
    length: int = 0
    """How many bytes follow the head."""
    is_chunked: bool = False
    """They follow in chunks, as many as there are."""


def read_request(head: bytes) -> ProxiedRequest:
    """`head` ends with an empty line. Raises ValueError for what no proxy can pass on."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise ValueError("this is not an HTTP request")
    method, target, version = line.groups()
    if method == b"CONNECT":
        host, port = _host_of(target)
        if port is None:
            raise ValueError("CONNECT needs a port")
        return ProxiedRequest(host, port)
    address = _ADDRESS.fullmatch(target)
    if address is None:
        raise ValueError("this is a proxy: it takes CONNECT, and requests with an http:// address")
    authority, path = address.groups()
    host, port = _host_of(authority)
    fields = [_field(each) for each in lines]
    length, is_chunked = _body(fields)
    if is_chunked and version == b"HTTP/1.0":
        raise ValueError("HTTP/1.0 has no chunks")
    return ProxiedRequest(
        host, port or 80, _head(method, authority, path, version, fields), length, is_chunked
    )


def _host_of(authority: bytes) -> tuple[str, int | None]:
    found = _HOST.fullmatch(authority)
    if found is None or (found[2] and not 0 < int(found[2]) < 65536):
        raise ValueError("the address has no host that can be read")
    return found[1].decode("ascii"), int(found[2]) if found[2] else None


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or _FIELD_NAME.fullmatch(name) is None or _UNFIT_VALUE.search(value):
        raise ValueError("a header cannot be read")
    return name, value.strip(b" \t")


def _body(fields: list[tuple[bytes, bytes]]) -> tuple[int, bool]:
    """A request that says two things about its length could mean another one to the server."""
    lengths = {value for name, value in fields if name.lower() == b"content-length"}
    codings = [value.lower() for name, value in fields if name.lower() == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise ValueError("the length of the body is given twice")
    if codings and codings != [b"chunked"]:
        raise ValueError("the transfer encoding is not known")
    length = next(iter(lengths), b"0")
    if not length.isdigit() or len(length) > 18:
        raise ValueError("the length of the body is not a number")
    return int(length), bool(codings)


def _head(
    method: bytes, authority: bytes, path: bytes, version: bytes, fields: list[tuple[bytes, bytes]]
) -> bytes:
    """For the server itself. The host is that of the address, whatever a header says."""
    options = (value.lower().split(b",") for name, value in fields if name.lower() == b"connection")
    named = {each.strip() for found in options for each in found} - _FRAMING
    dropped = _HOP_BY_HOP | named | {b"host"}
    target = path if path.startswith(b"/") else b"/" + path
    kept = [b"%s: %s" % each for each in fields if each[0].lower() not in dropped]
    lines = [b"%s %s %s" % (method, target, version), b"Host: " + authority, *kept]
    return b"\r\n".join((*lines, b"Connection: close", b"", b""))
