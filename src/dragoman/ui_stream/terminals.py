"""What terminals print, a few times a second at most; time comes in with the events."""

from __future__ import annotations

INTERVAL = 0.25
"""Seconds between two looks at the same terminal."""


class Throttle:
    """Which terminals have something new to show, and when it may be shown."""

    def __init__(self) -> None:
        self._shown: dict[str, float] = {}
        self._held: dict[str, None] = {}

    @property
    def due(self) -> float | None:
        """When the first of what is held back may be shown."""
        return min((self._shown[key] + INTERVAL for key in self._held), default=None)

    def hold(self, terminal_id: str) -> None:
        """Something is new here."""
        self._shown.setdefault(terminal_id, float("-inf"))
        self._held[terminal_id] = None

    def release(self, at: float, *, all_of_it: bool = False) -> list[str]:
        """The terminals to show now."""
        ready = [key for key in self._held if all_of_it or self._is_due(key, at)]
        for key in ready:
            del self._held[key]
            self._shown[key] = at
        return ready

    def forget(self, terminal_id: str) -> None:
        """There will be nothing more."""
        self._shown.pop(terminal_id, None)

    def _is_due(self, terminal_id: str, at: float) -> bool:
        # A clock that was set back must not silence a terminal.
        waited = at - self._shown[terminal_id]
        return waited >= INTERVAL or waited < 0
