"""What our servers have in common: listener, token, log lines and uvicorn's limits."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp

from dragoman.errors import ConfigError, DragomanError
from dragoman.process import descriptors
from dragoman.web.server.connections import IDLE_SECONDS, Connections, Protocol, SharedState
from dragoman.web.server.deadline import Deadline
from dragoman.web.server.guard import in_brackets
from dragoman.wire.framing import MAX_FRAME_BYTES

_GRACE_SECONDS = 3
"""For requests that are being answered when the server ends."""
_ACCEPTED_AT_ONCE = 4
"""Few, so that earlier connections are heard in between. Asyncio needs about five rounds from
accepting a connection to closing one that is cut off, and accepts so many in each of them: these
are open beyond the cap."""
_BACKLOG = 2048
_NOT_ACCEPTED = "socket.accept() out of system resource"
_PONG_SECONDS = 180.0
"""A pong waits behind what its sender does not read yet; slow readers are judged elsewhere."""
_SOCKET_PROTOCOL = "dragoman.web.server.socket_protocol:SocketProtocol"
"""Imported when there are sockets: not every server has them."""
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where to find, from here, a server that listens everywhere."""


class Door(msgspec.Struct, kw_only=True):
    """Where a server listens, and which clients it admits."""

    host: str
    port: int
    token_file: str | None = None
    origins: Sequence[str] = ()

    def token(self) -> str:
        """That of the file, else a new one. Raises ConfigError."""
        return new_token() if self.token_file is None else kept_token(Path(self.token_file))

    def listen(self) -> socket.socket:
        """Raises DragomanError when the address cannot be used."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))
        except OSError as error:
            listener.close()
            reason = (error.strerror or str(error)).lower()
            raise DragomanError(f"{in_brackets(self.host)}:{self.port}: {reason}") from error
        return listener

    def address(self, scheme: str, port: int) -> str:
        """How a client on this machine reaches it."""
        return f"{scheme}://{in_brackets(ANYWHERE.get(self.host, self.host))}:{port}"


class Operator(msgspec.Struct, frozen=True):
    """Who started a server: `announce` receives its address, `log` its lines."""

    announce: Callable[[str], None]
    log: Callable[[str], None]

    def note(self, sentence: str) -> None:
        """What an operator should know."""
        self.log(f"{_now()} {sentence}")

    def note_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """One line a request; no query, no header, no body: they may hold secrets."""
        self.log(f"{_now()} {method} {path} {status or '-'} {seconds * 1000:.0f} ms")


@asynccontextmanager
async def serving(
    server: AsgiServer, listener: socket.socket, deadline: Deadline
) -> AsyncGenerator[asyncio.TaskGroup]:
    """Entered when it accepts connections, left when a signal has ended it."""
    descriptors.set_aside(server.connections.most)
    deadline.on_signal(server.end)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve([listener]))
        await server.ready.wait()
        yield tasks


class AsgiServer(uvicorn.Server):
    """Ends when `end` is called, the streams first; a second call does not wait for anything."""

    def __init__(
        self,
        app: ASGIApp,
        closing: asyncio.Event,
        *,
        sockets: bool = False,
        connections: Connections | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws=_SOCKET_PROTOCOL if sockets else "none",
            ws_max_size=MAX_FRAME_BYTES,
            ws_per_message_deflate=False,
            ws_ping_timeout=_PONG_SECONDS,
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=IDLE_SECONDS,
            backlog=_ACCEPTED_AT_ONCE,
        )
        super().__init__(config)
        self.connections = connections or Connections()
        self.server_state = SharedState(self.connections)
        # At its lower levels it logs headers, paths and queries, and so would show the token.
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self.ready = asyncio.Event()
        self._closing = closing

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Left to the caller."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)
        loop = asyncio.get_running_loop()
        self._on_error = loop.get_exception_handler()
        loop.set_exception_handler(self._make_room)
        self.ready.set()

    def _make_room(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """When a connection could not be accepted, which asyncio tries again a second later."""
        if str(context.get("message")).startswith(_NOT_ACCEPTED):
            self.connections.no_descriptors()
        elif self._on_error is not None:
            self._on_error(loop, context)
        else:
            loop.default_exception_handler(context)

    def end(self) -> None:
        self._closing.set()
        self.force_exit = self.should_exit
        self.should_exit = True


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


_TOKEN = re.compile(r"[A-Za-z0-9._~-]{32,512}")


def new_token() -> str:
    return secrets.token_urlsafe(32)


def kept_token(path: Path) -> str:
    """The token in a file, made if there is none. Raises ConfigError for a file that others can
    read, or that holds no token."""
    try:
        _make(path)
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(str(path), "", f"a writable token file ({error.strerror})") from error
    with open(path, encoding="ascii", errors="replace") as file:
        _must_be_private(path, os.fstat(file.fileno()))
        token = file.read(1024).strip()
    if _TOKEN.fullmatch(token) is None:
        raise ConfigError(str(path), "", "a token of at least 32 letters, digits, - or _")
    return token


def _make(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(f"{new_token()}\n")


def _must_be_private(path: Path, status: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ConfigError(str(path), "", "a file that only you can read (mode 0600)")
