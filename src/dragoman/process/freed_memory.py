"""Returns freed memory to the system.

glibc keeps what lies between pieces that are still in use, which after a long session is most of
what that session took.
"""

from __future__ import annotations

import sys


def give_back() -> None:
    """Where the C library can do that; some milliseconds, best in a thread."""
    if sys.platform != "linux":
        return
    import ctypes  # late, since hardly any process needs it

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
