"""Agents with processes of their own below them, which spend while they wait for an answer."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing import faults as f

_STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"


def _begin_children(folder: str) -> None:
    """One child, one in a session of its own, and one that ignores what ends the others; their
    pids go to a file."""
    sleep = [sys.executable, "-c", "import time; time.sleep(3600)"]
    children = [
        subprocess.Popen(sleep),
        subprocess.Popen(sleep, start_new_session=True),
        subprocess.Popen([sys.executable, "-c", _STUBBORN], start_new_session=True),
    ]
    pids = [os.getpid(), *(child.pid for child in children)]
    os.mkfifo(Path(folder, "asked"))
    Path(folder, "pids").write_text(" ".join(map(str, pids)))


async def _spends(turn: AgentTurn) -> None:
    _begin_children(turn.cwd)
    asking = asyncio.create_task(turn.request_permission("a", title="May I?", kind="execute"))
    await asyncio.to_thread(Path(turn.cwd, "asked").read_text)  # until the test sees the question
    turn.report_usage(1, 10, 0.6)
    turn.tool_call("late", "One call too many")
    await asking
    await turn.cancelled.wait()


obeying = ScriptedAgent(_spends)
stubborn = ScriptedAgent([f.ignore_term(), f.linger(), _spends, f.never_answer()])
