"""Runs commands for an agent on this machine, each on a PTY of its own: the default provider.

A terminal belongs to one session and is unknown to every other. Whether a command may run was
decided before; here its working directory is opened beneath the roots, and nothing of it is
left once it is released.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence

from dragoman.errors import InternalError, ResourceNotFound, StartError
from dragoman.host.serial_worker import Lane
from dragoman.host.terminals.provider import (
    TerminalCommand,
    TerminalExit,
    TerminalSnapshot,
    TerminalWatcher,
    new_terminal_id,
)
from dragoman.host.terminals.terminal_process import RunningCommand
from dragoman.host.workspace.held_directory import OpenDirectory
from dragoman.host.workspace.jail import Jail, recognise
from dragoman.host.workspace.roots import Workspace

_log = logging.getLogger("dragoman.host")

# Nobody is there to turn pages or to answer; a command may still be given others.
_ENVIRONMENT = {"TERM": "xterm-256color", "PAGER": "cat", "GIT_PAGER": "cat"}
# An agent can write any folder full of files: git must not take one for a repository, nor run a
# monitor that one names. Nobody's own hooks, drivers or helpers are lost by it.
_GIT_SETTINGS = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
# A release may be repeated for as long as it is remembered.
_REMEMBERED = 10_000
_LONGEST_SHOWN = 100

Key = tuple[str, str]


class LocalTerminals:
    """A `TerminalsProvider` of real processes.

    `max_terminals` is for each session, and released ones do not count. `kill_grace` is the time
    between TERM and KILL; `late_output` is how long a released terminal is still listened to
    when something that cannot be ended goes on printing.
    """

    def __init__(
        self,
        *,
        use_pty: bool = True,
        max_terminals: int = 32,
        default_output_bytes: int = 1024 * 1024,
        max_output_bytes: int = 16 * 1024 * 1024,
        cwd_outside: bool = False,
        forbidden: Sequence[str] = (),
        kill_grace: float = 2.0,
        late_output: float = 30.0,
    ) -> None:
        self._use_pty = use_pty
        self._max_terminals = max_terminals
        self._default_output_bytes = default_output_bytes
        self._max_output_bytes = max_output_bytes
        self._cwd_outside = cwd_outside
        self._forbidden = tuple(forbidden)
        recognise(self._forbidden)
        self._kill_grace = kill_grace
        self._late_output = late_output
        self._running: dict[Key, RunningCommand] = {}
        self._late: set[RunningCommand] = set()
        self._released: dict[Key, None] = {}
        self._lanes: dict[str, Lane] = {}
        self._closed = False

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str:
        """Start a command; its watcher hears nothing before the id is returned."""
        self._check(workspace, command)
        keep = self._output_bytes(command.output_byte_limit)
        running = RunningCommand(new_terminal_id(), watcher, keep=keep)
        key = (workspace.session_id, running.id)
        # Counted, and ended with the session, from before its start.
        self._running[key] = running
        try:
            await self._start(running, workspace, command)
        except BaseException:
            self._running.pop(key, None)
            raise
        _log.debug("terminal %s started", running.id)
        return running.id

    async def output(self, workspace: Workspace, terminal_id: str) -> TerminalSnapshot:
        return self._find(workspace, terminal_id).snapshot()

    async def wait_for_exit(self, workspace: Workspace, terminal_id: str) -> TerminalExit:
        return await self._find(workspace, terminal_id).wait()

    async def kill(self, workspace: Workspace, terminal_id: str) -> None:
        """End the command and all that it started; comes back when they are gone."""
        await asyncio.wait([self._find(workspace, terminal_id).stop(self._kill_grace)])

    async def release(self, workspace: Workspace, terminal_id: str) -> None:
        """Forget the terminal at once, then end what still runs."""
        key = (workspace.session_id, terminal_id)
        if key not in self._released:
            self._find(workspace, terminal_id)
            await self._release([key])

    async def release_all(self, workspace: Workspace) -> None:
        """The same for every terminal of the session, those that are just starting too."""
        self._lanes.pop(workspace.session_id, None)
        await self._release([key for key in self._running if key[0] == workspace.session_id])

    async def aclose(self) -> None:
        """Release the terminals of every session, and start no more."""
        self._closed = True
        await self._release(list(self._running))
        for running in list(self._late):
            self._forget(running)

    def _check(self, workspace: Workspace, command: TerminalCommand) -> None:
        if sys.platform not in ("linux", "darwin"):
            raise InternalError("terminals need Linux or macOS; on Windows, use WSL")
        if self._closed:
            raise InternalError("no new terminals: the client is closing")
        if not command.command.strip():
            raise _not_started(command, "the command is empty")
        limit = self._max_terminals
        if sum(session_id == workspace.session_id for session_id, _ in self._running) >= limit:
            sentence = f"the limit of {limit} terminals per session is reached; release one first"
            raise InternalError(sentence, {"limit": limit})

    async def _start(
        self, running: RunningCommand, workspace: Workspace, command: TerminalCommand
    ) -> None:
        directory = await self._open(workspace, command.cwd)
        try:
            await running.start(
                _argv(command),
                env=_environment(directory.name, command.env),
                cwd=directory.entrance,
                use_pty=self._use_pty,
            )
        except StartError as error:
            reason = error.reason.replace(directory.entrance, directory.name)
            raise _not_started(command, reason) from error
        except OSError as error:
            raise _not_started(command, f"no terminal for it ({error.strerror})") from error
        finally:
            directory.close()

    async def _open(self, workspace: Workspace, cwd: str | None) -> OpenDirectory:
        roots = ("/",) if self._cwd_outside else workspace.places
        path = workspace.cwd if cwd is None else cwd
        # A disk may be slow; a session waits for its own alone.
        lane = self._lanes.setdefault(workspace.session_id, Lane())
        jail = Jail(roots, forbidden=self._forbidden)
        return await lane.run(lambda: OpenDirectory(jail.open_directory(path)))

    def _output_bytes(self, asked: int | None) -> int:
        if asked is None:
            return self._default_output_bytes
        return max(0, min(asked, self._max_output_bytes))

    def _find(self, workspace: Workspace, terminal_id: str) -> RunningCommand:
        key = (workspace.session_id, terminal_id)
        if key in self._running:
            return self._running[key]
        shown = terminal_id[:_LONGEST_SHOWN]
        ending = "was released" if key in self._released else "does not exist"
        raise ResourceNotFound(f"the terminal {shown!r} {ending}", {"terminalId": shown})

    async def _release(self, keys: Sequence[Key]) -> None:
        # All are on their way before anything is awaited: nobody can cancel that.
        endings = [self._let_go(key) for key in keys]
        if endings:
            await asyncio.wait(endings)

    def _let_go(self, key: Key) -> asyncio.Task[None]:
        running = self._running.pop(key)
        self._released[key] = None
        if len(self._released) > _REMEMBERED:
            del self._released[next(iter(self._released))]
        self._late.add(running)
        ending = running.stop(self._kill_grace)
        ending.add_done_callback(lambda _: self._listen_a_while(running))
        return ending

    def _listen_a_while(self, running: RunningCommand) -> None:
        if running.is_heard:
            asyncio.get_running_loop().call_later(self._late_output, self._forget, running)
        else:
            self._forget(running)

    def _forget(self, running: RunningCommand) -> None:
        self._late.discard(running)
        running.close()


def _environment(directory: str, given: Mapping[str, str]) -> dict[str, str]:
    environment = {**os.environ, **_ENVIRONMENT, "PWD": directory, **given}
    return environment | _git_settings(environment.get("GIT_CONFIG_COUNT", ""))


def _git_settings(count: str) -> dict[str, str]:
    """Ours after those that are set already: the last one counts."""
    if not (count or "0").isdecimal() or len(count) > 4:
        return {}  # git refuses to run at all with such a number
    first = int(count or "0")
    settings = {"GIT_CONFIG_COUNT": str(first + len(_GIT_SETTINGS))}
    for number, (key, value) in enumerate(_GIT_SETTINGS.items(), first):
        settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return settings


def _argv(command: TerminalCommand) -> list[str]:
    """The words to run; without arguments the command is a line, for a shell."""
    if command.args:
        return [command.command, *command.args]
    import shutil  # brings compression along, for one look at the path

    bash = shutil.which("bash")
    shell = [os.path.abspath(bash), "-lc"] if bash else ["/bin/sh", "-c"]
    return [*shell, command.command]


def _not_started(command: TerminalCommand, reason: str) -> InternalError:
    shown = command.command[:_LONGEST_SHOWN]
    return InternalError(f"could not start {shown!r}: {reason}", {"reason": reason})
