"""File descriptors of this process: how many it may have, and which a fork must close.

A server raises its soft limit as far as it may. The programs it starts get the limit it was given:
some of them close every descriptor there could be, or cannot use high numbers.

A life socket copied into a forked child (multiprocessing, a daemonising server) would keep the
agents alive after the host's end, and a copied pipe would hide its end of file. In the child
each is replaced by /dev/null: the number stays taken, so closing it later hurts nobody.
"""

from __future__ import annotations

import errno
import os
import socket
import sys

MOST = 65_536
SHORTAGES = (errno.EMFILE, errno.ENFILE)
_given: int | None = None


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


def are_short() -> bool:
    """Whether not even one more can be had: what this process sees of others is then unreliable."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in SHORTAGES
    return False


_guarded: set[int] = set()


def pipe() -> tuple[int, int]:
    """A pipe, reading end first."""
    reader, writer = os.pipe()
    _guarded.update((reader, writer))
    return reader, writer


def socketpair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep message boundaries; ours, which does not block, first."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    _guarded.update((ours.fileno(), theirs.fileno()))
    return ours, theirs


def close(descriptor: int) -> None:
    _guarded.discard(descriptor)
    os.close(descriptor)


def _let_go() -> None:
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in _guarded:
        os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)
    _guarded.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go)
