"""Connects to an agent of this package: in the same program, or on standard input and output.

Nothing but frames leaves on standard output: what a script prints goes to standard error. This is
the agent's end of the pipes; the host's end is `dragoman.transport.stdio`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeAlias

from dragoman.errors import ConnectionClosed
from dragoman.transport.memory import memory_pair
from dragoman.transport.pipes import DescriptorPair
from dragoman.transport.transport import Transport

Serve: TypeAlias = Callable[[Transport], Awaitable[None]]
"""Is an agent on a transport, until the client goes away."""


class StandardStreams(DescriptorPair):
    """The standard input and output of this process as a transport."""

    def __init__(self, stdin: int, stdout: int) -> None:
        # A terminal is shared with the shell, which would be surprised by what we do to it. The
        # pipes close their descriptors as soon as they can, so it is put back by others.
        terminals = [fd for fd in (stdin, stdout) if os.isatty(fd)]
        self._blocking = {os.dup(fd): os.get_blocking(fd) for fd in terminals}
        super().__init__(stdin, stdout)
        self._deaf = False
        self.lingers = False
        """Whether the process keeps running after its input has ended."""

    async def receive(self) -> bytes:
        data = await super().receive()
        while self._deaf:
            await asyncio.Event().wait()
        return data

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionClosed:
        return ConnectionClosed("the client closed the connection")

    async def aclose(self) -> None:
        self._restore()
        await super().aclose()

    def stop_reading(self) -> None:
        """Take nothing more from the pipe, so that it fills up."""
        self._deaf = True

    def ignore_term(self) -> None:
        """Have the process survive SIGTERM."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def exit(self, code: int) -> NoReturn:
        """End the process at once, whatever else was going on in it."""
        self._restore()
        os._exit(code)

    def _restore(self) -> None:
        for descriptor, blocking in self._blocking.items():
            os.set_blocking(descriptor, blocking)
            os.close(descriptor)
        self._blocking.clear()


def serve_stdio(serve: Serve) -> None:
    """Be an agent until standard input ends."""
    stdin, stdout = _take_streams()
    try:
        lingers = asyncio.run(_serve(serve, stdin, stdout))
    except KeyboardInterrupt:
        return
    while lingers:
        signal.pause()


async def _serve(serve: Serve, stdin: int, stdout: int) -> bool:
    streams = StandardStreams(stdin, stdout)
    try:
        await serve(streams)
    finally:
        await streams.aclose()
    return streams.lingers


def _take_streams() -> tuple[int, int]:
    """Standard input and output, for frames alone; `print` goes to standard error from here."""
    stdin, stdout = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if _is_file(stdin):
        stdin = _as_pipe(stdin)
    return stdin, stdout


def _is_file(descriptor: int) -> bool:
    """Something that an event loop cannot wait for: a file, or a device like the empty one."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(descriptor))


def _as_pipe(file: int) -> int:
    reader, writer = os.pipe()

    def copy() -> None:
        while data := os.read(file, 64 * 1024):
            os.write(writer, data)
        os.close(writer)

    threading.Thread(target=copy, daemon=True).start()
    return reader


class Served(ABC):
    """Knows how to `serve`; the rest is here."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def serve(self, transport: Transport) -> None:
        """Be an agent on this transport until the client goes away."""

    def connect(self) -> Transport:
        """A transport for `Client.start`, with this agent at its other end."""
        ours, theirs = memory_pair()
        task = asyncio.create_task(self.serve(ours))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return theirs

    def serve_stdio(self) -> None:
        """Be this process's agent on standard input and output until the input ends."""
        serve_stdio(self.serve)

    def close(self) -> None:
        """End every connection that `connect` made."""
        for task in self._tasks:
            if not task.get_loop().is_closed():
                task.cancel()
