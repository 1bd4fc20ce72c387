"""The attacker of the rename race: swaps pairs of names for each other, as fast as it can.

Arguments: names two by two. Ends when the process that started it does.
"""

from __future__ import annotations

import ctypes
import os
import sys

AT_FDCWD = -100
RENAME_EXCHANGE = 2


def exchange(one: bytes, other: bytes) -> None:
    if LIBC.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


LIBC = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()
names = [os.fsencode(name) for name in sys.argv[1:]]
pairs = list(zip(names[::2], names[1::2], strict=True))
os.write(1, b"ready\n")
while os.getppid() == parent:
    for _ in range(200):
        for one, other in pairs:
            exchange(one, other)
