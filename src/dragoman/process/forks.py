"""Descriptors that must not live on in a fork of the host.

A life socket copied into a forked child (multiprocessing, a daemonising server) would keep the
agents alive after the host's end, and a copied pipe would hide its end of file. In the child
each is replaced by /dev/null: the number stays taken, so closing it later hurts nobody.
"""

from __future__ import annotations

import os
import socket
import sys

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
