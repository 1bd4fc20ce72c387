"""File descriptors of this process: how many it may have, and which a fork must close.

A server raises its soft limit as far as it may. The programs it starts get the limit it was given:
some of them close every descriptor there could be, or cannot use high numbers.

Agents and their terminals get what a reserve leaves: an agent that starts one terminal after
another must not keep the owner's connections out, nor the store from its files.

A life socket copied into a forked child (multiprocessing, a daemonising server) would keep the
agents alive after the host's end, and a copied pipe would hide its end of file. In the child
each is replaced by /dev/null: the number stays taken, so closing it later hurts nobody.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Collection, Generator
from contextlib import contextmanager

MOST = 65_536
SHORTAGES = (errno.EMFILE, errno.ENFILE)
_OWN = 64
"""For the store, the files of sessions and what runs for a moment; a quarter if there are few."""
_FOR_A_TERMINAL = 3
_given: int | None = None
_set_aside = 0
_counted = 0


def raise_limit(most: int = MOST) -> None:
    """Raise the soft limit to the hard one, or to `most`; never lower it."""
    global _given
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return  # macOS allows less than its hard limit says
    _given = _given or soft


def limit() -> int:
    """The soft limit that holds now."""
    if sys.platform == "win32":
        return MOST
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if soft == resource.RLIM_INFINITY else soft


def limit_for_children() -> int | None:
    """The soft limit that this process was given, None when it was not raised."""
    return _given


def set_aside(count: int) -> None:
    """Keep so many for the connections of a server: agents and their terminals get none of them."""
    global _set_aside
    _set_aside = count


def has_room(count: int) -> bool:
    """Whether agents may have so many more."""
    return _in_use() + count <= _for_agents()


def has_room_to_spare(count: int) -> bool:
    """Whether so many more leave a quarter to the agents that the owner starts."""
    return _in_use() + count <= _to_spare()


def check_room_for_terminal() -> None:
    """As `has_room_to_spare`. Raises OSError."""
    _check_room(_FOR_A_TERMINAL, _to_spare())


def _to_spare() -> int:
    return _for_agents() * 3 // 4


def _for_agents() -> int:
    most = limit()
    return most - _set_aside - min(_OWN, most // 4)


def _in_use() -> int:
    return len(_guarded) + _counted


def _check_room(count: int, most: int) -> None:
    if _in_use() + count > most:
        sentence = f"agents and terminals use all of the {most} file descriptors that they may have"
        raise OSError(errno.EMFILE, f"{sentence}, of {limit()}")


def are_short() -> bool:
    """Whether not even one more can be had: what this process sees of others is then unreliable."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in SHORTAGES
    return False


_guarded: set[int] = set()
"""Those of agents and terminals."""


def guard(*descriptors: int) -> None:
    """Count these among those of agents; `close` ends that."""
    _guarded.update(descriptors)


def count(more: int) -> None:
    """Count so many among those of agents which others open and close; to be taken back."""
    global _counted
    _counted += more


def pipe() -> tuple[int, int]:
    """A pipe, reading end first."""
    _check_room(2, _for_agents())
    reader, writer = os.pipe()
    guard(reader, writer)
    return reader, writer


if sys.platform != "win32":

    def openpty() -> tuple[int, int]:
        """A pseudo-terminal, our end first."""
        _check_room(2, _for_agents())
        ours, theirs = os.openpty()
        guard(ours, theirs)
        return ours, theirs


def socketpair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep message boundaries; ours, which does not block, first."""
    _check_room(2, _for_agents())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    guard(ours.fileno(), theirs.fileno())
    return ours, theirs


def close(descriptor: int) -> None:
    _guarded.discard(descriptor)
    os.close(descriptor)


@contextmanager
def lent(handed: Collection[int]) -> Generator[None]:
    """A child that is forked meanwhile keeps these: they are for the program it becomes."""
    kept = _guarded.intersection(handed)
    _guarded.difference_update(kept)
    try:
        yield
    finally:
        _guarded.update(kept)


def _let_go() -> None:
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in _guarded:
        os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)
    _guarded.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go)
