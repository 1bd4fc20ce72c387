"""Terminals for tests, and a watcher that remembers what it was told."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.terminals.provider import TerminalCommand, TerminalExit, TerminalSnapshot
from dragoman.host.terminals.pty import LocalTerminals
from dragoman.host.workspace.roots import Workspace

KINDS = pytest.mark.parametrize("use_pty", [True, False], ids=["pty", "pipe"])
OK = TerminalExit(0)
SECONDS = 60.0
"""Only a failure takes that long."""
KILLED = TerminalExit(None, "SIGKILL")
# `sleep` alone would be asked to end by TERM, and do so.
DEAF = "trap '' TERM; echo up; while :; do sleep 0.05; done"
POLITE = """if True:
    import os, signal
    signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"bye\\n"), os._exit(5)))
    os.write(1, b"up\\n")
    while True:
        signal.pause()
"""


class Told:
    """A watcher: everything in the order in which it came."""

    def __init__(self) -> None:
        self.all: list[str | TerminalExit] = []
        self.ids: set[str] = set()
        self._news = asyncio.Event()

    def on_output(self, terminal_id: str, text: str) -> None:
        self._note(terminal_id, text)

    def on_exit(self, terminal_id: str, ended: TerminalExit) -> None:
        self._note(terminal_id, ended)

    def _note(self, terminal_id: str, news: str | TerminalExit) -> None:
        self.ids.add(terminal_id)
        self.all.append(news)
        self._news.set()

    @property
    def text(self) -> str:
        return "".join(news for news in self.all if isinstance(news, str))

    @property
    def ends(self) -> list[TerminalExit]:
        return [news for news in self.all if isinstance(news, TerminalExit)]

    async def until(self, text: str) -> None:
        """Wait until this was printed."""
        async with asyncio.timeout(SECONDS):
            while text not in self.text:
                self._news.clear()
                await self._news.wait()


class Bench:
    """A provider with one session in one folder."""

    def __init__(self, provider: LocalTerminals, workspace: Workspace) -> None:
        self.provider = provider
        self.workspace = workspace
        self.told = Told()

    async def create(self, command: str, *args: str, **options: Any) -> str:
        wanted = TerminalCommand(command=command, args=args, **options)
        return await self.provider.create(self.workspace, wanted, self.told)

    async def run(self, command: str, *args: str, **options: Any) -> TerminalSnapshot:
        """Run to the end: what was printed, and how it ended."""
        terminal_id = await self.create(command, *args, **options)
        await self.wait(terminal_id)
        return await self.output(terminal_id)

    async def output(self, terminal_id: str) -> TerminalSnapshot:
        return await self.provider.output(self.workspace, terminal_id)

    async def wait(self, terminal_id: str) -> TerminalExit:
        async with asyncio.timeout(SECONDS):
            return await self.provider.wait_for_exit(self.workspace, terminal_id)

    async def kill(self, terminal_id: str) -> None:
        await self.provider.kill(self.workspace, terminal_id)

    async def release(self, terminal_id: str) -> None:
        await self.provider.release(self.workspace, terminal_id)

    async def release_all(self) -> None:
        await self.provider.release_all(self.workspace)


@asynccontextmanager
async def bench(
    cwd: Path, *, session_id: str = "session", added: tuple[str, ...] = (), **options: Any
) -> AsyncGenerator[Bench]:
    provider = LocalTerminals(**options)
    with pytest.MonkeyPatch.context() as patch:
        # A login shell would read the start-up files of whoever runs the tests.
        patch.setenv("HOME", str(cwd))
        try:
            yield Bench(provider, Workspace(session_id, str(cwd), added))
        finally:
            await provider.aclose()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not happened():  # noqa: ASYNC110 - nothing tells us of it
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
