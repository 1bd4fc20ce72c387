"""Terminals without processes: they print and end when a test says so."""

from __future__ import annotations

import asyncio

from dragoman.errors import ResourceNotFound
from dragoman.host.terminals.provider import (
    TerminalCommand,
    TerminalExit,
    TerminalSnapshot,
    TerminalWatcher,
)
from dragoman.host.workspace.roots import Workspace


class FakeTerminals:
    """Keeps what it was asked for; the first terminals are called x, y and z."""

    def __init__(self) -> None:
        self.commands: list[TerminalCommand] = []
        self.workspaces: list[Workspace] = []
        self.released: list[str] = []
        self.ended = asyncio.Event()
        self._watchers: list[TerminalWatcher] = []

    @property
    def watcher(self) -> TerminalWatcher:
        return self._watchers[-1]

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str:
        self.workspaces.append(workspace)
        self.commands.append(command)
        self._watchers.append(watcher)
        number = len(self.commands)
        return "xyz"[number - 1] if number <= 3 else str(number)

    async def output(self, workspace: Workspace, terminal_id: str) -> TerminalSnapshot:
        if terminal_id in self.released:
            raise ResourceNotFound("released")
        return TerminalSnapshot("out", False)

    async def wait_for_exit(self, workspace: Workspace, terminal_id: str) -> TerminalExit:
        await self.ended.wait()
        return TerminalExit(0)

    async def kill(self, workspace: Workspace, terminal_id: str) -> None:
        self.ended.set()

    async def release(self, workspace: Workspace, terminal_id: str) -> None:
        self.released.append(terminal_id)

    async def release_all(self, workspace: Workspace) -> None:
        self.released.append(f"all of {workspace.session_id}")
