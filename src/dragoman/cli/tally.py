"""What needed permission in a turn, and how it was decided."""

from __future__ import annotations

from dragoman.session import events as e
from dragoman.session.facts import NOBODY_TO_ASK, SWITCHED_OFF


class Tally:
    """Counts decisions; an answer to a question that is no permission is none."""

    def __init__(self) -> None:
        self._allowed = 0
        self._refused = 0
        self.unruled = False
        """Something was refused only because no rule or flag allows it."""
        self.unoffered = False
        """A write was refused because writing is switched off."""

    def count(self, event: e.Event) -> None:
        if isinstance(event, e.PermissionSettled | e.AccessDecided):
            self._allowed += event.decision.effect == "allow"
            self._refused += event.decision.effect in ("deny", "cancelled")
            self.unruled |= event.decision.reason.startswith(NOBODY_TO_ASK)
        if isinstance(event, e.AccessDecided) and event.operation == "write":
            self.unoffered |= event.decision.reason.endswith(SWITCHED_OFF)

    @property
    def all_refused(self) -> bool:
        """Whether something needed permission, and nothing got it."""
        return self._refused > 0 and not self._allowed
