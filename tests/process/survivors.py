"""Finds what is left of a process tree, without any help of the code under test."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Found(NamedTuple):
    """A process that should not be there any more."""

    pid: int
    state: str
    command: str


def survivors(pidfiles: Sequence[Path], marker: str) -> list[Found]:
    """Whoever wrote itself into a file, or carries the marker in its argv or environment."""
    entries = [entry for pidfile in pidfiles for entry in _registered(pidfile)]
    by_file = [pid for pid, born in entries if started(pid) == born]
    by_marker = [pid for pid in _all_pids() if _carries(pid, marker.encode())]
    return [_describe(pid) for pid in sorted({*by_file, *by_marker})]


def survivors_after(seconds: float, pidfile: Path, marker: str) -> list[Found]:
    """What is left when the time is over; comes back as soon as there is nothing."""
    deadline = time.monotonic() + seconds
    while (left := survivors([pidfile], marker)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def registered(pidfile: Path) -> int:
    return len(_registered(pidfile))


def descendants(root: int) -> set[int]:
    """All processes below one, by a look at every process of the system."""
    parents = {pid: _stat(pid)[1:2] for pid in _all_pids()}
    found = {root}
    while fresh := {pid for pid, at in parents.items() if at and int(at[0]) in found} - found:
        found |= fresh
    return found - {root}


def started(pid: int) -> str:
    """When a process began, which tells it from a later one with the same pid."""
    fields = _stat(pid)
    return fields[19] if fields else ""


def exists(pid: int) -> bool:
    return bool(_stat(pid))


def lingers(pid: int) -> bool:
    """Whether a process is there and not merely waiting for init, its last parent, to notice."""
    return exists(pid) and _stat(pid)[:2] != ["Z", "1"]


def _registered(pidfile: Path) -> list[tuple[int, str]]:
    lines = pidfile.read_text().splitlines() if pidfile.exists() else []
    return [(int(pid), born) for pid, born in (line.split() for line in lines)]


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _stat(pid: int) -> list[str]:
    """The fields after the name: state, parent, …; none when the process is gone."""
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _carries(pid: int, marker: bytes) -> bool:
    return marker in _read(pid, "cmdline") or marker in _read(pid, "environ")


def _describe(pid: int) -> Found:
    command = _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")
    return Found(pid, (_stat(pid) or ["gone"])[0], command)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
