"""Keeps a session within its limits: counts each event, and stops the turn that goes too far."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.client.sessions.turn import Turn
from dragoman.errors import CancelIgnored
from dragoman.session import events as e
from dragoman.session.facts import LimitOutcome, ReachedLimit
from dragoman.session.limits.spending import COUNTED, Meter, Spending
from dragoman.session.limits.spending_limits import SpendingLimit

if TYPE_CHECKING:
    from dragoman.client.sessions.session import Session


class LimitWatch:
    """The limits of one session. It sees events after they were folded and passed on."""

    def __init__(self, session: Session, limits: Sequence[SpendingLimit], meter: Meter) -> None:
        self._session = session
        self._limits = limits
        self._meter = meter
        self._turn: Turn | None = None
        """The one that runs; once it is over, the last one."""
        self._said: set[SpendingLimit] = set()
        """What was reported in this turn, and the warnings about the whole session."""
        self._doubted: set[SpendingLimit] = set()

    def see(self, events: Collection[e.Event]) -> None:
        """Nearly every event is text, which counts for nothing and must cost nothing."""
        if COUNTED.isdisjoint(map(type, events)):
            return
        for event in events:
            if type(event) in COUNTED and self._meter.see(event):
                self._look_at(event)

    def _look_at(self, event: e.Event) -> None:
        match event:
            case e.TurnStarted():
                self._begin()
            case e.TurnEnded():
                self._check("late")
                self._doubt()
            case e.LimitReached():
                pass
            case _:
                self._check("stopped")

    def _begin(self) -> None:
        self._turn = turn = self._session.running
        self._said = {each for each in self._said if each.then == "warn" and each.per == "session"}
        self._check("not_sent")
        if turn is not None:
            self._time(turn)

    def _check(self, outcome: LimitOutcome) -> None:
        for limit in self._limits:
            spent = self._meter.used_by(limit.per)
            if limit.is_reached(spent):
                self._reached(limit, spent, outcome)

    def _reached(self, limit: SpendingLimit, spent: Spending, outcome: LimitOutcome) -> None:
        """Told once for a turn, and of a warning about the whole session once."""
        turn = self._turn
        if turn is None or limit in self._said or turn.cancel_requested:
            return
        self._said.add(limit)
        if limit.then == "warn":
            outcome = "warned"
        self._tell(turn, limit, spent, outcome)
        if outcome in ("stopped", "not_sent"):
            self._session.stop_turn(turn)
            self._session.spawn(self._see_it_end(turn))

    def _tell(
        self, turn: Turn, limit: SpendingLimit, spent: Spending, outcome: LimitOutcome
    ) -> None:
        reached = ReachedLimit(
            measure=limit.measure,
            per=limit.per,
            most=limit.most,
            value=limit.used(spent),
            outcome=outcome,
            turn_id=turn.id,
            currency=limit.currency if limit.measure == "cost" else "",
        )
        severity = "error" if reached.ends_turn else "warning"
        sentence = limit.sentence(spent, outcome)
        turn.limit = e.LimitReached(sentence, severity, source="client", limit=reached)
        self._session.log.record(turn.limit)

    async def _see_it_end(self, turn: Turn) -> None:
        """An agent that does not listen loses the turn anyway."""
        try:
            await self._session.cancel_turn(turn)
        except CancelIgnored as error:
            self._session.fail(turn, error)

    def _time(self, turn: Turn) -> None:
        for limit in self._limits:
            if limit.measure == "time":
                self._session.spawn(self._stop_in_time(turn, limit))

    async def _stop_in_time(self, turn: Turn, limit: SpendingLimit) -> None:
        """By a clock that nobody sets: that of the machine may be."""
        spent = self._meter.used_by(limit.per)
        if not await turn.settled_within(max(0.0, limit.most - spent.seconds)):
            used_up = msgspec.structs.replace(spent, seconds=limit.most)
            self._reached(limit, used_up, "stopped")

    def _doubt(self) -> None:
        """Say once that the agent has not reported what a limit is about."""
        for limit in self._limits:
            if limit.is_unknown(self._meter.session) and limit not in self._doubted:
                self._doubted.add(limit)
                what = "what it costs" if limit.measure == "cost" else "its tokens"
                sentence = f"{limit.source} was not checked: the agent does not report {what}"
                self._session.log.record(e.Notice(sentence, "warning", source="client"))


def watch_limits(session: Session, limits: Sequence[SpendingLimit], meter: Meter) -> None:
    """Keep the session within these; `meter` has counted what is known of it already."""
    if limits:
        session.log.watch = LimitWatch(session, limits, meter).see
