"""What is told again as a whole, a few times a second at most; time comes in with the events.

A small part is told whenever it changes. A large one rests the longer the more there is of it:
otherwise an agent could have megabytes told again by every word that it adds.
"""

from __future__ import annotations

from math import inf

INTERVAL = 0.25
"""Seconds between two looks at the same terminal."""
SMALL = 4 * 1024
"""Characters of a part that is told whenever it changes."""
RATE = 256 * 1024
"""Characters of a larger one that are told in a second."""

_MANY = 1_000
"""Parts that rest, beyond which it is worth looking which of them still do."""


class Throttle:
    """Which parts have something new to show, and when it may be shown."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[float, float]] = {}
        """When each that rests was shown, and for how long it rests."""
        self._held: dict[str, None] = {}
        self._soonest = inf
        self._latest = -inf
        self._many = _MANY

    @property
    def due(self) -> float | None:
        """When the first of what is held back may be shown."""
        return min(map(self._due, self._held), default=None)

    def hold(self, key: str) -> None:
        """Something is new here."""
        if key not in self._held:
            self._held[key] = None
            self._soonest = min(self._soonest, self._due(key))

    def release(self, at: float, *, all_of_it: bool = False) -> list[str]:
        """What to show now; whoever shows it says how long it rests then."""
        if not all_of_it and self._latest <= at < self._soonest:
            return []
        ready = [key for key in self._held if all_of_it or self._is_due(key, at)]
        for key in ready:
            del self._held[key]
        self._soonest = min(map(self._due, self._held), default=inf)
        return ready

    def rest(self, key: str, at: float, size: int, least: float = 0.0) -> None:
        """It was shown, and so many characters were told."""
        seconds = least if size <= SMALL else max(INTERVAL, least, size / RATE)
        self.wake(key)
        if seconds:
            self._shown[key] = at, seconds
            self._latest = max(self._latest, at)
        if len(self._shown) > self._many:
            self._shown = {each: rest for each, rest in self._shown.items() if sum(rest) > at}
            self._many = max(_MANY, 2 * len(self._shown))

    def wake(self, key: str) -> None:
        """It may be shown at once."""
        if self._shown.pop(key, None) is not None and key in self._held:
            self._soonest = -inf

    def _due(self, key: str) -> float:
        at, seconds = self._shown.get(key, (-inf, 0.0))
        return at + seconds

    def _is_due(self, key: str, at: float) -> bool:
        # A clock that was set back must not silence a part.
        shown, seconds = self._shown.get(key, (-inf, 0.0))
        return at - shown >= seconds or at < shown
