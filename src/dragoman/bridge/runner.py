"""`dragoman bridge`, as the command line calls it: from options to a server, and to its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from dragoman.bridge.app import PATH, Bridge, make_app
from dragoman.process import descriptors
from dragoman.transport.base import Start
from dragoman.web.server.deadline import Deadline
from dragoman.web.server.host_header import AllowedHosts
from dragoman.web.server.http_server import AsgiServer, Door, log_line, noted, serving


class BridgeOptions(Door, kw_only=True):
    """The options of `dragoman bridge`."""

    start: Start
    """Connects to an agent of its own for each client."""
    limit: int


def serve(
    settings: BridgeOptions, announce: Callable[[str], None], log: Callable[[str], None]
) -> None:
    """Serve until a signal arrives; `announce` receives the address, `log` one line per request.

    Raises ConfigError, and DragomanError when the address cannot be used.
    """
    descriptors.raise_limit()
    token, listener = settings.token(), settings.listen()
    with Deadline(lambda sentence: log(noted(sentence))) as deadline:
        asyncio.run(_serve(settings, token, listener, deadline, announce, log))


async def _serve(
    settings: BridgeOptions,
    token: str,
    listener: socket.socket,
    deadline: Deadline,
    announce: Callable[[str], None],
    log: Callable[[str], None],
) -> None:
    port = listener.getsockname()[1]
    closing = asyncio.Event()
    bridge = Bridge(settings.start, limit=settings.limit, closing=closing)
    app = make_app(
        bridge,
        token=token,
        hosts=AllowedHosts(settings.host, port),
        origins=settings.origins,
        log=lambda method, path, status, seconds: log(log_line(method, path, status, seconds)),
    )
    async with serving(AsgiServer(app, closing, sockets=True), listener, deadline):
        announce(f"{settings.address('ws', port)}{PATH}#token={token}")
    await bridge.connections.all_ended()
    deadline.all_is_done()
