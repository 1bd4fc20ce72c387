"""An agent as a child process: its standard input and output are the connection.

Starts the agent, ends it with all its descendants, and says why a connection was lost. Standard
error is kept for that day. Nothing here looks inside the bytes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Protocol, Self

import msgspec

from dragoman.errors import (
    AgentExited,
    CommandNotFound,
    ConnectionClosed,
    ConnectionLost,
    NotAnAgent,
    PeerStalled,
    StartError,
)
from dragoman.fence.plan import FencePlan
from dragoman.process import descriptors
from dragoman.process.child import ExitStatus, Process
from dragoman.process.spawn import spawn
from dragoman.transport.pipes import DescriptorPair, TailPipe
from dragoman.transport.transport import Side

# A descendant may hold the output open forever after the agent itself has ended.
_LAST_WORDS_SECONDS = 0.3
# Between the end of the output, or of the input, and the end of the process.
_STATUS_SECONDS = 1.0
# What a shell, and `env`, exit with when they do not find the command they were given.
_NOT_FOUND_CODE = 127


class AgentCommand(msgspec.Struct, frozen=True):
    """How to start an agent. `env` is added to our own environment.

    For a command that leads to another machine, such as `ssh`, set `files` to `"there"`.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    files: Side = "here"
    name: str = ""
    """The agent's display name, if it differs from the command."""

    def __repr__(self) -> str:
        # Arguments and values may be secrets, and a repr ends up in logs.
        names = ", ".join(sorted(self.env))
        return f"<AgentCommand {self.command!r}, {len(self.args)} arguments, env: {names or '-'}>"


class Enclosure(Protocol):
    """What is built around a program that is started here."""

    async def open(self, command: str) -> FencePlan | None:
        """The fence for this program, if there is one. Raises FenceError."""
        ...

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The variables of a program inside."""
        ...


class StdioTransport(DescriptorPair):
    """The connection to an agent that runs as our child process."""

    def __init__(
        self, command: AgentCommand, process: Process, stdin: int, stdout: int, stderr: int
    ) -> None:
        super().__init__(stdout, stdin, self._refused)
        self._command = command.command
        self._name = command.name
        self._process = process
        self._errors = TailPipe(stderr)
        self._lost = 0
        self._closing = False
        process.on_exit(self._exited)

    @classmethod
    async def start(cls, command: AgentCommand, fence: Enclosure | None = None) -> Self:
        """Start the agent; raises `CommandNotFound` or another `StartError`."""
        plan = None if fence is None else await fence.open(command.command)
        env = os.environ | command.env
        with ExitStack() as ours, ExitStack() as theirs:
            child_stdin, stdin = _pipe(command, theirs, ours)
            stdout, child_stdout = _pipe(command, ours, theirs)
            stderr, child_stderr = _pipe(command, ours, theirs)
            process = await spawn(
                [command.command, *command.args],
                env=env if fence is None else fence.environment(env),
                cwd=command.cwd,
                stdin=child_stdin,
                stdout=child_stdout,
                stderr=child_stderr,
                fence=plan,
            )
            ours.pop_all()
            return cls(command, process, stdin, stdout, stderr)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def unread(self) -> int:
        """What was sent and not read, as far as the kernel can tell: little of it is queued."""
        return self._input.unread

    async def failure(self, *, spoke: bool, printed: str) -> ConnectionLost | StartError:
        """Why the agent's output ended."""
        if self._closing:
            return ConnectionClosed()
        code, signal = await self._status() or (None, None)
        if self._lost and self._process.status is None:
            return PeerStalled(self._lost)
        stderr = self._errors.text()
        if spoke:
            return AgentExited(
                self._command, code=code, signal=signal, stderr=stderr, name=self._name
            )
        if code == _NOT_FOUND_CODE:
            return CommandNotFound(self._command, _last_line(stderr) or "it exited with code 127")
        return NotAnAgent(self._command, code=code, signal=signal, stderr=stderr, printed=printed)

    async def aclose(self, *, exit_within: float = 2.0, term_within: float = 3.0) -> None:
        """Close the agent's input, wait, TERM, wait, KILL; afterwards nothing of it is left.

        When cancelled, KILL at once.
        """
        self._closing = True
        self._output.discard()
        self._input.finish()
        try:
            await self._process.stop(exit_within=exit_within, term_within=term_within)
        finally:
            for pipe in (self._input, self._output, self._errors):
                pipe.close()

    async def _status(self) -> ExitStatus | None:
        try:
            async with asyncio.timeout(_STATUS_SECONDS):
                return await self._process.wait()
        except TimeoutError:
            return None

    def _exited(self) -> None:
        asyncio.get_running_loop().call_later(_LAST_WORDS_SECONDS, self._output.cut)

    def _refused(self, lost: int) -> None:
        """What the agent has not read it will never answer: if it lives on, this is the end."""
        self._lost = lost
        asyncio.get_running_loop().call_later(_STATUS_SECONDS, self._output.cut)


def _pipe(command: AgentCommand, reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    try:
        ends = descriptors.pipe()
    except OSError as error:
        raise StartError(command.command, f"no pipe to talk to it ({error.strerror})") from error
    reader.callback(descriptors.close, ends[0])
    writer.callback(descriptors.close, ends[1])
    return ends


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2].strip()
