"""Returns freed memory to the system.

Python's collector frees a session, whose parts refer to each other, only when it happens to run.
glibc keeps what lies between pieces that are still in use, which after a long session is most of
what that session took.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable

_MUCH = 16 << 20
_REST = 20
"""How many times as long as a collection, which holds everything up, there is no other."""


class FreedMemory:
    """Whether the process has grown by `much` bytes since its start.

    Not since it last gave memory back: what was in use then may be free now.
    """

    def __init__(self, much: int = _MUCH, clock: Callable[[], float] = time.monotonic) -> None:
        self._much = much
        self._clock = clock
        self._rests_until = 0.0
        self._size = _resident()

    @property
    def is_worth_returning(self) -> bool:
        return _resident() - self._size >= self._much

    @property
    def pause(self) -> float:
        """Seconds until it is time to give more back."""
        return max(0.0, self._rests_until - self._clock())

    def give_back(self) -> None:
        """Takes some milliseconds, so it is best done in a thread."""
        import ctypes  # late, since hardly any process needs it

        begun = self._clock()
        gc.collect()
        ended = self._clock()
        self._rests_until = ended + _REST * (ended - begun)

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
