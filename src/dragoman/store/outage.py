"""Whether the database can be used, since when not, and why; and the messages about that.

Shared by every kind of store. Knows neither tables nor connections.
"""

from __future__ import annotations

import logging
import time
from copy import copy

from dragoman.errors import StoreAway, StoreFull

logger = logging.getLogger("dragoman.store")

PATIENCE_SECONDS = 5.0
"""While a database is unavailable for longer, calls that can be repeated fail at once."""

_DELAYED = (
    "running turns continue, but are stored and shown only once it is back; nothing new starts "
    "until then"
)


class Outage:
    """`cannot` is what people read of it, unless the disk is full; without it, the reason."""

    def __init__(self, place: str, cannot: str = "") -> None:
        self.place = place
        self._cannot = cannot
        self._error = StoreAway(place, cannot)
        self._since: float | None = None

    @property
    def is_on(self) -> bool:
        return self._since is not None

    @property
    def reason(self) -> str:
        return self._error.reason

    @property
    def told(self) -> str | None:
        """While it is on: what is the matter, and what is delayed by it."""
        if self._since is None:
            return None
        is_full = isinstance(self._error, StoreFull)
        return f"{self.reason if is_full else self._cannot or self.reason}: {_DELAYED}"

    @property
    def seconds(self) -> float:
        since = self._since  # another thread may end it
        return 0.0 if since is None else time.monotonic() - since

    @property
    def is_long(self) -> bool:
        return self.seconds > PATIENCE_SECONDS

    def is_too_long(self, since: float) -> bool:
        """For one who waits since then; by its own watch too, since an outage may begin again and
        again while some connections come back and others do not."""
        return self.is_long or time.monotonic() - since > PATIENCE_SECONDS

    def begins(self, error: StoreAway) -> None:
        self._error = error
        if self._since is None:
            self._since = time.monotonic()
            logger.warning("%s; events are kept on this host until it is back", error)

    def ends(self) -> None:
        if self._since is not None:
            logger.warning("%s: the database is back after %.1f s", self.place, self.seconds)
            self._since = None

    def error(self) -> StoreAway:
        """What began it, or was last reported, for those who wait."""
        return copy(self._error)
