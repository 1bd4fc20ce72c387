"""Runs commands for an agent on this machine, each on a PTY of its own: the default provider.

A terminal belongs to one session and is unknown to every other. Whether a command may run was
decided before; here its working directory is opened beneath the roots, and nothing of it is
left once it is released.

Tells its watcher everything in order: the output, then the end of the command, then whatever
processes that it left behind still print. Knows nothing of sessions, ids of others or policy.

Pure. Memory stays within the limit and a few blocks, however much is appended; nothing here
knows where the bytes come from.

The PTY changes nothing on its way (no echo, no carriage returns) and gives the reader
it the end of the file at once: nobody is there to type. Knows bytes only, and no processes.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dragoman.errors import InternalError, ResourceNotFound, StartError
from dragoman.fence.plan import FencePlan
from dragoman.host.serial_worker import Lane
from dragoman.host.terminals.provider import (
    TerminalCommand,
    TerminalExit,
    TerminalSnapshot,
    TerminalWatcher,
    new_terminal_id,
)
from dragoman.host.workspace.held_directory import OpenDirectory
from dragoman.host.workspace.jail import Jail, recognise
from dragoman.host.workspace.roots import Workspace
from dragoman.process import descriptors
from dragoman.process.child import Process
from dragoman.process.spawn import spawn

if TYPE_CHECKING:
    from dragoman.host.fence.fence import Fence


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
    when something that cannot be ended continues printing. Commands run inside the `fence`.
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
        fence: Fence | None = None,
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
        self._fence = fence
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
        env = _environment(directory.name, command.env)
        try:
            await running.start(
                _argv(command),
                env=env if self._fence is None else self._fence.environment(env),
                cwd=directory.entrance,
                use_pty=self._use_pty,
                fence=None if self._fence is None else await self._fence.open(command.command),
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


class RunningCommand:
    """A command from before its start until nothing of it is left."""

    def __init__(self, terminal_id: str, watcher: TerminalWatcher, *, keep: int) -> None:
        self.id = terminal_id
        self._watcher = watcher
        self._tail = OutputTail(keep)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._loop = asyncio.get_running_loop()
        self._settled = asyncio.Event()
        self._settled.set()
        self._ended: asyncio.Future[TerminalExit] = self._loop.create_future()
        self._output: Output | None = None
        self._process: Process | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        use_pty: bool,
        fence: FencePlan | None = None,
    ) -> None:
        """The watcher is not called before this returns. Raises OSError or StartError."""
        if self._stopping is not None:
            raise StartError(argv[0], "its terminal was released before it started")
        self._settled.clear()
        try:
            output = Output(self._take, use_pty=use_pty)
            try:
                self._process = await _spawn(argv, env, cwd, output.theirs, use_pty, fence)
            except BaseException:
                output.close()
                raise
            self._listen(output, self._process, use_pty)
        finally:
            self._settled.set()

    def _listen(self, output: Output, process: Process, use_pty: bool) -> None:
        self._output = output
        if not use_pty:
            output.let_go()
        output.begin()
        process.on_exit(lambda: self._end(_exit_of(process)))

    def snapshot(self) -> TerminalSnapshot:
        ended = self._ended.result() if self._ended.done() else None
        kept = self._tail.read(final=ended is not None)
        return TerminalSnapshot(kept.text, kept.truncated, ended)

    async def wait(self) -> TerminalExit:
        await asyncio.wait([self._ended])
        return self._ended.result()

    def stop(self, grace: float) -> asyncio.Task[None]:
        """TERM to the whole tree, and KILL to what is left of it after `grace`.

        Continues although nobody waits for it; the second call gives the same task.
        """
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._stop(grace))
        return self._stopping

    async def _stop(self, grace: float) -> None:
        await self._settled.wait()
        if self._process is None or self._output is None:
            return  # it did not start
        await self._process.stop(exit_within=0, term_within=grace)
        # Who waited for it may run before `on_exit` does, which knows no more than we do.
        status = self._process.status
        self._end(_exit_of(self._process) if status else TerminalExit(signal="SIGKILL"))
        self._output.drain()

    @property
    def is_heard(self) -> bool:
        """Whether something may still be printed."""
        return self._output is not None and self._output.is_open

    def close(self) -> None:
        """Stop listening; to be called when the command was stopped."""
        if self._output is not None:
            self._output.close()

    def _take(self, data: bytes) -> None:
        self._tail.append(data)
        self._tell(self._decoder.decode(data))

    def _tell(self, text: str) -> None:
        if text:
            self._watcher.on_output(self.id, text)

    def _end(self, ended: TerminalExit) -> None:
        if self._ended.done() or self._output is None:
            return
        try:
            self._output.drain()
            self._output.let_go()
            self._tell(self._decoder.decode(b"", True))
        finally:  # whatever becomes of a watcher, those who wait must hear of the end
            self._ended.set_result(ended)
        self._watcher.on_exit(self.id, ended)


async def _spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    output: int,
    use_pty: bool,
    fence: FencePlan | None,
) -> Process:
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        return await spawn(
            argv,
            env=env,
            cwd=cwd,
            stdin=nothing,
            stdout=output,
            stderr=output,
            tty=use_pty,
            fence=fence,
        )
    finally:
        os.close(nothing)


def _exit_of(process: Process) -> TerminalExit:
    status = process.status
    assert status is not None
    return TerminalExit(status.code, status.signal)


# What is dropped at once, so that nothing that stays is ever moved.
_BLOCK = 64 * 1024
_LONGEST_CHARACTER = 4
_decoder = codecs.getincrementaldecoder("utf-8")


class Kept(NamedTuple):
    """Text of at most the limit in UTF-8, and whether something before it was dropped."""

    text: str
    truncated: bool


class OutputTail:
    """The last `limit` bytes of what is appended."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._blocks: deque[bytearray] = deque()
        self._size = 0
        self._total = 0

    def append(self, data: bytes) -> None:
        if not self._blocks or len(self._blocks[-1]) >= _BLOCK:
            self._blocks.append(bytearray())
        self._blocks[-1] += data
        self._size += len(data)
        self._total += len(data)
        while self._blocks and self._size - len(self._blocks[0]) >= self._limit:
            self._size -= len(self._blocks.popleft())

    def read(self, *, final: bool) -> Kept:
        """What is kept; a character that is not there in full is left out unless it is `final`."""
        truncated = self._total > self._limit
        data = b"".join(self._blocks)[max(0, self._size - self._limit) :]
        start = _boundary(data) if truncated else 0
        text = _decoder("replace").decode(data[start:], final)
        if "\ufffd" in text:
            return _within(text, self._limit, truncated)
        return Kept(text, truncated)


def _within(text: str, limit: int, truncated: bool) -> Kept:
    """Cut again where bytes that are not text became replacement characters, three bytes each."""
    data = text.encode()
    over = len(data) - limit
    if over <= 0:
        return Kept(text, truncated)
    data = data[over:]
    return Kept(data[_boundary(data) :].decode(), True)


def _boundary(data: bytes) -> int:
    """Where the first character starts, in data that may begin in the middle of one."""
    for at, byte in enumerate(data[: _LONGEST_CHARACTER - 1]):
        if byte & 0xC0 != 0x80:
            return at
    return min(len(data), _LONGEST_CHARACTER - 1)


COLUMNS, ROWS = 120, 30

# A PTY gives about 4 KiB a read whatever the size; a pipe gives it all.
_READ_SIZE = 16 * 1024
# Then others get their turn, and what was read is delivered as one piece.
_READS_A_WAKE = 16
# More than a PTY or a pipe can hold: all that was printed before someone ended.
_LAST_READS = 256


if sys.platform == "win32":

    def _open(use_pty: bool) -> tuple[int, int]:
        raise NotImplementedError

else:

    def _open(use_pty: bool) -> tuple[int, int]:
        """Our side, which does not block, and the command's."""
        descriptors.check_room_for_terminal()
        ours, theirs = descriptors.openpty() if use_pty else descriptors.pipe()
        try:
            if use_pty:
                _set_modes(theirs)
            os.set_blocking(ours, False)
        except BaseException:
            descriptors.close(ours)
            descriptors.close(theirs)
            raise
        return ours, theirs

    def _set_modes(terminal: int) -> None:
        import termios

        modes = termios.tcgetattr(terminal)
        modes[1] &= ~termios.OPOST
        modes[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON)
        # Not line by line, no byte awaited, for no time: a read returns at once with nothing.
        modes[6][termios.VMIN] = modes[6][termios.VTIME] = 0
        termios.tcsetattr(terminal, termios.TCSANOW, modes)
        termios.tcsetwinsize(terminal, (ROWS, COLUMNS))


class Output:
    """What a command prints; `take` gets it in pieces. `theirs` is the side for the command.

    Until `let_go` that side is held open here as well: on a PTY that nobody holds, reading
    fails, though the command may still open it again by its name.
    """

    def __init__(self, take: Callable[[bytes], None], *, use_pty: bool) -> None:
        self._ours, self.theirs = _open(use_pty)
        self._take = take
        self._loop = asyncio.get_running_loop()

    @property
    def is_open(self) -> bool:
        return self._ours >= 0

    def begin(self) -> None:
        """Take what is printed from now on, until the end or `close`."""
        self._loop.add_reader(self._ours, self._drain, _READS_A_WAKE)

    def let_go(self) -> None:
        """Leave the command's side to those who have it; reading ends when they close it."""
        if self.theirs >= 0:
            theirs, self.theirs = self.theirs, -1
            descriptors.close(theirs)

    def drain(self) -> None:
        """Take now what was printed up to now."""
        if self.is_open:
            self._drain(_LAST_READS)

    def close(self) -> None:
        self.let_go()
        if self.is_open:
            ours, self._ours = self._ours, -1
            self._loop.remove_reader(ours)
            descriptors.close(ours)

    def _drain(self, reads: int) -> None:
        pieces: list[bytes] = []
        piece = None
        for _ in range(reads):
            piece = self._read()
            if not piece:
                break
            pieces.append(piece)
        if piece == b"":
            self.close()
        if pieces:
            self._take(b"".join(pieces))

    def _read(self) -> bytes | None:
        """What is there, `b""` at the end, None when there is nothing now."""
        try:
            return os.read(self._ours, _READ_SIZE)
        except BlockingIOError:
            return None
        except OSError:  # EIO: a PTY whose other side is closed
            return b""

    def __del__(self) -> None:
        for descriptor in (getattr(self, "_ours", -1), getattr(self, "theirs", -1)):
            if descriptor >= 0:
                descriptors.close(descriptor)
