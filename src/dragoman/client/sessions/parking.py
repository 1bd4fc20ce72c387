"""A prompt whose agent reports a limit: it waits, and is sent once more when the limit has ended.

The waiting is part of the session's state, so it survives this process. A parked prompt counts as
sent when `ParkingChanged` with `continued` is on record, directly before it goes to the agent. If
the process is killed before that, the prompt is still parked. If it is killed after that, and the
agent has done nothing, the prompt is in doubt until the session is opened again: then the history
that the agent tells and the folders say whether it was sent.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from dragoman.agents.limit_reports import ReportedLimit, limit_in_answer, limit_in_error
from dragoman.client.sessions.turn import Turn
from dragoman.errors import DragomanError, RemoteError
from dragoman.session import events as e
from dragoman.session.content import Content, Text
from dragoman.session.facts import LimitKind, OnLimit, Parking, ParkingOutcome
from dragoman.session.state import NoticeEntry, SessionState, ToolCall, UserEntry

if TYPE_CHECKING:
    from dragoman.client.sessions.session import Session

MOST_ATTEMPTS = 5
CONTINUE = (
    "The previous turn was interrupted by a limit of the model provider. Continue where you stopped"
)
_FIRST_WAIT: dict[LimitKind, float] = {"rate": 60.0, "overloaded": 60.0, "plan": 1800.0}
"""Seconds, where the agent does not say when the limit ends; doubled each time."""
LEAST_WAIT = 5.0
"""Seconds before a second attempt, whatever end the agent reports; doubled each time."""
_MOST_JITTER = 60.0
_LOOK_SECONDS = 30.0
"""The longest sleep: the clock of the machine may be set, and the machine may have slept."""
_KINDS: dict[LimitKind, str] = {
    "rate": "a rate limit",
    "overloaded": "an overloaded model provider",
    "plan": "a used-up plan",
}


class ParkedPrompt:
    """What a session does about limits that its agent reports, and the prompt that waits."""

    def __init__(self, session: Session, on_limit: OnLimit) -> None:
        self.on_limit: OnLimit = on_limit
        self.least_wait = LEAST_WAIT
        self.prepare: Callable[[], Awaitable[None]] | None = None
        """Awaited before a parked prompt is sent, such as to start the agent again."""
        self.is_read_elsewhere = False
        """Whether the turns that it begins need keep no events for a reader."""
        self._session = session
        self._timer: asyncio.Task[None] | None = None
        self._resuming: Turn | None = None
        self._changed = asyncio.Event()

    @property
    def parked(self) -> Parking | None:
        return self._session.state.parked

    # ── a limit is reported ─────────────────────────────────────────────────────────────────────

    def failed(self, turn: Turn, error: DragomanError) -> None:
        """Called before a turn ends with an error."""
        limit = limit_in_error(error, _now()) if isinstance(error, RemoteError) else None
        if limit is not None and not turn.cancel_requested:
            self._limited(turn, limit)

    def answered(self, turn: Turn) -> None:
        """Called before a turn ends as usual: some agents report a limit as their answer."""
        limit = limit_in_answer(self._session.answer_of(turn), _now())
        if limit is not None and not turn.cancel_requested:
            self._limited(turn, limit)

    def _limited(self, turn: Turn, limit: ReportedLimit) -> None:
        before = turn.parking
        attempt = 1 if before is None else before.attempt + 1
        parked = None
        if self.on_limit != "fail" and attempt <= MOST_ATTEMPTS:
            repeats = before is None or before.repeats
            parked = Parking(
                turn.id,
                turn.content if before is None else before.content,
                limit.kind,
                resumes_at=self._time(limit, attempt),
                ends_at=limit.ends_at,
                attempt=attempt,
                repeats=repeats and not self._did_something(turn, limit),
                terms=turn.terms,
            )
        turn.parked = parked
        told = e.TurnLimited(
            f"the agent reports {_KINDS[limit.kind]}: {limit.sentence}",
            "warning" if parked is not None else "error",
            _outlook(parked, attempt, self.on_limit),
            source="client",
            turn_id=turn.id,
            kind=limit.kind,
            ends_at=limit.ends_at,
            parked=parked,
        )
        self._session.log.record(told)
        self.start()

    def _time(self, limit: ReportedLimit, attempt: int) -> float | None:
        if self.on_limit == "ask":
            return None
        return _time_to_resume(limit.kind, limit.ends_at, attempt, self.least_wait)

    def _did_something(self, turn: Turn, limit: ReportedLimit) -> bool:
        """A tool call, a text other than the report itself, or something written."""
        session = self._session
        said = " ".join(session.answer_of(turn).split())
        if said and not said.startswith(limit.sentence[:80]) and said not in limit.sentence:
            return True
        if len(session.state.terminals) > turn.terminals_before or session.gate.changes(turn.id):
            return True
        ours = (each for each in reversed(session.state.entries) if each.turn_id == turn.id)
        return any(isinstance(each, ToolCall) for each in ours)

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Wait for the time of what is parked, if there is something, and send it then."""
        self.stop()
        self._tell()
        if (parked := self.parked) is not None and parked.resumes_at is not None:
            self._timer = self._session.spawn(self._wait(parked, parked.resumes_at))

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def stop(self) -> None:
        """Wait no longer here; it stays parked."""
        if self._timer is not None and self._timer is not asyncio.current_task():
            self._timer.cancel()
        self._timer = None

    async def _wait(self, parked: Parking, until: float) -> None:
        if (remaining := until - time.time()) > 0:
            await asyncio.sleep(min(remaining, _LOOK_SECONDS))
            self._timer = self._session.spawn(self._wait(parked, until))
        elif self.parked is not None and self.parked.id == parked.id:
            await self._send()

    async def _send(self) -> Turn | None:
        """The turn of what is parked, begun; None if it cannot be."""
        if self._resuming is None or self._resuming.done:
            try:
                if self.prepare is not None:
                    await self.prepare()
            except DragomanError as error:
                self._change("waiting", f"the parked prompt could not be sent: {error}")
                return None
            if (parked := self.parked) is None or self._session.busy:
                return None
            if parked.is_doubted and not await self._was_not_sent(parked):
                return None
            turn = self._resuming = self._session.turn_for(_content(parked), parked.terms)
            turn.parking = parked
            if self.is_read_elsewhere:
                turn.discard()
            self._session.begin(turn)
            self._tell()
        return self._resuming

    async def _was_not_sent(self, parked: Parking) -> bool:
        """Of one in doubt, and put on record. If it was sent, its turn has begun and was cut short,
        like any other; if nobody can say, a person decides."""
        session = self._session
        delivery, tracker = session.log.delivery, session.tracker
        has_arrived = None if delivery is None else delivery.has_arrived
        if has_arrived:
            title = "the agent already has the parked prompt: it is not sent again"
            self._change("continued", title, turn_id=parked.id)
            session.begin_next()
            return False
        if has_arrived is False and tracker is not None and await tracker.is_as_before(parked.id):
            title = "the agent does not have the parked prompt: it is sent again"
            self._change("waiting", title, resumes_at=parked.resumes_at, turn_id=parked.id)
            return not session.busy and self.parked is not None
        self._change("waiting", "it is not known whether the agent has the parked prompt")
        return False

    def closing(self) -> None:
        """Called when the session is closed for good."""
        self.stop()
        self._change("dropped", "the parked prompt was dropped: the session was closed")

    async def goes_out(self, turn: Turn) -> None:
        """Awaited when the prompt of a turn is about to be sent: first, that is on record."""
        if turn.parking is not None and not turn.cancel_requested:
            number = turn.parking.attempt
            title = f"the parked prompt is sent now (attempt {number} of {MOST_ATTEMPTS})"
            self._change("continued", title, turn_id=turn.id)
            if self._session.before_turn is not None:
                await self._session.before_turn()

    def given_up(self, turn: Turn) -> None:
        """Called when a turn is cancelled before its prompt was sent."""
        if turn.parking is not None and self.parked is not None:
            self._change("dropped", "the parked prompt was dropped")

    # ── what a person says ──────────────────────────────────────────────────────────────────────

    async def send_now(self) -> Turn:
        """Send what is parked, whatever the limit. Raises KeyError if nothing is."""
        self._must_be_parked()
        self.stop()
        turn = await self._send()
        if turn is None:
            raise KeyError("the parked prompt")
        return turn

    def wait(self) -> None:
        """Have it sent by itself, like one that `park` has parked. Raises KeyError."""
        parked = self._must_be_parked()
        if parked.resumes_at is None:
            self._session.log.record(scheduled_parking(parked, now=False))
            self.start()

    def drop(self, handed_to: str | None = None) -> None:
        """Forget it, or leave it to another session. Raises KeyError."""
        parked = self._must_be_parked()
        self._session.log.record(dropped_parking(parked.id, handed_to))
        self.start()
        self._session.begin_next()

    async def continued(self, turn: Turn) -> Turn | None:
        """The turn in which the prompt of a parked turn is sent again, once it is; None if it was
        not parked, or is dropped."""
        while turn.parked is not None:
            following = self._resuming
            sent = None if following is None else following.parking
            if sent is not None and sent.id == turn.parked.id:
                return following
            if self.parked is None or self.parked.id != turn.parked.id:
                return None
            await self._changed.wait()
        return None

    def _must_be_parked(self) -> Parking:
        parked = self.parked
        if parked is None or (self._resuming is not None and not self._resuming.done):
            raise KeyError("the parked prompt")
        return parked

    def _change(
        self,
        outcome: ParkingOutcome,
        title: str,
        *,
        resumes_at: float | None = None,
        turn_id: str | None = None,
    ) -> None:
        if (parked := self.parked) is None:
            return
        changed = e.ParkingChanged(
            title,
            source="client",
            parking_id=parked.id,
            outcome=outcome,
            resumes_at=resumes_at,
            turn_id=turn_id,
        )
        self._session.log.record(changed)
        self.start()


def dropped_parking(parking_id: str, handed_to: str | None = None) -> e.ParkingChanged:
    """That a parked prompt is no longer this session's; `handed_to` is the one that has it."""
    title, outcome = "the parked prompt was dropped", "dropped"
    if handed_to is not None:
        title, outcome = f"the prompt was handed over to session {handed_to}", "handed_over"
    return e.ParkingChanged(
        title, source="client", parking_id=parking_id, outcome=outcome, session_id=handed_to
    )


PARKING = ("turn_limited", "parking_changed")
WANTED = ("access", "permission_requested", "elicitation_requested", "file_written")
"""Types of events: what became of parked prompts, and what an agent wanted from Dragoman."""


def parking_when_cut(
    state: SessionState, told: Sequence[e.Event]
) -> e.TurnLimited | e.ParkingChanged | None:
    """What to record before the running turn is ended because its process has ended, if it was to
    send a parked prompt: that it did not, or that the prompt is in doubt, since the agent has not
    done anything yet. `told` are the session's events of the types `PARKING`, and those of the turn
    of the types `WANTED`."""
    turn = state.turn
    if turn is None or turn.status == "cancelling":
        return None
    if state.parked is not None:
        return _not_sent(state.parked, turn.id)
    changes = (each for each in told if isinstance(each, e.ParkingChanged))
    sent = next((x for x in changes if (x.turn_id, x.outcome) == (turn.id, "continued")), None)
    if sent is None or _has_begun(state, sent, told):
        return None
    limited = (each.parked for each in told if isinstance(each, e.TurnLimited))
    parked = (each for each in limited if each is not None and each.id == sent.parking_id)
    found = next(parked, None)
    return None if found is None else _in_doubt(found, turn.id)


def _not_sent(parked: Parking, turn_id: str) -> e.ParkingChanged:
    return e.ParkingChanged(
        "the process has ended before it sent the parked prompt",
        source="client",
        parking_id=parked.id,
        outcome="waiting",
        resumes_at=parked.resumes_at,
        turn_id=turn_id,
    )


def _in_doubt(parked: Parking, turn_id: str) -> e.TurnLimited:
    parked = msgspec.structs.replace(parked, id=turn_id, resumes_at=time.time(), is_doubted=True)
    return e.TurnLimited(
        "the process that sent the parked prompt has ended: the agent may not have got it",
        "warning",
        "when the session is opened again, the agent's history and the folders say whether it did",
        source="client",
        turn_id=turn_id,
        kind=parked.kind,
        ends_at=parked.ends_at,
        parked=parked,
    )


def _has_begun(state: SessionState, sent: e.ParkingChanged, told: Sequence[e.Event]) -> bool:
    """Whether the agent has said, done or wanted something since."""
    ours = (each for each in state.entries if each.turn_id == sent.turn_id)
    if not all(isinstance(each, UserEntry | NoticeEntry) for each in ours):
        return True
    wanted = (each for each in told if not isinstance(each, e.TurnLimited | e.ParkingChanged))
    return any(each.seq > sent.seq for each in wanted)


def taken_over(session_id: str, parking_id: str) -> e.ParkingChanged:
    """That the prompt which comes next was parked in that session."""
    title = f"the prompt was handed over from session {session_id}"
    return e.ParkingChanged(
        title,
        source="client",
        parking_id=parking_id,
        outcome="taken_over",
        session_id=session_id,
    )


def unsent_parking(parking_id: str, why: str) -> e.ParkingChanged:
    """That it waits for a person from now on."""
    title = f"the parked prompt could not be sent: {why}"
    return e.ParkingChanged(title, source="client", parking_id=parking_id, outcome="waiting")


def scheduled_parking(parked: Parking, *, now: bool) -> e.ParkingChanged:
    """That it is sent by itself: at once, or when the limit is said to end."""
    at = time.time() if now else _time_to_resume(parked.kind, parked.ends_at, parked.attempt)
    title = "the prompt is to be sent now" if now else f"the prompt waits until {clock(at)}"
    return e.ParkingChanged(
        title, source="client", parking_id=parked.id, outcome="waiting", resumes_at=at
    )


def _content(parked: Parking) -> list[Content]:
    return parked.content if parked.repeats else [Text(CONTINUE)]


def _time_to_resume(
    kind: LimitKind, ends_at: float | None, attempt: int, least: float = LEAST_WAIT
) -> float:
    """A little after the end, else after a time that doubles: never all sessions at once. An end
    that was wrong before is not relied on."""
    now = time.time()
    if ends_at is None:
        wait = _FIRST_WAIT[kind] * 2 ** (attempt - 1)
    else:
        wait = max(ends_at - now, least * 2 ** (attempt - 2) if attempt > 1 else 0.0)
    return now + wait + min(_MOST_JITTER, wait / 10) * os.urandom(1)[0] / 255


def _outlook(parked: Parking | None, attempt: int, on_limit: OnLimit) -> str | None:
    if parked is None:
        tried = f"it was tried {attempt} times; " if attempt > MOST_ATTEMPTS else ""
        return None if on_limit == "fail" else f"{tried}send the prompt again yourself"
    if parked.resumes_at is None:
        return "it waits for you: continue, drop it, or hand it over to another agent"
    return f"continues at {clock(parked.resumes_at)}"


def clock(at: float) -> str:
    """A time of day of this machine; with the day if that is not today."""
    then = datetime.fromtimestamp(at).astimezone()
    is_today = then.date() == _now().date()
    return then.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M")


def _now() -> datetime:
    return datetime.now().astimezone()
