"""How far a caller reaches: its agents, folders, number of sessions, and what they may use.

A caller that is itself a session has what that was given, and its share of what is left of it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import msgspec

from dragoman.errors import CommandRefused
from dragoman.hub.running.caller import Caller
from dragoman.hub.stored.usage_report import session_and_day
from dragoman.session.limits.prices import Prices
from dragoman.session.limits.spending import Spending
from dragoman.session.limits.spending_limits import SessionLimits, SpendingLimit
from dragoman.store.base import Store


def refused(sentence: str) -> CommandRefused:
    """For what is out of bounds."""
    return CommandRefused("", "out_of_bounds", sentence)


class Bounds:
    """Of one caller. Without `agents` it may start any."""

    def __init__(
        self,
        folders: Sequence[str],
        *,
        agents: Collection[str] = (),
        most_sessions: int = 8,
        limits: Sequence[SpendingLimit] = (),
        caller: Caller | None = None,
    ) -> None:
        self.folders = [os.path.realpath(folder) for folder in folders]
        self.caller = caller
        self._agents = agents
        self._left = most_sessions
        self._limits = [each for each in limits if not each.is_shared]
        self._given = [0.0] * len(self._limits)
        """Of each, to the sessions so far, whatever they make of it."""

    def must_have_agent(self, name: str) -> None:
        """Raises CommandRefused."""
        if self._agents and name not in self._agents:
            raise refused(f"you cannot start {name!r}, only {', '.join(self._agents)}")

    def may_start(self, name: str) -> bool:
        return not self._agents or name in self._agents

    def holds(self, folder: str) -> bool:
        """Whether it is one of the folders, or in one, with all links followed."""
        real = os.path.realpath(folder)
        return any(real == each or real.startswith(f"{each.rstrip('/')}/") for each in self.folders)

    def folder(self, named: str | None) -> str:
        """Where a session is to work; relative to the first folder. Raises CommandRefused."""
        folder = os.path.join(self.folders[0], os.path.expanduser(named or ""))
        if "\0" in folder or not self.holds(folder):
            raise refused(f"{named!r} is outside your folders: {', '.join(self.folders)}")
        if not os.path.isdir(folder):
            raise refused(f"there is no folder {named!r}")
        return os.path.realpath(folder)

    # ── number and budget ─────────────────────────────────────────────────────────────────────

    async def take_place(self, store: Store, prices: Prices) -> SessionLimits:
        """Count one session more, and give it an equal share of what is left. Raises
        CommandRefused when nothing is."""
        if not self._left:
            raise refused("you have started as many sessions as you may")
        used = await self._used(store, prices)
        shares = [
            _share(limit, limit.most - limit.used(used) - given, self._left)
            for limit, given in zip(self._limits, self._given, strict=True)
        ]
        self._given = [given + share.most for given, share in zip(self._given, shares, strict=True)]
        self._left -= 1
        return SessionLimits(limits=tuple(shares))

    async def _used(self, store: Store, prices: Prices) -> Spending:
        if self.caller is None or not self._limits:
            return Spending()
        found = await session_and_day(store, self.caller.session, prices)
        return found[0] if found else Spending()


def _share(limit: SpendingLimit, left: float, places: int) -> SpendingLimit:
    """For the next of so many sessions. Raises CommandRefused when nothing is left."""
    if limit.per == "turn":
        return limit
    share = left / places
    if limit.is_whole:
        share = float(min(max(int(share), 1), int(left)))
    if share <= 0:
        raise refused(f"nothing is left for another session: {limit.source} is used up")
    source = f"your share of {limit.source}"
    return msgspec.structs.replace(limit, most=share, then="stop", source=source, instead=())
