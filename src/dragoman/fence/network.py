"""A network of its own, in which nothing is reachable but a few listening sockets on its loopback.

A helper makes it, hands its descriptors to the host and ends. The host accepts on the sockets, in
its own network, and every program of a fence joins the namespace before it is built. It belongs to
a user namespace in which no program ever is, so that nobody inside has a right over it.
"""

from __future__ import annotations

import os
import sys
from _socket import (
    AF_INET,
    AF_INET6,
    AF_UNIX,
    SCM_RIGHTS,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
)

from . import kernel_calls as calls
from .namespaces import map_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BACKLOG = 128


def make(out: int, ports: Sequence[int]) -> None:
    """Make one that listens on these ports, 0 for any. Its user namespace, itself and its sockets
    are sent out, or the number of the error."""
    answer = socket(AF_UNIX, SOCK_SEQPACKET, 0, out)
    try:
        _enter_a_new_one()
        sockets = [each for port in ports for each in _listening(port)]
    except OSError as error:
        answer.send(b"%d" % (error.errno or 0))
        return
    flags = os.O_RDONLY | os.O_CLOEXEC
    spaces = [os.open(f"/proc/self/ns/{name}", flags) for name in ("user", "net")]
    numbers = (*spaces, *(each.fileno() for each in sockets))
    rights = b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)
    answer.sendmsg([b"made"], [(SOL_SOCKET, SCM_RIGHTS, rights)])


def join(user: int, network: int) -> None:
    """Enter a network; what is forked from here on lives in it. Raises OSError."""
    calls.join(user, calls.NEWUSER)
    calls.join(network, calls.NEWNET)


def _enter_a_new_one() -> None:
    user = os.geteuid(), os.getegid()
    calls.unshare(calls.NEWUSER | calls.NEWNET)
    map_user(*user)
    any_socket = socket(AF_INET, SOCK_STREAM)
    calls.bring_up(any_socket.fileno(), b"lo")
    any_socket.close()


def _listening(port: int) -> list[socket]:
    """For a port that is named, by both addresses of the loopback if there are two."""
    found = [_bound(socket(AF_INET, SOCK_STREAM), "127.0.0.1", port)]
    try:
        return [*found, _bound(socket(AF_INET6, SOCK_STREAM), "::1", port)] if port else found
    except OSError:
        return found  # a kernel without the newer one


def _bound(listener: socket, address: str, port: int) -> socket:
    listener.bind((address, port))
    listener.listen(_BACKLOG)
    return listener
