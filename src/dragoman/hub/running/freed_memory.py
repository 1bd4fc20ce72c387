"""Returns freed memory to the system.

glibc keeps what lies between pieces that are still in use, which after a long session is most of
what that session took.
"""

from __future__ import annotations

import os
import sys

_MUCH = 16 << 20


class FreedMemory:
    """Whether the process has grown by `much` bytes since its start.

    Not since it last gave memory back: what was in use then may be free now.
    """

    def __init__(self, much: int = _MUCH) -> None:
        self._much = much
        self._size = _resident()

    @property
    def is_worth_returning(self) -> bool:
        return _resident() - self._size >= self._much

    def give_back(self) -> None:
        """Takes some milliseconds, so it is best done in a thread."""
        import ctypes  # late, since hardly any process needs it

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # glibc has it, musl does not
            trim(0)


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system does not say, so that nothing grows."""
    if sys.platform != "linux":
        return 0
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
