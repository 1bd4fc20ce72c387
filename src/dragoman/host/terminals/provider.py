"""Terminals as an agent sees them: what it may ask for, and what it gets.

The words and the Protocol only; `pty.py` has the provider that runs real processes.
"""

from __future__ import annotations

import os
import re
from typing import Protocol

import msgspec

from dragoman.host.workspace.roots import Workspace

_id = re.compile(r"term_[0-9a-f]{32}\Z")


def new_terminal_id() -> str:
    return f"term_{os.urandom(16).hex()}"


def is_terminal_id(text: str) -> bool:
    """Whether it is such an id: nobody else's terminals are called so."""
    return _id.match(text) is not None


class TerminalCommand(msgspec.Struct, kw_only=True, frozen=True):
    """What to run. Without `args`, `command` may be a whole shell line."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    output_byte_limit: int | None = None


class TerminalExit(msgspec.Struct, frozen=True):
    """How a command ended: with an exit code, or by a signal."""

    exit_code: int | None = None
    signal: str | None = None


class TerminalSnapshot(msgspec.Struct, frozen=True):
    """The output that is kept so far, and the exit if it has ended."""

    output: str
    truncated: bool
    exit: TerminalExit | None = None


class TerminalWatcher(Protocol):
    """Is notified of what happens in a terminal, in order."""

    def on_output(self, terminal_id: str, text: str) -> None: ...

    def on_exit(self, terminal_id: str, ended: TerminalExit) -> None: ...


class TerminalsProvider(Protocol):
    """Runs commands for an agent, once that has been allowed.

    Raises ResourceNotFound for an unknown or released id; InternalError, with the reason, if a
    command cannot start. `kill` and `release` may be repeated.
    """

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str: ...

    async def output(self, workspace: Workspace, terminal_id: str) -> TerminalSnapshot: ...

    async def wait_for_exit(self, workspace: Workspace, terminal_id: str) -> TerminalExit: ...

    async def kill(self, workspace: Workspace, terminal_id: str) -> None: ...

    async def release(self, workspace: Workspace, terminal_id: str) -> None: ...

    async def release_all(self, workspace: Workspace) -> None: ...
