"""A real `dragoman serve` for the page's tests, on a home and a workspace of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from support.warm_command import WarmProcess, warm_command

START_SECONDS = 120
PROGRAMS = Path(__file__).parent / "programs" / "agents.py"


@dataclass
class Site:
    """Where it is served, and the folders it works on; it can be ended and started again."""

    home: Path
    workspace: Path
    port: int
    token: str = ""
    arguments: tuple[str, ...] = ()
    process: WarmProcess | None = field(default=None, repr=False)
    said: TextIO | None = field(default=None, repr=False)
    was_killed: bool = False
    """It may have been in the middle of an answer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def start(self) -> None:
        async with asyncio.timeout(START_SECONDS):
            line = await asyncio.to_thread(self._start)
        self.token = line.strip().partition("#token=")[2]
        assert self.token, f"the server did not say where it is: {line!r}"

    def _start(self) -> str:
        """What it says first."""
        command = ["dragoman", "serve", "--port", str(self.port)]
        command += ["--token-file", str(self.home / "token"), *self.arguments]
        env = os.environ | {"DRAGOMAN_HOME": str(self.home)}
        reader, writer = os.pipe()
        self.said = os.fdopen(reader)
        with open(os.devnull, "r+b") as nothing:
            streams = (nothing.fileno(), writer, nothing.fileno())
            self.process = warm_command().start(command, env, self.workspace, streams)
        os.close(writer)
        return self.said.readline()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is None:
            return
        self.was_killed |= how == signal.SIGKILL
        self.process.send_signal(how)
        await asyncio.to_thread(self.process.wait)
        self.process.close()
        self.process = None
        if self.said is not None:
            self.said.close()


@asynccontextmanager
async def served(folder: Path, *arguments: str) -> AsyncGenerator[Site]:
    """The site, running; the caller may have put sessions into its home before."""
    site = prepared(folder, *arguments)
    try:
        await site.start()
        yield site
    finally:
        await site.stop()
        _ports.append(site.port)


def scripted(folder: Path, agent: str, *, called: str = "") -> tuple[str, str]:
    """The arguments with which the server has this agent of the tests alone."""
    target = f"{PROGRAMS}:{agent}"
    command = {"command": sys.executable, "args": ["-m", "dragoman.testing.serve", target]}
    path = folder / "settings.json"
    path.write_text(json.dumps({"agent_servers": {called or agent: command}}))
    return "--settings", str(path)


def prepared(folder: Path, *arguments: str) -> Site:
    home, workspace = folder / "home", folder / "project"
    home.mkdir(mode=0o700, exist_ok=True)
    workspace.mkdir(exist_ok=True)
    (workspace / "README.md").write_text("# A project\n\nSmall.\n")
    return Site(home, workspace, _ports.pop() if _ports else _free_port(), arguments=arguments)


_ports: list[int] = []
"""Those of servers that have ended: what a browser knows by its address it need not read again."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
