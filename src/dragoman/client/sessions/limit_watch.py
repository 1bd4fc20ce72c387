"""Keeps a session within its limits.

It counts each event, and stops the turn that goes too far, or asks a person whether it may
continue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from dragoman.client.dialects.dialect import Ledger
from dragoman.client.sessions.turn import Turn
from dragoman.errors import CancelIgnored, DragomanError
from dragoman.host.forms.elicitation import ElicitationRequest
from dragoman.host.requester import asked_by
from dragoman.session import events as e
from dragoman.session.facts import LimitOutcome, ReachedLimit
from dragoman.session.limits.spending import COUNTED, Meter, Spending
from dragoman.session.limits.spending_limits import SpendingLimit

if TYPE_CHECKING:
    from dragoman.client.sessions.session import Session

logger = logging.getLogger("dragoman.client")


_OF_TURNS = frozenset({e.TurnStarted, e.TurnEnded, e.LimitReached})


class _Cap(msgspec.Struct, eq=False):
    """One limit of the session, as it was set and as it is now."""

    as_set: SpendingLimit
    limit: SpendingLimit
    unless: SpendingLimit | None = None
    """It holds as long as the agent has not reported what this one is about."""
    raised_on: date | None = None
    others: Spending | None = None
    """What all turns but the running one have used, as far as it was read, if they count."""
    is_said: bool = False
    """It was reported in this turn, or is a warning about more than a turn that was given."""
    day: date | None = None
    """The day on which the last turn began."""
    is_doubted: bool = False

    def begin(self, today: date) -> None:
        """A turn begins."""
        limit = self.limit
        is_over = limit.per == "turn" or (limit.per == "day" and self.day != today)
        self.is_said &= limit.then == "warn" and not is_over
        self.day = today
        if limit.per == "turn" or (limit.per == "day" and self.raised_on != today):
            self.limit = self.as_set

    def raise_to(self, most: float, day: date) -> None:
        self.limit = msgspec.structs.replace(self.as_set, most=most)
        self.raised_on, self.is_said = day, False

    def restore(self, earlier: e.LimitReached) -> None:
        """What a person has said about this limit before the session was opened here."""
        told, limit = earlier.limit, self.as_set
        mine = (limit.measure, limit.per, limit.most, limit.source)
        if (told.measure, told.per, told.most, told.source) == mine and limit.then == "ask":
            self.raise_to(told.raised_to or limit.most, date.fromtimestamp(earlier.at))


class BoundLimit(msgspec.Struct, frozen=True, rename="camel"):
    """A limit that holds for a session, and what was used of it; None if the agent has not said
    anything that could be compared."""

    limit: SpendingLimit
    used: float | None


class LimitWatch:
    """The limits of one session. It sees events after they were folded and passed on."""

    def __init__(
        self,
        session: Session,
        limits: Sequence[SpendingLimit],
        meter: Meter,
        ledger: Ledger | None,
    ) -> None:
        self._session = session
        self._caps = [_Cap(each, each) for each in limits]
        self._caps += [_Cap(more, more, each) for each in limits for more in each.instead]
        self._meter = meter
        self._ledger = ledger
        self._turn: Turn | None = None
        """The one that runs; once it is over, the last one."""
        self._began = 0.0
        for cap in self._caps:
            for earlier in meter.raised:
                cap.restore(earlier)

    @property
    def bound(self) -> list[BoundLimit]:
        """The limits as they are now."""
        found: list[BoundLimit] = []
        for cap in filter(self._holds, self._caps):
            spent = self._spent(cap)
            used = None if cap.limit.is_unknown(spent) else cap.limit.used(spent)
            found.append(BoundLimit(cap.limit, used))
        return found

    # ── when to look ────────────────────────────────────────────────────────────────────────────

    def see(self, events: Collection[e.Event]) -> None:
        """Nearly every event is text, which counts for nothing and must cost nothing."""
        if COUNTED.isdisjoint(map(type, events)):
            return
        for event in [each for each in events if type(each) in COUNTED]:
            if self._meter.see(event):
                self._look_at(event)

    def _look_at(self, event: e.Event) -> None:
        kind = type(event)  # a comparison with each class takes longer than the check
        if kind not in _OF_TURNS:
            self._check("stopped")
        elif kind is e.TurnStarted:
            self._begin()
        elif kind is e.TurnEnded:
            self._check("late")
            self._doubt()

    def _begin(self) -> None:
        self._turn = turn = self._session.running
        self._began = time.monotonic()
        for cap in self._caps:
            cap.begin(date.fromtimestamp(time.time()))
        if turn is not None:
            self._watch_clock(turn)

    async def admit(self, turn: Turn) -> None:
        """Return when the prompt of the turn may be sent, or the turn was stopped."""
        await self._read_others(turn)
        self._check("not_sent")
        await self._session.gate.consent.hold.admits()
        if any(cap.limit.is_shared for cap in self._caps) and not turn.cancel_requested:
            self._session.spawn(self._keep_reading(turn))

    async def _read_others(self, turn: Turn) -> None:
        for cap in self._caps:
            if cap.limit.is_shared and self._ledger is not None:
                cap.others = await self._ledger.spent(cap.limit, turn.id)

    async def _keep_reading(self, turn: Turn) -> None:
        """Other sessions may use up what is left while this turn runs."""
        while self._ledger is not None and not await turn.settled_within(self._ledger.seconds):
            try:
                await self._read_others(turn)
            except DragomanError as error:
                logger.warning("what other sessions use could not be read: %s", error)
            if turn is self._turn:
                self._check("stopped")

    def _watch_clock(self, turn: Turn) -> None:
        for cap in self._caps:
            if cap.limit.measure == "time":
                self._session.spawn(self._stop_in_time(turn, cap))

    async def _stop_in_time(self, turn: Turn, cap: _Cap) -> None:
        """By a clock that nobody sets: that of the machine may be."""
        while (left := cap.limit.most - self._spent(cap).seconds) > 0:
            if await turn.settled_within(left) or turn is not self._turn:
                return
        used_up = msgspec.structs.replace(self._spent(cap), seconds=cap.limit.most)
        if self._holds(cap):
            self._reached(cap, used_up, "stopped")

    # ── what to do ──────────────────────────────────────────────────────────────────────────────

    def _holds(self, cap: _Cap) -> bool:
        return cap.unless is None or cap.unless.is_unknown(self._meter.session)

    def _spent(self, cap: _Cap) -> Spending:
        """With the time of the running turn, of which there is no event yet."""
        if not cap.limit.is_shared:
            spent = self._meter.used_by(cap.limit.per)
        else:
            spent = Spending(cost={})
            for each in (cap.others, self._meter.turn):
                if each is not None:
                    spent.add(each)
        if cap.limit.measure != "time" or self._meter.turn_id is None:
            return spent
        ran = time.monotonic() - self._began
        return msgspec.structs.replace(spent, seconds=spent.seconds + ran)

    def _check(self, outcome: LimitOutcome) -> None:
        for cap in filter(self._holds, self._caps):
            spent = self._spent(cap)
            if cap.limit.is_reached(spent):
                self._reached(cap, spent, outcome)

    def _reached(self, cap: _Cap, spent: Spending, outcome: LimitOutcome) -> None:
        """Told once for a turn, and of a warning about more than that once."""
        turn = self._turn
        if turn is None or cap.is_said or turn.cancel_requested:
            return
        cap.is_said = True
        if cap.limit.then == "warn":
            self._tell(turn, cap, spent, "warned")
        elif outcome == "late":
            self._tell(turn, cap, spent, "late")
        elif cap.limit.then == "ask" and not self._session.gate.consent.elicitations.has_nobody:
            self._hold(turn, cap, outcome)
        else:
            self._stop(turn, cap, spent, outcome)

    def _stop(self, turn: Turn, cap: _Cap, spent: Spending, outcome: LimitOutcome) -> None:
        self._tell(turn, cap, spent, outcome)
        self._session.gate.consent.hold.stop(turn)
        self._session.stop_turn(turn)
        self._session.spawn(self._see_it_end(turn))

    def _tell(self, turn: Turn, cap: _Cap, spent: Spending, outcome: LimitOutcome) -> None:
        reached = self._found(turn, cap, spent, outcome)
        severity = "error" if reached.ends_turn else "warning"
        sentence = cap.limit.sentence(spent, outcome)
        turn.limit = e.LimitReached(sentence, severity, source="client", limit=reached)
        self._session.log.record(turn.limit)

    def _found(self, turn: Turn, cap: _Cap, spent: Spending, outcome: LimitOutcome) -> ReachedLimit:
        limit = cap.limit
        return ReachedLimit(
            measure=limit.measure,
            per=limit.per,
            most=cap.as_set.most,
            value=limit.used(spent),
            outcome=outcome,
            turn_id=turn.id,
            currency=limit.currency if limit.measure == "cost" else "",
            source=limit.source,
            raised_to=None if limit.most == cap.as_set.most else limit.most,
        )

    async def _see_it_end(self, turn: Turn) -> None:
        """An agent that does not listen loses the turn anyway."""
        try:
            await self._session.cancel_turn(turn)
        except CancelIgnored as error:
            self._session.fail(turn, error)

    def _doubt(self) -> None:
        """Say once that the agent has not reported what a limit is about."""
        for cap in self._caps:
            limit = cap.limit
            if limit.is_unknown(self._meter.session) and not cap.is_doubted:
                cap.is_doubted = True
                what = "what it costs" if limit.measure == "cost" else "its tokens"
                sentence = f"{limit.source} was not checked: the agent does not report {what}"
                if limit.instead:
                    others = " and ".join(each.source for each in limit.instead)
                    sentence += f"; {others} holds instead"
                self._session.log.record(e.Notice(sentence, "warning", source="client"))

    # ── asking ──────────────────────────────────────────────────────────────────────────────────

    def _hold(self, turn: Turn, cap: _Cap, outcome: LimitOutcome) -> None:
        """From now on, until the question is settled."""
        hold = self._session.gate.consent.hold
        hold.close()
        asking = self._session.spawn(self._ask(turn, cap, outcome))
        asking.add_done_callback(lambda _: hold.open())

    async def _ask(self, turn: Turn, cap: _Cap, outcome: LimitOutcome) -> None:
        """Have it stopped unless a person raises the limit."""
        more = None if turn.done else await self._answer(turn, cap)
        if turn.done or turn.cancel_requested:
            return
        spent = self._spent(cap)
        if more is None:
            self._stop(turn, cap, spent, outcome)
            return
        cap.raise_to(cap.limit.raised_by(more, spent), date.fromtimestamp(time.time()))
        self._tell(turn, cap, spent, "raised")
        if cap.limit.measure == "time":
            self._session.spawn(self._stop_in_time(turn, cap))
        self._check(outcome)

    async def _answer(self, turn: Turn, cap: _Cap) -> float | None:
        """How much more it may use; None to stop it."""
        spent = self._spent(cap)
        limit, reached = cap.limit, self._found(turn, cap, spent, "asked")
        question = ElicitationRequest(
            request_id="",
            message=f"{_sentence(limit, spent)}. {_HELD if turn.sent else _NOT_SENT}",
            mode="form",
            schema=_form(limit),
            limit=reached,
        )
        try:
            with asked_by(None):
                answer = await self._session.gate.consent.elicitations.create(question)
        except DragomanError:
            return None  # too many questions wait already
        accepted = answer.content if answer.action == "accept" else None
        match accepted:
            case {"more": int() | float() as more} if more > 0:
                return float(more)
            case _:
                return None


_HELD = (
    "The turn waits for you: until you answer, Dragoman does nothing for the agent. What the agent "
    "does with its own tools may continue. Decline to stop the turn"
)
_NOT_SENT = "The prompt waits for you. Decline to stop the turn"


def _sentence(limit: SpendingLimit, spent: Spending) -> str:
    words = limit.sentence(spent, "asked")
    return words[0].upper() + words[1:]


def _form(limit: SpendingLimit) -> dict[str, object]:
    """One number. What is counted in whole numbers is raised by one at least."""
    field = {
        "type": "integer" if limit.is_whole else "number",
        "title": f"How many more {limit.unit} may be used",
        "minimum": 1 if limit.is_whole else 1e-6,
    }
    return {"type": "object", "properties": {"more": field}, "required": ["more"]}


def watch_limits(
    session: Session, limits: Sequence[SpendingLimit], meter: Meter, ledger: Ledger | None
) -> None:
    """Keep the session within these; `meter` has counted what is known of it already."""
    session.limit_watch = LimitWatch(session, limits, meter, ledger)
    session.log.watch = session.limit_watch.see
