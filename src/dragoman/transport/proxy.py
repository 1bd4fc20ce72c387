"""The way to a WebSocket through a proxy that the environment names, by HTTP's CONNECT."""

from __future__ import annotations

import asyncio
import socket

from websockets.exceptions import InvalidProxy
from websockets.proxy import Proxy, get_proxy, parse_proxy, prepare_connect_request
from websockets.uri import WebSocketURI

from dragoman.errors import Unreachable

_LARGEST_HEAD = 64 * 1024


async def tunnel(uri: WebSocketURI, place: str) -> socket.socket | None:
    """A socket that leads there, or None where no proxy is set for it.

    Raises Unreachable for a proxy that cannot be used or does not let us through, OSError.
    """
    address = get_proxy(uri)
    if address is None:
        return None
    try:
        proxy = parse_proxy(address)
    except InvalidProxy:  # which has the whole address in its words, and that may hold a password
        raise Unreachable(place, "the address of its proxy cannot be read") from None
    if proxy.scheme != "http":
        reason = f"a WebSocket goes through an http:// proxy alone, not {proxy.scheme}://"
        raise Unreachable(place, f"{reason}; set one, or leave this host out with NO_PROXY")
    sock = await _connected(proxy)
    try:
        await _ask(sock, prepare_connect_request(proxy, uri), place)
    except BaseException:
        sock.close()
        raise
    return sock


async def _connected(proxy: Proxy) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
    error: OSError | None = None
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
            return sock
        except OSError as failed:
            sock.close()
            error = failed
        except BaseException:
            sock.close()
            raise
    raise error or OSError("the proxy has no address")


async def _ask(sock: socket.socket, request: bytes, place: str) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, request)
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < _LARGEST_HEAD:
        # One byte at a time: what comes behind the head is not for us.
        data = await loop.sock_recv(sock, 1)
        if not data:
            break
        head += data
    status = head.split(b" ", 2)[1:2]
    if status != [b"200"]:
        said = status[0].decode("latin-1") if status else "nothing"
        raise Unreachable(place, f"its proxy does not let us through ({said})")
