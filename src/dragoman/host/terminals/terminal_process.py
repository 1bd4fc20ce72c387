"""One command in a terminal: its process, its output, and its end.

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
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dragoman.errors import StartError
from dragoman.host.terminals.provider import TerminalExit, TerminalSnapshot, TerminalWatcher
from dragoman.process import descriptors
from dragoman.process.child import Process
from dragoman.process.spawn import spawn


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
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, use_pty: bool
    ) -> None:
        """The watcher is not called before this returns. Raises OSError or StartError."""
        if self._stopping is not None:
            raise StartError(argv[0], "its terminal was released before it started")
        self._settled.clear()
        try:
            output = Output(self._take, use_pty=use_pty)
            try:
                self._process = await _spawn(argv, env, cwd, output.theirs, use_pty)
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

        Goes on although nobody waits for it; the second call gives the same task.
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
    argv: Sequence[str], env: Mapping[str, str], cwd: str, output: int, use_pty: bool
) -> Process:
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        return await spawn(
            argv, env=env, cwd=cwd, stdin=nothing, stdout=output, stderr=output, tty=use_pty
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
# More than a PTY or a pipe can hold: all that was printed before somebody ended.
_LAST_READS = 256


if sys.platform == "win32":

    def _open(use_pty: bool) -> tuple[int, int]:
        raise NotImplementedError

else:

    def _open(use_pty: bool) -> tuple[int, int]:
        """Our side, which does not block, and the command's."""
        ours, theirs = os.openpty() if use_pty else descriptors.pipe()
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
