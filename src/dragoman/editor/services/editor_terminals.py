"""Terminals of an agent in its editor, where that offers them; else on this machine.

Whether a command may run was decided before. What the editor's terminal prints is recorded, so that
other windows see it, too.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import msgspec

from dragoman.editor.open_editors import EditorSession, OpenEditors
from dragoman.errors import DragomanError, InternalError
from dragoman.host.terminals.provider import (
    TerminalCommand,
    TerminalExit,
    TerminalSnapshot,
    TerminalsProvider,
    TerminalWatcher,
)
from dragoman.host.workspace.roots import Workspace
from dragoman.schema import codec, v1

logger = logging.getLogger("dragoman.editor")

_LOOK_SECONDS = 0.3
"""How often what a terminal of an editor prints is recorded while it runs."""
_OVERLAP = 4096
"""Characters by which output is continued of which the editor has dropped the beginning."""

_Key = tuple[str, str]


class EditorTerminals:
    """Those of the editor that has the session open, else `local` ones."""

    def __init__(self, editors: OpenEditors, local: TerminalsProvider) -> None:
        self._editors = editors
        self._local = local
        self._running: dict[_Key, _EditorTerminal] = {}

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str:
        served = self._editors.of(workspace.session_id)
        if served is None or not served.link.offers.terminals:
            return await self._local.create(workspace, command, watcher)
        terminal = await _created(served, workspace, command, watcher)
        self._running[workspace.session_id, terminal.id] = terminal
        return terminal.id

    async def output(self, workspace: Workspace, terminal_id: str) -> TerminalSnapshot:
        terminal = self._running.get((workspace.session_id, terminal_id))
        if terminal is None:
            return await self._local.output(workspace, terminal_id)
        return await terminal.look()

    async def wait_for_exit(self, workspace: Workspace, terminal_id: str) -> TerminalExit:
        terminal = self._running.get((workspace.session_id, terminal_id))
        if terminal is None:
            return await self._local.wait_for_exit(workspace, terminal_id)
        return await terminal.ended()

    async def kill(self, workspace: Workspace, terminal_id: str) -> None:
        terminal = self._running.get((workspace.session_id, terminal_id))
        if terminal is None:
            await self._local.kill(workspace, terminal_id)
        else:
            await terminal.ask("kill")

    async def release(self, workspace: Workspace, terminal_id: str) -> None:
        terminal = self._running.pop((workspace.session_id, terminal_id), None)
        if terminal is None:
            await self._local.release(workspace, terminal_id)
        else:
            await terminal.release()

    async def release_all(self, workspace: Workspace) -> None:
        for session_id, terminal_id in list(self._running):
            if session_id == workspace.session_id:
                with suppress(DragomanError):
                    await self.release(workspace, terminal_id)
        await self._local.release_all(workspace)


async def _created(
    served: EditorSession, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
) -> _EditorTerminal:
    request = v1.CreateTerminalRequest(
        session_id=served.session_id,
        command=command.command,
        args=list(command.args),
        env=[v1.EnvVariable(name=name, value=value) for name, value in command.env.items()],
        cwd=str(command.cwd or workspace.cwd),
        output_byte_limit=command.output_byte_limit,
    )
    raw = await served.link.call("terminal/create", request)
    terminal_id = codec.decode(raw, v1.CreateTerminalResponse).terminal_id
    served.link.terminals[terminal_id] = None
    return _EditorTerminal(served, terminal_id, watcher)


class _EditorTerminal:
    """One terminal of an editor, and what of its output is recorded."""

    def __init__(self, served: EditorSession, terminal_id: str, watcher: TerminalWatcher) -> None:
        self.id = terminal_id
        self._served = served
        self._watcher = watcher
        self._seen = ""
        self._ending = asyncio.create_task(self._until_ended())
        self._ending.add_done_callback(_retrieved)

    async def ask(self, verb: str) -> msgspec.Raw:
        params = {"sessionId": self._served.session_id, "terminalId": self.id}
        return await self._served.link.call(f"terminal/{verb}", params)

    async def look(self) -> TerminalSnapshot:
        """The output as the editor has it; what is new in it is recorded."""
        now = codec.decode(await self.ask("output"), v1.TerminalOutputResponse)
        self._note(now.output)
        status = now.exit_status
        ended = None if status is None else TerminalExit(status.exit_code, status.signal)
        return TerminalSnapshot(now.output, now.truncated, ended)

    async def ended(self) -> TerminalExit:
        """Raises InternalError where the editor has gone."""
        return await asyncio.shield(self._ending)

    async def release(self) -> None:
        with suppress(DragomanError):
            await self.look()
        self._ending.cancel()
        await self.ask("release")

    async def _until_ended(self) -> TerminalExit:
        waiting = asyncio.create_task(self.ask("wait_for_exit"))
        try:
            while not waiting.done():
                await asyncio.wait((waiting,), timeout=_LOOK_SECONDS)
                await self.look()
            status = codec.decode(waiting.result(), v1.WaitForTerminalExitResponse)
        except DragomanError as error:
            self._watcher.on_exit(self.id, TerminalExit())
            raise InternalError(f"the editor's terminal is gone: {error}") from error
        finally:
            waiting.cancel()
        ended = TerminalExit(status.exit_code, status.signal)
        self._watcher.on_exit(self.id, ended)
        return ended

    def _note(self, output: str) -> None:
        new = _continued(self._seen, output)
        self._seen = output
        if new:
            self._watcher.on_output(self.id, new)


def _retrieved(ending: asyncio.Task[TerminalExit]) -> None:
    """Nobody may wait for a terminal."""
    if not ending.cancelled():
        ending.exception()


def _continued(before: str, now: str) -> str:
    """What `now` has after `before`, of which the beginning may be gone."""
    if now.startswith(before):
        return now[len(before) :]
    end = before[-_OVERLAP:]
    at = now.rfind(end)
    return now if at < 0 else now[at + len(end) :]
