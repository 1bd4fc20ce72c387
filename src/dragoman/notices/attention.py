"""Whether someone looks at a window of the page now."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 45.0
"""A window that was not heard of for so long is not looked at: it may have ended without a word."""
_MOST = 1000


class Attention:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def note(self, window: str, *, looking: bool) -> None:
        """What a window says of itself."""
        now = self._clock()
        self._until = {each: until for each, until in self._until.items() if until > now}
        self._until.pop(window, None)
        if looking and len(self._until) < _MOST:
            self._until[window] = now + SECONDS

    @property
    def is_there(self) -> bool:
        now = self._clock()
        return any(until > now for until in self._until.values())
