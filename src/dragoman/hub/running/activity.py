"""Counts what the sessions of this process do, for monitoring.

Turns, tool calls, tokens, costs, and how long questions, queued prompts and the store took. A count
only grows, and begins at zero when the process does. What an agent replays when it loads a session
is history, and not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from dragoman.session import events as e
from dragoman.session.facts import Cost, TokenUsage
from dragoman.session.state import SessionState

Labels: TypeAlias = tuple[tuple[str, str], ...]

_MOST_OPEN = 1_000
"""Turns, questions, queued prompts and tool calls of one session that are remembered at once."""


class Count(NamedTuple):
    """What is counted, and of what: each label with its value."""

    name: str
    labels: Labels = ()


class Activity:
    """Of one process."""

    def __init__(self) -> None:
        self.counts: defaultdict[Count, float] = defaultdict(float)

    def add(self, name: str, amount: float = 1.0, labels: Labels = ()) -> None:
        self.counts[Count(name, labels)] += amount

    def took(self, name: str, seconds: float, labels: Labels = ()) -> None:
        """How long something took: a sum, and how many there were."""
        self.add(f"{name}_seconds_sum", max(0.0, seconds), labels)
        self.add(f"{name}_seconds_count", 1.0, labels)

    def of(self, agent: str, history: SessionState | None) -> SessionActivity:
        """For a session that continues; what it has cost before does not count."""
        usage = None if history is None else history.usage
        return SessionActivity(self, agent, None if usage is None else usage.cost)


class SessionActivity:
    """Of one session that runs here. `cost` is what it had cost before."""

    def __init__(self, activity: Activity, agent: str, cost: Cost | None = None) -> None:
        self._activity = activity
        self._agent = agent
        self._cost = cost
        self._began: dict[tuple[str, str], float] = {}
        self._calls: set[str] = set()
        self._tokens: TokenUsage | None = None

    def take(self, events: Sequence[e.Event]) -> None:
        """Events of one read, in order. Nearly all are words, which count for nothing."""
        for event in events:
            if type(event) in _COUNTED and not event.replay:
                self._take(event)

    def stored(self, events: int, seconds: float) -> None:
        """A batch is durable."""
        self._activity.add("events_stored_total", events)
        self._activity.took("store_write", seconds)

    def _take(self, event: e.Event) -> None:
        match event:
            case e.TurnStarted():
                self._begin("turn", event.turn_id, event.at)
            case e.TurnEnded():
                self._turn_ended(event)
            case e.ToolCallUpdated():
                self._tool_call(event.tool_call_id)
            case e.UsageChanged(cost=Cost() as cost) if cost.is_credible:
                self._count_cost(cost)
            case e.PermissionRequested() | e.ElicitationRequested():
                self._begin("question", event.request_id, event.at)
            case e.PermissionSettled():
                self._settled(event.request_id, event.at, event.decision.effect)
            case e.ElicitationSettled():
                self._settled(event.request_id, event.at, event.action)
            case e.PromptQueued():
                self._begin("queued_prompt", event.queue_id, event.at)
            case e.PromptUnqueued():
                self._end("queued_prompt", event.queue_id, event.at)
            case _:
                pass

    def _turn_ended(self, event: e.TurnEnded) -> None:
        self._add("turns_total", outcome=_outcome(event))
        self._end("turn", event.turn_id, event.at)
        self._calls.clear()
        if event.usage is not None:
            self._count_tokens(event.usage)

    def _count_tokens(self, usage: TokenUsage) -> None:
        before = self._tokens if usage.counted == "session" else None
        self._tokens = usage
        for kind in ("input", "output", "thought", "cached_read", "cached_write"):
            growth = (getattr(usage, kind) or 0) - (getattr(before, kind, None) or 0)
            if growth > 0:
                self._add("tokens_total", growth, kind=kind)

    def _count_cost(self, cost: Cost) -> None:
        """An agent tells what the session has cost so far; less than before means that it started
        over."""
        known = self._cost
        self._cost = cost
        growth = cost.amount
        if known is not None and known.currency == cost.currency and known.amount <= cost.amount:
            growth -= known.amount
        self._add("cost_total", growth, currency=cost.currency)

    def _tool_call(self, call_id: str) -> None:
        if call_id not in self._calls:
            self._add("tool_calls_total")
            if len(self._calls) < _MOST_OPEN:
                self._calls.add(call_id)

    def _settled(self, request_id: str, at: float, answer: str) -> None:
        self._add("questions_total", answer=answer)
        self._end("question", request_id, at)

    def _begin(self, what: str, its_id: str, at: float) -> None:
        if len(self._began) < _MOST_OPEN:
            self._began[what, its_id] = at

    def _end(self, what: str, its_id: str, at: float) -> None:
        if (began := self._began.pop((what, its_id), None)) is not None:
            self._activity.took(what, at - began, (("agent", self._agent),))

    def _add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        self._activity.add(name, amount, (("agent", self._agent), *labels.items()))


def _outcome(event: e.TurnEnded) -> str:
    if event.interrupted:
        return "interrupted"
    return "failed" if event.error is not None else event.stop_reason or "ended"


_COUNTED = {
    e.TurnStarted,
    e.TurnEnded,
    e.ToolCallUpdated,
    e.UsageChanged,
    e.PermissionRequested,
    e.PermissionSettled,
    e.ElicitationRequested,
    e.ElicitationSettled,
    e.PromptQueued,
    e.PromptUnqueued,
}
