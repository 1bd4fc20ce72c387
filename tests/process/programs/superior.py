"""Looks like a zygote with a stray below it: `keeper` makes it fork a keeper with a program, and
`rename` makes it one itself.

Prints the pids of the stray, then of each keeper and its program; and `0` when it is renamed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def fork_stray() -> int:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.write(WRITER, b"x")
        signal.pause()
    os.read(READER, 1)  # it has left the session
    return pid


def fork_keeper() -> int:
    pid = os.fork()
    if pid == 0:
        os.write(1, b"%d %d\n" % (os.getpid(), fork_stray()))
        signal.pause()
    return pid


def take_name(name: bytes) -> None:
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)


READER, WRITER = os.pipe()
take_name(b"dragoman-zygote")
os.write(1, b"%d\n" % fork_stray())
for line in sys.stdin:
    if line == "keeper\n":
        fork_keeper()
    else:
        take_name(b"dragoman-keeper")
        os.write(1, b"0\n")
