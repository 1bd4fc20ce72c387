"""One command in a terminal: its process, what it prints, and its end.

Tells its watcher everything in order: the output, then the end of the command, then whatever
processes that it left behind still print. Knows nothing of sessions, ids of others or policy.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Mapping, Sequence

from dragoman.errors import StartError
from dragoman.host.output_tail import OutputTail
from dragoman.host.terminals import TerminalExit, TerminalSnapshot, TerminalWatcher
from dragoman.host.tty import Output
from dragoman.process.base import Process
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
        """Nothing is told to the watcher before this returns. Raises OSError or StartError."""
        if self._stopping is not None:
            raise StartError(argv[0], "its terminal was released before the start")
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
