"""What needed permission in a turn, and how it was decided."""

from __future__ import annotations

from dragoman.session import events as e


class Tally:
    """Counts decisions; an answer to a question that is no permission is none."""

    def __init__(self) -> None:
        self._allowed = 0
        self._refused = 0

    def count(self, event: e.Event) -> None:
        if isinstance(event, e.PermissionSettled | e.AccessDecided):
            self._allowed += event.decision.effect == "allow"
            self._refused += event.decision.effect in ("deny", "cancelled")

    @property
    def all_refused(self) -> bool:
        """Whether something needed permission, and nothing got it."""
        return self._refused > 0 and not self._allowed
