"""Measures a terminal under a flood, in a process of its own: `flood.py MEGABYTES`.

Prints one JSON object: the bytes its watcher saw, MB/s, how far the memory peak rose, and how
many mebibytes are still there at the end. With `--pipe` there is no PTY; with `--hoard` the
watcher keeps all it is told, as a control.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from typing import NamedTuple

from dragoman.host.terminals.provider import TerminalCommand, TerminalExit
from dragoman.host.terminals.pty import LocalTerminals
from dragoman.host.workspace.roots import Workspace

MEGABYTE = 1_000_000
PRINTER = """if True:
    import os, sys
    line = "the quick brown fox jumps over äöü €".encode().ljust(49) + b"\\n"
    left = int(sys.argv[1])
    block = line * 1000
    while left > 0:
        left -= os.write(1, block[:left])
"""


class Flood(NamedTuple):
    """What one flood cost."""

    seen: int
    megabytes_per_second: float
    peak_growth_mib: float
    left_mib: float


class Counter:
    """A watcher that keeps nothing, or everything."""

    def __init__(self, hoard: bool) -> None:
        self.seen = 0
        self._hoard = hoard
        self._kept: list[str] = []

    def on_output(self, terminal_id: str, text: str) -> None:
        self.seen += len(text.encode())
        if self._hoard:
            self._kept.append(text)

    def on_exit(self, terminal_id: str, ended: TerminalExit) -> None:
        return


async def flood(megabytes: int, *, use_pty: bool = True, hoard: bool = False) -> Flood:
    """Print so much in a terminal that keeps the last mebibyte of it."""
    terminals = LocalTerminals(use_pty=use_pty)
    workspace = Workspace("flood", tempfile.gettempdir())
    await _print(terminals, workspace, 0, Counter(hoard))  # what only the first command costs
    before, memory, start = _peak_mib(), _resident_mib(), time.perf_counter()
    watcher = Counter(hoard)
    await _print(terminals, workspace, megabytes, watcher)
    seconds = time.perf_counter() - start
    await terminals.aclose()
    rate = megabytes / seconds
    return Flood(watcher.seen, rate, _peak_mib() - before, _resident_mib() - memory)


async def _print(
    terminals: LocalTerminals, workspace: Workspace, megabytes: int, watcher: Counter
) -> None:
    words = ("-I", "-S", "-c", PRINTER, str(megabytes * MEGABYTE))
    terminal_id = await terminals.create(
        workspace, TerminalCommand(command=sys.executable, args=words), watcher
    )
    await terminals.wait_for_exit(workspace, terminal_id)
    kept = await terminals.output(workspace, terminal_id)
    assert kept.truncated == (megabytes > 0)
    assert len(kept.output.encode()) <= 1024 * 1024
    await terminals.release(workspace, terminal_id)


def _peak_mib() -> float:
    # Not ru_maxrss where it can be helped: it starts with the size of whoever started us.
    if sys.platform == "linux":
        return _status_mib("VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024


def _resident_mib() -> float:
    return _status_mib("VmRSS:") if sys.platform == "linux" else _peak_mib()


def _status_mib(name: str) -> float:
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024


if __name__ == "__main__":
    result = asyncio.run(
        flood(int(sys.argv[1]), use_pty="--pipe" not in sys.argv, hoard="--hoard" in sys.argv)
    )
    sys.stdout.write(json.dumps(result._asdict()))
