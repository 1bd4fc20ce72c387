"""A command the agent runs itself, shown to the client as a terminal of the agent's own."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.testing.v2.turn import TurnV2

_MOST_AT_ONCE = 64 * 1024


class Display:
    """One process and what it printed so far."""

    def __init__(self, terminal_id: str, turn: TurnV2) -> None:
        self.id = terminal_id
        self._turn = turn
        self._printed = bytearray()
        self._process: asyncio.subprocess.Process | None = None
        self._showing: asyncio.Task[dict[str, Any]] | None = None

    @property
    def output(self) -> str:
        return self._printed.decode("utf-8", "replace")

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, argv: Sequence[str], line: str, cwd: str) -> None:
        self._tell({"command": line, "cwd": cwd, "capabilities": {"cancel": {}}})
        try:
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            self._print(f"{argv[0]}: {error.strerror}\n".encode())
        self._showing = asyncio.create_task(self._show(self._process))

    async def _show(self, process: asyncio.subprocess.Process | None) -> dict[str, Any]:
        code = 127
        if process is not None:
            assert process.stdout is not None
            while data := await process.stdout.read(_MOST_AT_ONCE):
                self._print(data)
            code = await process.wait()
        ended: dict[str, Any] = {"exitCode": code} if code >= 0 else {"signal": _name(-code)}
        self._tell({"exitStatus": ended, "capabilities": None})
        return {"exitCode": None, "signal": None} | ended

    def _print(self, data: bytes) -> None:
        self._printed += data
        told = base64.b64encode(data).decode()
        chunk = {"sessionUpdate": "terminal_output_chunk", "terminalId": self.id, "data": told}
        self._turn.update(chunk, keep=False)

    def _tell(self, now: dict[str, Any]) -> None:
        told = {"sessionUpdate": "terminal_update", "terminalId": self.id, **now}
        self._turn.update(told, keep=False)

    async def ended(self) -> dict[str, Any]:
        assert self._showing is not None
        return await asyncio.shield(self._showing)

    def kill(self) -> None:
        """End it with everything it started, if it still runs."""
        if self._process is not None and self.runs:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
