"""How often things were refused, so that few events tell of many refusals."""

from __future__ import annotations

from collections.abc import Hashable

MOST_TOLD = 100
"""So many things get events of their own."""
_TIMES = (1, 10, 100, 1_000, 10_000, 100_000)
"""How often a thing was refused when that is an event again."""


class RefusalCount:
    """Of one fence, and of one kind of thing."""

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}
        self._has_more = False

    def add(self, thing: Hashable) -> int | None:
        """One more refusal: how many there were, if that is an event; 0 once, when more things were
        refused than have events of their own."""
        if thing not in self._counts and len(self._counts) >= MOST_TOLD:
            is_news, self._has_more = not self._has_more, True
            return 0 if is_news else None
        count = self._counts[thing] = self._counts.get(thing, 0) + 1
        return count if count in _TIMES else None


def times(count: int) -> str:
    """To be put after the name of what was refused."""
    return f" ({count} times)" if count > 1 else ""
