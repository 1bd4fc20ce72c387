"""The temporary folder of a fence: private, and gone with it.

It is locked as long as its owner lives; what a killed owner left is removed by the next one that
makes such a folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from dragoman.data_directory import data_directory, make_private


class PrivateFolder:
    """Owns a new folder until `close`. Raises OSError."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = make_private(data_directory() / "fences" if parent is None else parent)
        _sweep(parent)
        # A short name: programs make sockets in it, whose addresses are limited.
        self.path = str(parent / os.urandom(4).hex())
        os.mkdir(self.path, 0o700)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkdir(self.runtime, 0o700)

    @property
    def runtime(self) -> str:
        """For the sockets that programs make for each other."""
        return os.path.join(self.path, "run")

    def close(self) -> None:
        """Remove it, with all that is in it."""
        if self._lock >= 0:
            _remove(self.path)
            lock, self._lock = self._lock, -1
            os.close(lock)

    def __del__(self) -> None:
        if getattr(self, "_lock", -1) >= 0:
            os.close(self._lock)


def _sweep(parent: Path) -> None:
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        with suppress(OSError):  # it is in use, or just being removed
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(descriptor)


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        _make_removable(path)
        shutil.rmtree(path, ignore_errors=True)


def _make_removable(path: str) -> None:
    """A folder may have been made that not even its owner can read; links are not followed."""
    with suppress(OSError):
        os.chmod(path, 0o700)
    for folder, folders, _ in os.walk(path):
        for name in folders:
            inner = os.path.join(folder, name)
            if not os.path.islink(inner):
                with suppress(OSError):
                    os.chmod(inner, 0o700)
