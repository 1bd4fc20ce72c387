"""A keeper whose fork does not become the program at once: `slow_fork.py stop|hang LIFE`."""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys

from dragoman.process import keeper

DEED, LIFE = sys.argv[1], int(sys.argv[2])
become = vars(keeper)["_become"]


def become_slowly(*arguments: object) -> None:
    signal.alarm(90)  # nothing is left for ever, should the keeper not end it
    if DEED == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    while DEED == "hang":
        signal.pause()
    become(*arguments)


setattr(keeper, "_become", become_slowly)  # noqa: B010
order = os.memfd_create("order")
os.write(order, marshal.dumps(([b"/bin/sh"], [b"sh", b"-c", b""], {}, b"/", False, None)))
keeper.keep(socket.socket(fileno=LIFE), order, [os.dup(number) for number in (0, 1, 2)])
