"""Updates of sessions that are not known yet, kept until they are, within limits."""

from __future__ import annotations

import logging
from collections import deque
from typing import TypeAlias

import msgspec

from dragoman.session.bounds import MIB
from dragoman.session.events import Event

logger = logging.getLogger("dragoman.client")

_LEAST_BYTES = 256  # what holding an event costs, however small it came in

Batch: TypeAlias = tuple[list[Event], int]
"""Events, and the bytes they came in."""


class EarlyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of updates that wait."""

    opening: int = 64 * MIB
    """While a session is being opened: its history may come before the reply that names it."""
    otherwise: int = MIB
    """For a subagent that is announced after it has begun to speak."""


EARLY_LIMITS = EarlyLimits()


class EarlyUpdates:
    """Those of one connection; the oldest go when there are too many, which is said once."""

    def __init__(self, limits: EarlyLimits) -> None:
        self._limits = limits
        self._held: deque[tuple[str, list[Event], int]] = deque()
        self._bytes = 0
        self._has_told = False

    def hold(self, session_id: str, events: list[Event], size: int, *, opening: bool) -> None:
        self._held.append((session_id, events, size))
        self._bytes += _weight(session_id, events, size)
        self._trim(self._limits.opening if opening else self._limits.otherwise)

    def take(self, session_id: str) -> list[Batch]:
        """What came for this session, in order."""
        if not self._held:
            return []
        mine = [(events, size) for held, events, size in self._held if held == session_id]
        if mine:
            self._held = deque(each for each in self._held if each[0] != session_id)
            self._bytes = sum(_weight(*each) for each in self._held)
        return mine

    def opened(self) -> None:
        """No session is being opened any longer: what is left can only be of subagents."""
        while self._held and self._bytes > self._limits.otherwise:
            self._drop_oldest()

    def _trim(self, most: int) -> None:
        while self._bytes > most:
            self._drop_oldest()
            if not self._has_told:
                self._has_told = True
                logger.warning(
                    "updates were dropped: the agent sends too many for sessions that it has not "
                    "opened or announced"
                )

    def _drop_oldest(self) -> None:
        self._bytes -= _weight(*self._held.popleft())


def _weight(session_id: str, events: list[Event], size: int) -> int:
    return len(session_id) + max(size, _LEAST_BYTES * len(events))
