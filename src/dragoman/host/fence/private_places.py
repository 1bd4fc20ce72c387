"""Folders that are a session's own, inside a fence of namespaces.

What is in them outside is not there, and what is written there goes with the fence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple


class PrivatePlace(NamedTuple):
    """One of them, with what is in it."""

    path: str
    what: str
    lets_through: Callable[[str, bool], bool]
    """Whether a path in it can be written (if so asked), or read and is the same as outside."""

    @property
    def reason(self) -> str:
        return f"{self.path} is private to the session: {self.what}"


def private_place(path: str) -> PrivatePlace | None:
    """The one that this path is in."""
    fitting = (each for each in _PLACES if f"{path}/".startswith(f"{each.path}/"))
    return next(fitting, None)


def _if_written(_: str, write: bool) -> bool:
    return write


def _if_device(path: str, _: bool) -> bool:
    return path in _DEVICES


def _if_own(path: str, write: bool) -> bool:
    """Other processes are not there, and what belongs to the whole system cannot be written."""
    name = path.removeprefix("/proc").strip("/").partition("/")[0]
    if name in ("self", "thread-self", str(os.getpid())):  # which is what `self` was resolved to
        return True
    return not write and not name.isdecimal()


_DEVICES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")
)
_EMPTY = "empty at first, and deleted when the agent is closed"
_PLACES = (
    PrivatePlace("/tmp", _EMPTY, _if_written),
    PrivatePlace("/var/tmp", _EMPTY, _if_written),
    PrivatePlace("/dev/shm", _EMPTY, _if_written),
    PrivatePlace("/dev", "it has only the devices that every program needs", _if_device),
    PrivatePlace("/proc", "it shows only the processes of the session", _if_own),
)
