"""httpx as an agent is spoken to with it: patient with streams, quiet about headers, no redirects.

Knows nothing of messages.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from contextlib import suppress

import httpx

from dragoman.errors import FrameTooLarge
from dragoman.transport.reconnection import (
    CONNECT_SECONDS,
    REASON_BYTES,
    REASON_SECONDS,
    ReconnectingRoute,
)
from dragoman.wire.framing import MAX_FRAME_BYTES

ENDLESS = httpx.Timeout(None, connect=CONNECT_SECONDS)
"""For streams, and for the first message: its answer comes with it, and the caller has a bound."""
PATIENT = httpx.Timeout(120.0, connect=CONNECT_SECONDS)
"""For a message to be taken; a server may make us wait until we have read what it sent."""
_IDLE_SECONDS = 3.0
"""Node's server closes an idle connection after five: a message must not meet it closing."""

# At their lowest levels these log headers, and so would show credentials and cookies.
for _name in ("httpx", "httpcore", "hpack", "h2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


def new_client(route: ReconnectingRoute, context: ssl.SSLContext) -> httpx.AsyncClient:
    """Raises ImportError and ValueError for a proxy that cannot be used."""
    return httpx.AsyncClient(
        http2=True,
        headers=route.agent.sent_headers | {"Accept-Encoding": "identity"},
        cookies=route.cookies,
        verify=context,
        timeout=ENDLESS,
        limits=httpx.Limits(
            max_connections=None, max_keepalive_connections=4, keepalive_expiry=_IDLE_SECONDS
        ),
        follow_redirects=False,
    )


async def body_of(response: httpx.Response) -> bytes:
    """All of it. Raises FrameTooLarge."""
    body = bytearray()
    async for data in response.aiter_raw():
        body += data
        if len(body) > MAX_FRAME_BYTES:
            raise FrameTooLarge(MAX_FRAME_BYTES)
    return bytes(body)


async def reason_of(response: httpx.Response) -> bytes:
    """The body of a refusal; nothing when it is large, or does not come soon."""
    body = bytearray()
    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(REASON_SECONDS):
            async for data in response.aiter_raw():
                body += data
                if len(body) > REASON_BYTES:
                    return b""
            return bytes(body)
    return b""


def probe(response: httpx.Response) -> None:
    """Have the system look after a connection on which nothing may come for long."""
    sock = response.extensions["network_stream"].get_extra_info("socket")
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
