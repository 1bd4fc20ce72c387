"""Since when a process has been running, and the memory of it and all below it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import NamedTuple

from dragoman.process.process_tree import by_parents, walk


class ListedProcess(NamedTuple):
    """One process, as the system lists it."""

    parent: int
    started_at: float
    resident: int


class ProcessTable:
    """All processes, at one moment. Raises OSError where the system does not list them."""

    def __init__(self) -> None:
        self._all = _of_proc() if sys.platform == "linux" else _of_ps()

    def started_at(self, pid: int) -> float | None:
        seen = self._all.get(pid)
        return None if seen is None else seen.started_at

    def memory(self, root: int) -> int | None:
        """Bytes of a process and all below it; what several of them share counts once, where the
        system tells that."""
        if root not in self._all:
            return None
        below = by_parents({pid: seen.parent for pid, seen in self._all.items()})
        return sum(
            _proportional(pid) or self._all[pid].resident for pid in (root, *walk(root, below))
        )


def _proportional(pid: int) -> int:
    if sys.platform == "linux":
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                for line in file:
                    if line.startswith(b"Pss:"):
                        return int(line.split()[1]) << 10
        except OSError:
            return 0  # it keeps that to itself, as our helpers do, or it has ended
    return 0


def _of_proc() -> dict[int, ListedProcess]:
    with open("/proc/stat", "rb") as file:
        booted = next(int(line.split()[1]) for line in file if line.startswith(b"btime "))
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    found: dict[int, ListedProcess] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        started_at = booted + int(fields[19]) / ticks
        found[int(name)] = ListedProcess(int(fields[1]), started_at, int(fields[21]) * page)
    return found


def _of_ps() -> dict[int, ListedProcess]:
    command = ["ps", "-A", "-o", "pid=,ppid=,rss=,etime="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[int, ListedProcess] = {}
    for line in listed.stdout.splitlines():
        pid, parent, kib, elapsed = line.split()
        found[int(pid)] = ListedProcess(
            int(parent), time.time() - seconds_of(elapsed), int(kib) << 10
        )
    return found


def seconds_of(elapsed: str) -> float:
    """`[[days-]hours:]minutes:seconds`, as `ps` writes it."""
    days, _, clock = elapsed.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds + int(days or 0) * 86400
