"""Agents whose hub was killed: noted while they run, and ended by the next hub that starts.

This is the second line: where a keeper stands behind each child, nothing is left to be found. Only
a process with the very pid and start time that was noted is ended, never one that took its place.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.data_directory import make_private
from dragoman.hub.owner import is_gone, started
from dragoman.store.records import Owner

logger = logging.getLogger("dragoman.hub")


class _Child(msgspec.Struct):
    pid: int
    started: str


class _Note(msgspec.Struct):
    owner: Owner
    children: list[_Child]


class Orphans:
    """The notes of all hubs on this machine, a file each in `directory`."""

    def __init__(self, directory: Path, owner: Owner) -> None:
        self._directory = directory
        self._owner = owner
        self._file = directory / f"{owner.id}.json"

    def note(self, pids: Sequence[int]) -> None:
        """These run now; what was noted before no longer counts."""
        if not pids:
            self._file.unlink(missing_ok=True)
            return
        children = [_Child(pid, started(pid)) for pid in pids]  # raises OSError, as writing does
        make_private(self._directory)
        fresh = self._file.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(_Note(self._owner, children)))
        fresh.replace(self._file)

    def sweep(self) -> list[int]:
        """End what hubs that are gone have left; the pids that were ended."""
        ended: list[int] = []
        for file in self._directory.glob("*.json"):
            note = _read(file)
            if note is not None and is_gone(note.owner):
                ended += [child.pid for child in note.children if _end(child)]
                file.unlink(missing_ok=True)
        return ended


def _read(file: Path) -> _Note | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Note)
    except (OSError, msgspec.DecodeError):
        return None


def _still_runs(child: _Child) -> bool:
    try:
        return started(child.pid) == child.started
    except OSError:
        return False  # nobody knows: better a process too many than the wrong one killed


def _end(child: _Child) -> bool:
    if not child.started or not _still_runs(child):
        return False
    logger.warning("killing leftover process %d", child.pid)
    with suppress(ProcessLookupError, PermissionError):
        # Agents lead a group of their own, and what they started is in it.
        if os.getpgid(child.pid) == child.pid:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            os.kill(child.pid, signal.SIGKILL)
    return True
