"""`dragoman bridge`, as the command line calls it: from options to a server, and to its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from dragoman.bridge.app import PATH, Bridge, make_app
from dragoman.process import descriptors
from dragoman.transport.base import Start
from dragoman.web.server.deadline import Deadline
from dragoman.web.server.host_header import Hosts, in_brackets
from dragoman.web.server.runner import ANYWHERE, Uvicorn, listen, log_line, noted
from dragoman.web.server.token import kept_token, new_token


class Settings(msgspec.Struct, kw_only=True):
    """The options of `dragoman bridge`."""

    start: Start
    """Connects to an agent of its own for each client."""
    host: str
    port: int
    token_file: str | None = None
    origins: Sequence[str] = ()
    limit: int


def serve(settings: Settings, announce: Callable[[str], None], log: Callable[[str], None]) -> None:
    """Serve until a signal arrives; `announce` receives the address, `log` one line per request.

    Raises ConfigError, and DragomanError when the address cannot be used.
    """
    descriptors.raise_limit()
    token = new_token() if settings.token_file is None else kept_token(Path(settings.token_file))
    listener = listen(settings.host, settings.port)
    with Deadline(lambda sentence: log(noted(sentence))) as deadline:
        asyncio.run(_serve(settings, token, listener, deadline, announce, log))


async def _serve(
    settings: Settings,
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
        hosts=Hosts(settings.host, port),
        origins=settings.origins,
        log=lambda method, path, status, seconds: log(log_line(method, path, status, seconds)),
    )
    running = Uvicorn(app, closing, sockets=True)
    deadline.on_signal(running.end)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(running.serve([listener]))
        await running.ready.wait()
        host = in_brackets(ANYWHERE.get(settings.host, settings.host))
        announce(f"ws://{host}:{port}{PATH}#token={token}")
    await bridge.connections.all_ended()
    deadline.all_is_done()
