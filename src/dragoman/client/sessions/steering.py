"""Steers: what is said into a running turn, and what becomes of each, exactly once.

A steer is a prompt at the head of the queue. It goes to the agent by what the agent offers, one
after the other; what the agent does not take is sent as a prompt when the turn is over. What it may
have taken is not sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from dragoman.client.capabilities import AgentCapabilities
from dragoman.client.dialects.dialect import Dialect, PulledSteers
from dragoman.client.dialects.steer_calls import MOST_PULLED, SteerReply
from dragoman.client.sessions.session_log import SessionLog
from dragoman.client.sessions.turn import Turn
from dragoman.errors import DragomanError
from dragoman.session import events as e
from dragoman.session.facts import SteerOutcome, SteerWay
from dragoman.session.state import QueuedPrompt
from dragoman.session.state_limits import LIMITS, drop_oldest

logger = logging.getLogger("dragoman.client")

PULL_SECONDS = 1.0
"""How long an agent that asks is kept waiting for a slow store: it gives up soon."""

SETTLE_SECONDS = 2.0
"""How long the next prompt waits, after a turn, for what became of a steer."""

_Stage: TypeAlias = Literal["waiting", "leaving", "sent", "accepted", "kept"]
"""`leaving`: it goes on record as sent, and then to the agent; `accepted`: the agent has it, and
has not taken it up yet; `kept`: it is a prompt like others now."""
_OUT = ("sent", "accepted")
_HERE = ("waiting", "kept")


class Steer(msgspec.Struct, eq=False):
    """What became of a message to the running turn, as far as that is known when it is returned.

    `sent`: the agent has it, and takes it up at its next step. A steer that is `queued` may still
    be delivered, to an agent that asks for it. The event `Steered` has the final outcome. `turn` is
    the turn that it started, or that it becomes if the running turn does not take it.
    """

    id: str
    outcome: SteerOutcome | Literal["sent"]
    way: SteerWay
    reason: str = ""
    turn: Turn | None = None


class PendingSteer:
    """A steer in the queue."""

    def __init__(self, way: SteerWay, stage: _Stage = "waiting") -> None:
        self.way: SteerWay = way
        self.stage: _Stage = stage
        self.message_id: str | None = None
        self.told: asyncio.Future[Steer] = asyncio.get_running_loop().create_future()

    @property
    def is_out(self) -> bool:
        """Whether the agent has it, and may have taken it."""
        return self.stage in _OUT


class SteeredSession(Protocol):
    """What steers need of their session."""

    id: str
    log: SessionLog
    before_turn: Callable[[], Awaitable[None]] | None

    @property
    def running(self) -> Turn | None: ...

    @property
    def dialect(self) -> Dialect: ...

    @property
    def capabilities(self) -> AgentCapabilities: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    @property
    def busy(self) -> bool: ...

    def begin(self, turn: Turn) -> None: ...

    def begin_next(self) -> None: ...


class Steering:
    """The steers of one session; the head of its `queue`."""

    def __init__(self, session: SteeredSession, queue: deque[Turn]) -> None:
        self._session = session
        self._queue = queue
        self._run: str | None = None
        self._calling: asyncio.Task[None] | None = None
        self._is_asked = False
        """Whether the agent asks for steers."""
        self._repeated: dict[str, None] = {}
        """The agent's names for steers that it has repeated."""
        self._unrepeated: list[str] = []
        """The words of delivered steers that it may still tell us."""

    def restore(self, queue: Iterable[QueuedPrompt]) -> None:
        """What another process queued as a steer is a prompt here, before others."""
        stages = {each.id: each.steer for each in queue}
        for turn in self._queue:
            if stages[turn.id] is not None:
                turn.steer = PendingSteer("queue", "kept")

    def is_here(self, turn: Turn) -> bool:
        """Whether it is queued, and not with the agent."""
        return turn in self._queue and (turn.steer is None or turn.steer.stage in _HERE)

    # ── new ones ──────────────────────────────────────────────────────────────────────────────

    async def send(self, turn: Turn, warnings: list[str]) -> Steer:
        """To the turn that runs, or behind the prompts that wait; else it starts a turn."""
        session = self._session
        if session.busy or self._queue:
            for warning in warnings:
                session.log.record(e.Notice(warning, "warning", source="client"))
            return await self.add(turn)
        turn.warnings = warnings
        session.log.record(e.Steered(turn.id, "started", "prompt", turn_id=turn.id))
        session.begin(turn)
        return Steer(turn.id, "started", "prompt", turn=turn)

    async def add(self, turn: Turn) -> Steer:
        """Queue it, send it if that is possible, and tell what is known."""
        steer = turn.steer = PendingSteer(self._way)
        self._queue.insert(sum(1 for _ in self._steers()), turn)
        self.push()
        if steer.stage == "waiting":
            self._record_stage(turn, "waiting")
            if not self._can_go(steer) or any(_of(each).stage == "kept" for each in self._steers()):
                self._tell(turn, "queued")
        self._session.begin_next()
        return await asyncio.shield(steer.told)

    @property
    def _way(self) -> SteerWay:
        offered = self._session.capabilities.steer
        if offered is not None:
            return offered
        if self._run is not None:
            return "run"
        return "pull" if self._is_asked else "queue"

    def _can_go(self, steer: PendingSteer) -> bool:
        """Whether it is going to be sent, or others before it are."""
        turn = self._session.running
        alive = turn is not None and not turn.cancel_requested
        return alive and steer.way in ("steering", "run", "prompt")

    def _steers(self) -> Iterator[Turn]:
        return (turn for turn in self._queue if turn.steer is not None)

    @property
    def under_way(self) -> bool:
        """Whether a steer is with the agent, or about to be; no later one may be sent meanwhile."""
        return any(_of(turn).stage in (*_OUT, "leaving") for turn in self._steers())

    @property
    def holds_queue(self) -> bool:
        """Whether no prompt can be sent: a turn runs, or the agent has not said what became of a
        steer."""
        return self._session.running is not None or self.under_way

    # ── to an agent that takes them ───────────────────────────────────────────────────────────

    def on_run(self, run_id: str | None) -> None:
        """The agent says which run can be steered."""
        self._run = run_id
        self.push()

    def push(self) -> None:
        """Send the first that waits, if the agent is at work and takes it."""
        running = self._session.running
        if self._calling or running is None or not running.sent or running.cancel_requested:
            return
        for turn in self._steers():
            steer = _of(turn)
            if steer.stage == "waiting":
                steer.way = self._way
                if self._can_go(steer):
                    self._send(turn, running)
                return
            if steer.stage != "accepted":
                return

    def _send(self, turn: Turn, running: Turn) -> None:
        _of(turn).stage = "leaving"
        self._record_stage(turn, "sent")
        self._calling = self._session.spawn(self._call(turn, running))

    async def _call(self, turn: Turn, running: Turn) -> None:
        session, steer = self._session, _of(turn)
        try:
            if not await self._on_record(turn):
                return
            if running is not session.running or running.cancel_requested:
                self._keep(turn)
                return

            steer.stage = "sent"

            def hear(reply: SteerReply) -> None:
                self._answered(turn, running, reply)

            await session.dialect.steer(
                session.id, turn.content, turn.meta, hear, way=steer.way, run_id=self._run or ""
            )
        except DragomanError as error:
            self._settle(turn, "unsure", str(error))
        except Exception as error:
            logger.exception("a steer failed")
            self._settle(turn, "unsure", str(error))
        finally:
            self._calling = None
            self.push()
            session.begin_next()

    async def _on_record(self, turn: Turn) -> bool:
        """As a prompt: what is not on record is not sent, since another host may send it."""
        if self._session.before_turn is not None:
            try:
                await self._session.before_turn()
            except DragomanError as error:
                self._settle(turn, "refused", str(error))
                return False
        return True

    def _answered(self, turn: Turn, running: Turn, reply: SteerReply) -> None:
        steer = _of(turn)
        if not steer.is_out or turn not in self._queue:
            return  # it was repeated before, or given up
        match reply.outcome:
            case "accepted":
                steer.message_id = reply.message_id
                if running.done:
                    self._keep(turn)
                else:
                    steer.stage = "accepted"
                    self._tell(turn, "sent")
            case "idle":
                self._keep(turn, reply.reason)
            case outcome:
                self._settle(turn, outcome, reply.reason)

    # ── to an agent that asks for them ────────────────────────────────────────────────────────

    async def pull(self) -> PulledSteers:
        """Those that wait, for the running turn. They go on record first, if that is possible
        soon enough."""
        self._is_asked = True
        running, taken = self._session.running, self._to_pull()
        for turn in taken:
            _of(turn).stage = "leaving"
            self._record_stage(turn, "sent")
        is_stored = not taken or await self._stored_soon()
        still = [turn for turn in taken if turn in self._queue]
        if is_stored and running is self._session.running and running is not None:
            for turn in still:
                _of(turn).way = "pull"
                self._settle(turn, "delivered")
        else:
            for turn in still:
                _of(turn).stage = "waiting"
                self._record_stage(turn, "waiting")
            still = []
            self._session.begin_next()
        more = any(turn.steer is None for turn in self._queue)
        return PulledSteers({turn.id: turn.content for turn in still}, more)

    def _to_pull(self) -> list[Turn]:
        running = self._session.running
        if running is None or running.cancel_requested or self._session.capabilities.steer:
            return []
        waiting = [turn for turn in self._steers() if _of(turn).stage == "waiting"]
        return waiting[:MOST_PULLED]

    async def _stored_soon(self) -> bool:
        if self._session.before_turn is None:
            return True
        try:
            async with asyncio.timeout(PULL_SECONDS):
                await self._session.before_turn()
        except (DragomanError, TimeoutError):
            return False
        return True

    # ── what the agent repeats ────────────────────────────────────────────────────────────────

    def hears(self, message: e.UserMessage) -> bool:
        """Whether the agent tells us a steer of ours: it is in the thread, or is from now on."""
        key = message.message_id
        if key is not None and key in self._repeated:
            return True
        found = next((turn for turn in self._steers() if _is_told(turn, message)), None)
        if found is not None:
            self._settle(found, "delivered")
            self._unrepeated.remove(_words(found))
        elif (words := _repeated(self._unrepeated, message.text)) is not None:
            self._unrepeated.remove(words)
        else:
            return False
        if key is not None:
            self._repeated[key] = None
            drop_oldest(self._repeated, LIMITS.others)
        return True

    # ── the end ───────────────────────────────────────────────────────────────────────────────

    def turn_ended(self, *, in_order: bool) -> None:
        """Called before the next prompt is sent. A run that ended `in_order` has dropped what it
        did not take up; else nobody knows."""
        self._run = None
        self._unrepeated.clear()
        for turn in [turn for turn in self._steers() if _of(turn).is_out]:
            if not in_order:
                self._settle(turn, "unsure", "the turn was cut short")
            elif _of(turn).stage == "accepted" and _of(turn).way == "run":
                self._keep(turn)
            elif _of(turn).stage == "sent":
                asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._stop_waiting, turn)

    def _stop_waiting(self, turn: Turn) -> None:
        """The turn is over, and the agent does not say what became of it."""
        if turn in self._queue and _of(turn).stage == "sent":
            self._settle(turn, "unsure", "the agent did not answer")
            if self._calling is not None:
                self._calling.cancel()

    def begins(self, turn: Turn) -> None:
        """It becomes a turn of its own."""
        if turn.steer is not None:
            if turn.steer.stage != "kept":
                self._keep(turn)
            turn.steer = None

    def give_up(self, reason: str) -> None:
        """The agent is lost, or the session closes: of what it has, nobody knows."""
        self._run, self._is_asked = None, False
        for turn in [turn for turn in self._steers() if _of(turn).stage != "kept"]:
            self._settle(turn, "unsure" if _of(turn).is_out else "refused", reason)

    def dropped(self, turn: Turn) -> None:
        """It has left the queue unsent."""
        if turn.steer is not None:
            self._tell(turn, "refused", "it was dropped from the queue")

    def _keep(self, turn: Turn, reason: str = "") -> None:
        """It was not taken: it is sent when the turn is over, before other prompts."""
        if turn not in self._queue:
            return
        steer = _of(turn)
        steer.stage = "kept"
        self._session.log.record(e.Steered(turn.id, "queued", steer.way, reason=reason))
        for each in self._steers():
            if _of(each).stage in ("waiting", "kept"):
                self._tell(each, "queued", reason)

    def _settle(self, turn: Turn, outcome: SteerOutcome, reason: str = "") -> None:
        if turn not in self._queue:
            return
        self._queue.remove(turn)
        steer = _of(turn)
        running = self._session.running
        if outcome == "delivered":
            self._unrepeated.append(_words(turn))
        self._session.log.touch()
        self._session.log.record(
            e.Steered(
                turn.id,
                outcome,
                steer.way,
                turn.content,
                reason,
                None if running is None else running.id,
            )
        )
        self._tell(turn, outcome, reason)

    def _tell(self, turn: Turn, outcome: SteerOutcome | Literal["sent"], reason: str = "") -> None:
        """Answer the caller, once."""
        steer = _of(turn)
        if not steer.told.done():
            becomes = turn if outcome in ("queued", "sent") else None
            steer.told.set_result(Steer(turn.id, outcome, steer.way, reason, becomes))

    def _record_stage(self, turn: Turn, stage: Literal["waiting", "sent"]) -> None:
        self._session.log.record(e.PromptQueued(turn.id, turn.content, steer=stage))


def _of(turn: Turn) -> PendingSteer:
    assert turn.steer is not None
    return turn.steer


def _words(turn: Turn) -> str:
    return "".join(part.text for part in turn.content)


def _is_told(turn: Turn, message: e.UserMessage) -> bool:
    steer = _of(turn)
    if steer.message_id is not None:
        return steer.message_id == message.message_id
    return steer.is_out and _repeated([_words(turn)], message.text) is not None


def _repeated(known: list[str], text: str) -> str | None:
    """Which of them it is, or begins as."""
    return next((words for words in known if text.strip() and words.startswith(text.strip())), None)
