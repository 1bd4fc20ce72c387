"""MCP servers of this process for agents that have no MCP over ACP.

The agent gets a program to start (`mcp_stdio.py`), which connects to a socket in a private folder:
no port is opened, and every agent on this machine can start a program. What comes through is
answered here, as long as the session lasts that brought the server along.
"""

from __future__ import annotations

import asyncio
import errno
import glob
import os
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from dragoman._version import __version__
from dragoman.agents.settings.mcp_settings import StdioServer
from dragoman.client.mcp import InProcessServer, telling
from dragoman.client.relay import mcp_stdio
from dragoman.errors import ConnectionClosed, InvalidParams, InvalidRequest
from dragoman.process import descriptors
from dragoman.rpc import Peer
from dragoman.transport.pipes import DescriptorPair

Find: TypeAlias = Callable[[str], InProcessServer]
"""The server of that id. Raises ResourceNotFound once its session has ended."""

GREETING = "dragoman/server"
_CANCELLED = "notifications/cancelled"
_VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Of MCP; the newest first."""
_MOST_CONNECTIONS = 256
_LONGEST_ADDRESS = 100  # the kernel takes 107 bytes, macOS 103
_PREFIX = "dragoman-"
_SETTLED_SECONDS = 60.0
"""A folder that is younger may be that of a process which does not listen yet."""
_SHORT_SECONDS = 1.0
"""Until a process without a free descriptor tries again to take a connection."""


class McpRelay:
    """Listens from the first server it is asked about until it is closed. The programs of an agent
    in a fence see its temporary folder alone, so that is the place then."""

    def __init__(self, find: Find, parent: str | None = None) -> None:
        self._find = find
        self._parent = parent
        self._folder: str | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._serving: set[asyncio.Task[None]] = set()

    def program(self, server: InProcessServer) -> StdioServer:
        """What the agent starts instead. Raises OSError if no socket can be made."""
        greeting = {"jsonrpc": "2.0", "method": GREETING, "params": {"id": server.id}}
        words = (self._address(), msgspec.json.encode(greeting).decode())
        # Isolated: nothing that the workspace holds may become part of it.
        args = ("-I", "-S", mcp_stdio.__file__, *words)
        return StdioServer(name=server.name, command=sys.executable, args=args)

    def _address(self) -> str:
        if self._folder is None:
            self._folder = private_folder(self._parent)
            self._listen(f"{self._folder}/mcp")
        return f"{self._folder}/mcp"

    def _listen(self, address: str) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen()
        self._accepting = asyncio.create_task(self._accept(listener), name="dragoman MCP relay")

    async def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                try:
                    connected, _ = await asyncio.get_running_loop().sock_accept(listener)
                except OSError:
                    await asyncio.sleep(_SHORT_SECONDS)
                else:
                    with connected:
                        await self._take(connected)

    async def _take(self, connected: socket.socket) -> None:
        if len(self._serving) >= _MOST_CONNECTIONS or not descriptors.has_room(2):
            return
        # Each pipe owns its descriptor.
        second = await _duplicate(connected)
        first = connected.detach()
        descriptors.guard(first, second)
        pair = _FromAgent(first, second)
        task = asyncio.create_task(_serve(pair, self._find), name="dragoman MCP server")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def aclose(self) -> None:
        accepting = () if self._accepting is None else (self._accepting,)
        tasks = (*accepting, *self._serving)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def private_folder(parent: str | None = None) -> str:
    """Only for this user; with a short name, since the address of a socket must be."""
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    if parent is None and len(os.fsencode(folder)) > _LONGEST_ADDRESS - len("/mcp"):
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp")
    _sweep(os.path.dirname(folder))
    return folder


def _sweep(directory: str) -> None:
    """Remove the folders of processes that were killed: nobody listens there."""
    for folder in glob.glob(f"{glob.escape(directory)}/{_PREFIX}*"):
        with suppress(OSError):
            found = os.lstat(folder)
            is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
            if is_ours and time.time() - found.st_mtime > _SETTLED_SECONDS and _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: str) -> bool:
    """Whether there is a socket that nobody listens to, and nothing else."""
    if os.listdir(folder) != ["mcp"]:
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(f"{folder}/mcp") == errno.ECONNREFUSED


async def _duplicate(connected: socket.socket) -> int:
    while True:
        try:
            return os.dup(connected.fileno())
        except OSError:
            await asyncio.sleep(_SHORT_SECONDS)


class _FromAgent(DescriptorPair):
    """The connection of one program that the agent has started."""

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionClosed:
        return ConnectionClosed("the agent closed the connection to the MCP server")


async def _serve(pair: _FromAgent, find: Find) -> None:
    connection = _Connection(pair, find)
    async with connection.peer:
        await connection.peer.wait_ended()


class _Hello(msgspec.Struct):
    id: str


class _Initialize(msgspec.Struct, rename="camel"):
    protocol_version: str = ""


class _Connection:
    """Answers one client of MCP. Its handshake is ours, everything else the server's."""

    def __init__(self, pair: _FromAgent, find: Find) -> None:
        self._find = find
        self._server_id: str | None = None
        self.peer = Peer(
            pair,
            on_notification=self._notified,
            on_request=self._requested,
            cancel_method=_CANCELLED,
        )

    def _notified(self, method: str, params: msgspec.Raw) -> None:
        if method == GREETING and self._server_id is None:
            self._server_id = msgspec.json.decode(params, type=_Hello).id

    def _requested(self, method: str, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
        if self._server_id is None:
            raise InvalidRequest("no MCP server was named")
        server = self._find(self._server_id)
        if method == "initialize":
            return _handshake(server, params)
        return b"{}" if method == "ping" else self._handle(server, method, params)

    async def _handle(self, server: InProcessServer, method: str, raw: msgspec.Raw) -> bytes:
        with telling(self._tell):
            return msgspec.json.encode(await server.handle(method, _params(raw)))

    def _tell(self, method: str, params: dict[str, Any] | None) -> None:
        self.peer.notify(method, msgspec.json.encode(params or {}))


def _params(raw: msgspec.Raw) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any] | None) if raw else None
    except msgspec.DecodeError as error:
        raise InvalidParams(f"the parameters are not an object: {error}") from error


def _handshake(server: InProcessServer, raw: msgspec.Raw) -> bytes:
    try:
        wanted = msgspec.json.decode(raw, type=_Initialize).protocol_version
    except msgspec.DecodeError as error:
        raise InvalidParams(str(error)) from error
    result = {
        "protocolVersion": wanted if wanted in _VERSIONS else _VERSIONS[0],
        "capabilities": server.capabilities,
        "serverInfo": {"name": server.name, "version": __version__},
    }
    return msgspec.json.encode(result)
