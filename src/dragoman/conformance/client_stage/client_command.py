"""The client under examination as a command: started once for each scene, with an agent to start.

The agent is a launcher in a folder of the scene, a path without spaces, so that it can be one word
of a command line, or a whole one. A client is ended with all that it has started.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import stat
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from dragoman.conformance.client_stage import relay
from dragoman.conformance.probing.wait_limit import family
from dragoman.errors import ConnectionClosed
from dragoman.process.child import Process
from dragoman.process.spawn import spawn
from dragoman.transport.transport import Transport

AGENT = "{agent}"
_KEPT_OUTPUT = 1024 * 1024


class Setting(msgspec.Struct, kw_only=True):
    """What a scene needs of the world around it."""

    folder: str
    """The workspace of the client."""
    costume: str = ""
    """Lines of a shell that run before the agent does."""
    exit_code: int = 0
    """How the agent exits when its scene is over."""
    hand: str = ""
    """The hand that the client is started with, instead of its usual command."""


class RunningClient(Protocol):
    """A client that was started for a scene."""

    agent_pid: int
    """The process that it started as its agent; 0 if there is none."""

    def processes(self) -> list[int]:
        """Those of this machine that it consists of."""
        ...

    async def connected(self) -> Transport:
        """Our end of the connection to it, once it has started its agent."""
        ...

    async def exited(self) -> int:
        """Its exit code, once it has exited."""
        ...

    @property
    def output(self) -> str:
        """What it has printed."""
        ...

    async def lend(self, hand: str) -> None:
        """Do by hand what it cannot do by itself."""
        ...

    async def aclose(self) -> None: ...


class ExaminedClient(Protocol):
    """What is examined."""

    def has(self, hand: str) -> bool:
        """Whether there is a command for this."""
        ...

    def starts(self, hand: str) -> bool:
        """Whether that command starts the client, instead of helping one that runs."""
        ...

    async def start(self, setting: Setting) -> RunningClient: ...


class ClientCommand:
    """A client as a command line with `{agent}` in it, and the commands that are its hands."""

    def __init__(self, command: Sequence[str], hands: Mapping[str, str] | None = None) -> None:
        self._command = list(command)
        self._hands = dict(hands or {})

    def has(self, hand: str) -> bool:
        return hand in self._hands

    def starts(self, hand: str) -> bool:
        return AGENT in self._hands[hand]

    async def start(self, setting: Setting) -> RunningClient:
        """Raises StartError."""
        words = shlex.split(self._hands[setting.hand]) if setting.hand else self._command
        return await StartedClient.start(words, self._hands, setting)


class StartedClient:
    """A client as a process."""

    def __init__(self, backstage: Path, hands: Mapping[str, str], setting: Setting) -> None:
        self.agent_pid = 0
        self._hands = hands
        self._setting = setting
        self._backstage = backstage
        backstage.mkdir()
        self._write_launcher()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(backstage / "stage"))
        self._socket.listen()
        self._socket.setblocking(False)
        self._printed = backstage / "printed"
        self._process: Process | None = None
        self._helpers: list[Process] = []

    @classmethod
    async def start(
        cls, words: Sequence[str], hands: Mapping[str, str], setting: Setting
    ) -> StartedClient:
        client = cls(Path(f"{setting.folder}-agent"), hands, setting)
        try:
            argv = [client._filled(word) for word in words]
            client._process = await client._spawn(argv, str(client._printed))
        except BaseException:
            await client.aclose()
            raise
        return client

    def _write_launcher(self) -> None:
        run = shlex.join(
            [sys.executable, "-I", "-S", relay.__file__, str(self._backstage / "stage")]
        )
        launcher = self._backstage / "agent"
        launcher.write_text(f"#!/bin/sh\n{self._setting.costume}\nexec {run}\n")
        launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)

    def _filled(self, word: str) -> str:
        """A word of a command with what it names."""
        pid = 0 if self._process is None else self._process.pid
        names = {
            AGENT: str(self._backstage / "agent"),
            "{pid}": str(pid),
            "{cwd}": self._setting.folder,
        }
        for name, value in names.items():
            word = word.replace(name, value)
        return word

    async def _spawn(self, argv: Sequence[str], output: str) -> Process:
        nothing = os.open(os.devnull, os.O_RDWR)
        printed = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return await spawn(
                argv,
                env=os.environ,
                cwd=self._setting.folder,
                stdin=nothing,
                stdout=printed,
                stderr=printed,
            )
        finally:
            os.close(nothing)
            os.close(printed)

    def processes(self) -> list[int]:
        return [] if self._process is None else family(self._process.pid)

    async def connected(self) -> Transport:
        loop = asyncio.get_running_loop()
        stage, _ = await loop.sock_accept(self._socket)
        self.agent_pid = _peer_of(stage)
        await loop.sock_sendall(stage, bytes([self._setting.exit_code]))
        return SocketTransport(*await asyncio.open_unix_connection(sock=stage))

    async def exited(self) -> int:
        assert self._process is not None
        ended = await self._process.wait()
        return -1 if ended.code is None else ended.code

    @property
    def output(self) -> str:
        try:
            with self._printed.open("rb") as file:
                return file.read(_KEPT_OUTPUT).decode("utf-8", "replace")
        except OSError:
            return ""

    async def lend(self, hand: str) -> None:
        argv = [self._filled(word) for word in shlex.split(self._hands[hand])]
        self._helpers.append(await self._spawn(argv, os.devnull))

    async def aclose(self) -> None:
        self._socket.close()
        for process in [*self._helpers, *([self._process] if self._process else [])]:
            await process.stop(exit_within=0.0, term_within=0.5)


def _peer_of(stage: socket.socket) -> int:
    """The process at the other end."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    size = struct.calcsize("3i")
    credentials = stage.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return struct.unpack("3i", credentials)[0]


class SocketTransport:
    """A connection over a socket of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> bytes:
        try:
            return await self._reader.read(256 * 1024)
        except ConnectionError:
            return b""

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def drain(self) -> None:
        with suppress(ConnectionError):
            await self._writer.drain()

    @property
    def pending(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionClosed:
        return ConnectionClosed("it closed the agent's input")

    async def aclose(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()
