"""`dragoman serve` in which something blocks for good: a thread, or the event loop itself.

It waits for a FIFO that nobody writes to or, with "log", for the reader of its log.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from dragoman.web.server.lifecycle import ServeOptions, serve

HOW, SETTINGS = sys.argv[1:]
FIFO = Path(os.environ["DRAGOMAN_HOME"]) / "fifo"


def wait() -> None:
    with open(FIFO, "rb"):
        pass


def announce(address: str) -> None:
    os.write(1, f"{address}\n".encode())
    if HOW == "thread":
        asyncio.get_running_loop().run_in_executor(None, wait)


def log(line: str) -> None:
    os.write(2, f"{line}\n".encode())
    if HOW == "loop" and "POST" in line and "/prompt" in line:
        asyncio.get_running_loop().call_soon(wait)


os.mkfifo(FIFO)
settings = ServeOptions(
    host="127.0.0.1",
    port=0,
    cwd=os.getcwd(),
    settings=SETTINGS,
    grace_seconds=30.0 if HOW == "thread" else 1.0,
)
serve(settings, announce, log)
