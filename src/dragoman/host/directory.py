"""A directory that is held open, so that a program starts in that very one and no other.

On Linux the program enters it through the descriptor. Elsewhere it enters by the real name of
what was opened; between the two, somebody who may rename directories could put another there.
"""

from __future__ import annotations

import os
import sys

if sys.platform == "linux":

    def _entrance(descriptor: int) -> str:
        # Not /proc/self: another process forks the program, and reads this.
        return f"/proc/{os.getpid()}/fd/{descriptor}"

    def _real_name(descriptor: int) -> str:
        return os.readlink(f"/proc/self/fd/{descriptor}")

elif sys.platform == "darwin":

    def _entrance(descriptor: int) -> str:
        return _real_name(descriptor)

    def _real_name(descriptor: int) -> str:
        import fcntl

        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))

else:

    def _entrance(descriptor: int) -> str:
        raise NotImplementedError

    def _real_name(descriptor: int) -> str:
        raise NotImplementedError


class OpenDirectory:
    """Owns the descriptor of a directory: `entrance` is the path to start a program in, valid
    until `close`; `name` is what a person calls it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.entrance = _entrance(descriptor)
        self.name = _real_name(descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()
