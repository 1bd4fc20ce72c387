"""Processes found by a variable in their environment: the agent's, and all that a face started.

Linux only, as the lab is.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

AGENT = "DRAGOMAN_TRIAL_AGENT"
FACE = "DRAGOMAN_TRIAL"


class Mark:
    """One face of one agent: `env` for what we start, `agent_env` for the agent alone."""

    def __init__(self, name: str) -> None:
        self._value = f"{name}-{os.getpid()}"
        self.env = {FACE: self._value}
        self.agent_env = {AGENT: self._value} | self.env

    def left(self) -> list[str]:
        """The commands that still run."""
        return [_command(pid) for pid in _having(f"{FACE}={self._value}")]

    async def all_gone(self, seconds: float = 10.0) -> None:
        """Raises AssertionError when something is left after so long."""
        end = time.monotonic() + seconds
        while left := self.left():
            if time.monotonic() > end:
                raise AssertionError(f"still running: {'; '.join(left)}")
            await asyncio.sleep(0.1)

    def kill_agent(self) -> None:
        """As the system would: without a word, all of it."""
        found = _having(f"{AGENT}={self._value}")
        assert found, "the agent does not run"
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _having(setting: str) -> list[int]:
    folders = [folder for folder in Path("/proc").iterdir() if folder.name.isdecimal()]
    return [int(each.name) for each in folders if setting.encode() in _environment(each)]


def _environment(folder: Path) -> list[bytes]:
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return str(pid)
    return f"{pid} {b' '.join(words).decode(errors='replace')[:200]}"
