"""What a session has used, counted from its events: turns, tool calls, time, tokens and money.

Money is what the agent says that the session has cost so far: only the increase counts, and a
smaller sum than before means that the agent started over. Where it says nothing, the tokens of a
turn are charged at the price of its model, if that is known. A sum of 0 says nothing: agents report
that for models whose price they do not know. What is not known is not 0 but unknown: `tokens` is
None and `cost` is empty then, and turns of which something is missing are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.session import events as e
from dragoman.session.facts import Cost, ModelTokens, TokenUsage
from dragoman.session.limits.prices import Prices, amount_of, price_of

_MOST_CALLS = 100_000
"""Ids of tool calls that are distinguished in one turn; each one beyond counts as a new call."""
_MOST_CURRENCIES = 16
_MOST_TOKENS = 10**15
"""More than that at once is not believed: a sum has to be a number to JSON and to a limit."""


class Tokens(msgspec.Struct, rename="camel"):
    """As the agent counts them. `cached` is the part of its input that was read from, or written
    to, a cache; not every agent includes it in `input`."""

    total: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    thought: int = 0

    def plus(self, other: Tokens) -> Tokens:
        return Tokens(*(a + b for a, b in zip(_counts(self), _counts(other), strict=True)))


def _counts(tokens: Tokens) -> tuple[int, int, int, int, int]:
    return tokens.total, tokens.input, tokens.cached, tokens.output, tokens.thought


def tokens_of(usage: TokenUsage | ModelTokens) -> Tokens:
    """Counts below 0 are not believed."""
    cached = _believed(usage.cached_read) + _believed(usage.cached_write)
    parts = _believed(usage.input), cached, _believed(usage.output), _believed(usage.thought)
    return Tokens(_believed(usage.total), *parts)


def _believed(count: int | None) -> int:
    return min(max(0, count or 0), _MOST_TOKENS)


class Spending(msgspec.Struct, rename="camel"):
    """What was used, by one turn, one session or many."""

    turns: int = 0
    tool_calls: int = 0
    seconds: float = 0.0
    """The time from each prompt to the end of its turn."""
    waited: float = 0.0
    """The part of that time in which a question was waiting for an answer."""
    tokens: Tokens | None = None
    cost: dict[str, float] = {}
    """By currency."""
    estimated: dict[str, float] = {}
    """The part of the cost that the agent did not report: tokens at the price of their model."""
    parked: float = 0.0
    """Seconds, after turns, in which prompts waited for the end of a provider's limit."""
    turns_without_tokens: int = 0
    """Turns whose tokens are unknown, or known only for the last request."""
    turns_without_cost: int = 0
    """Turns whose cost is unknown, or only partly known."""

    def add(self, other: Spending) -> None:
        self.turns += other.turns
        self.tool_calls += other.tool_calls
        self.seconds += other.seconds
        self.waited += other.waited
        self.parked += other.parked
        self.turns_without_tokens += other.turns_without_tokens
        self.turns_without_cost += other.turns_without_cost
        self.add_tokens(other.tokens)
        for currency, amount in other.cost.items():
            self.add_cost(currency, amount)
        for currency, amount in other.estimated.items():
            self.estimated[currency] = self.estimated.get(currency, 0.0) + amount

    def add_tokens(self, tokens: Tokens | None) -> None:
        if tokens is not None:
            self.tokens = tokens if self.tokens is None else self.tokens.plus(tokens)

    def add_cost(self, currency: str, amount: float) -> None:
        self.cost[currency] = self.cost.get(currency, 0.0) + amount


class Meter:
    """Counts the events of one session, in their order. Without `prices`, only money that the agent
    reports counts."""

    def __init__(self, prices: Prices | None = None) -> None:
        self.session = Spending()
        self.turn = Spending()
        """Of the running turn; of the last one when none runs."""
        self.turn_id: str | None = None
        self.raised: list[e.LimitReached] = []
        """By persons, so far."""
        self.model = ""
        """The one that this turn used most, else the one that was chosen when it began."""
        self._prices = prices or {}
        self._chosen = ""
        self._began = 0.0
        self._calls: set[int] = set()
        """By a hash of their ids, which may be very long; nobody can choose ids with the same."""
        self._costs: dict[str, float] = {}
        self._tokens = TokenUsage(0, 0, 0)
        self._asked: set[str] = set()
        self._waits_since = 0.0
        self._parked: dict[str, float] = {}
        self.steps: dict[type[e.Event], Callable[[Any], bool | None]] = {
            e.TurnStarted: self._turn_started,
            e.TurnEnded: self._turn_ended,
            e.ToolCallUpdated: self._tool_call,
            e.SubagentEvent: self._subagent_event,
            e.UsageChanged: self._usage,
            e.ConfigChanged: self._config,
            e.PermissionRequested: self._asks,
            e.ElicitationRequested: self._asks,
            e.PermissionSettled: self._settled,
            e.ElicitationSettled: self._settled,
            e.LimitReached: self._limit_reached,
            e.TurnLimited: self._turn_limited,
            e.ParkingChanged: self._parking_changed,
        }

    def see(self, event: e.Event) -> bool:
        """Count it; whether it changed what was used. Of history that an agent sends again, a cost
        is only what the session had cost by then."""
        step = self.steps.get(type(event))
        if step is None or (event.replay and type(event) not in _TOLD_AGAIN):
            return False
        return step(event) is not False

    def used_by(self, per: str) -> Spending:
        return self.turn if per == "turn" else self.session

    def _both(self) -> tuple[Spending, Spending]:
        return self.turn, self.session

    # ── turns and time ────────────────────────────────────────────────────────────────────────

    def _turn_started(self, event: e.TurnStarted) -> None:
        self.turn, self.turn_id, self._began = Spending(), event.turn_id, event.at
        self.model = self._chosen
        self._calls.clear()
        self._asked.clear()
        for each in self._both():
            each.turns += 1
            each.turns_without_tokens += 1
            each.turns_without_cost += 1

    def _turn_ended(self, event: e.TurnEnded) -> None:
        if self.turn_id != event.turn_id:
            return
        self.turn_id = None
        for each in self._both():
            each.seconds += max(0.0, event.at - self._began)
        if event.usage is not None:
            self._add_tokens(event.usage)

    def _tool_call(self, event: e.ToolCallUpdated, subagent: str = "") -> bool:
        """Whether it is a new one: most are reported several times."""
        call = hash((subagent, event.tool_call_id) if subagent else event.tool_call_id)
        if self.turn_id is None or call in self._calls:
            return False
        if len(self._calls) < _MOST_CALLS:
            self._calls.add(call)
        for each in self._both():
            each.tool_calls += 1
        return True

    def _subagent_event(self, event: e.SubagentEvent) -> bool:
        told = event.event
        return isinstance(told, e.ToolCallUpdated) and self._tool_call(told, event.session_id)

    def _asks(self, event: e.PermissionRequested | e.ElicitationRequested) -> None:
        if not self._asked:
            self._waits_since = event.at
        self._asked.add(event.request_id)

    def _settled(self, event: e.PermissionSettled | e.ElicitationSettled) -> None:
        """The time of several that wait together counts once, up to the last answer."""
        if event.request_id not in self._asked:
            return
        self._asked.remove(event.request_id)
        for each in () if self._asked else self._both():
            each.waited += max(0.0, event.at - self._waits_since)

    def _limit_reached(self, event: e.LimitReached) -> None:
        if event.limit.outcome == "not_sent":
            for each in self._both():
                each.turns -= 1
                each.turns_without_tokens -= 1
                each.turns_without_cost -= 1
        elif event.limit.outcome == "raised":
            self.raised.append(event)

    def _turn_limited(self, event: e.TurnLimited) -> None:
        if event.parked is not None:
            self._parked = {event.parked.id: event.at}

    def _parking_changed(self, event: e.ParkingChanged) -> None:
        if event.outcome == "waiting":
            return
        since = self._parked.pop(event.parking_id, event.at)
        for each in self._both():
            each.parked += max(0.0, event.at - since)

    # ── tokens and money ──────────────────────────────────────────────────────────────────────

    def _config(self, event: e.ConfigChanged) -> None:
        for option in event.options:
            if option.category == "model" and isinstance(option.value, str):
                self._chosen = option.value

    def _add_tokens(self, told: TokenUsage) -> None:
        used = self._since_then(told) if told.counted == "session" else told
        for each in self._both():
            each.add_tokens(tokens_of(used))
        if told.counted != "request":
            self._know("turns_without_tokens")
        by_model = (used.models if told.counted == "turn" else None) or []
        if by_model:
            self.model = max(by_model, key=lambda each: each.total).model
        if not any(self._costs.values()):
            self._estimate(by_model or [_as_of(self.model, used)], is_all=told.counted != "request")

    def _since_then(self, told: TokenUsage) -> TokenUsage:
        """The increase; all of it if it is less than before, since the agent started over."""
        before, self._tokens = self._tokens, told
        return told if told.total < before.total else _less(told, before)

    def _estimate(self, used: list[ModelTokens], *, is_all: bool) -> None:
        for part in used:
            price = price_of(part.model, self._prices)
            if price is None:
                is_all = is_all and tokens_of(part).total == 0
                continue
            amount = amount_of(part, price)
            for each in self._both():
                each.add_cost(price.currency, amount)
                each.estimated[price.currency] = each.estimated.get(price.currency, 0.0) + amount
        if is_all:
            self._know("turns_without_cost")

    def _know(self, missing: str) -> None:
        """Nothing is missing of this turn any longer."""
        if getattr(self.turn, missing):
            for each in self._both():
                setattr(each, missing, getattr(each, missing) - 1)

    def _usage(self, event: e.UsageChanged) -> bool:
        """Whether it says what something costs."""
        cost = event.cost
        if cost is None or not cost.is_credible:
            return False
        if cost.currency in self._costs or len(self._costs) < _MOST_CURRENCIES:
            self._add_cost(cost, is_known=event.replay)
        return True

    def _add_cost(self, cost: Cost, *, is_known: bool) -> None:
        before = self._costs.get(cost.currency, 0.0)
        self._costs[cost.currency] = cost.amount
        growth = cost.amount - before if cost.amount >= before else cost.amount
        if is_known or not (cost.amount or before):
            return
        if not before:  # it covers what was estimated until now
            growth = max(0.0, growth - self.session.estimated.get(cost.currency, 0.0))
        for each in self._both():
            each.add_cost(cost.currency, growth)
        self._know("turns_without_cost")


def _as_of(model: str, used: TokenUsage) -> ModelTokens:
    return ModelTokens(
        model,
        used.total,
        used.input,
        used.output,
        used.thought,
        used.cached_read,
        used.cached_write,
    )


def _less(told: TokenUsage, before: TokenUsage) -> TokenUsage:
    def since(name: str) -> Any:
        now, then = getattr(told, name), getattr(before, name)
        return None if now is None else max(0, now - (then or 0))

    return TokenUsage(**{name: since(name) for name in _COUNTS})


_COUNTS = ("total", "input", "output", "thought", "cached_read", "cached_write")
_TOLD_AGAIN = frozenset({e.UsageChanged, e.ConfigChanged})
"""What counts of history too: the sum so far, and which model is chosen."""
COUNTED: frozenset[type[e.Event]] = frozenset(Meter().steps)
"""The kinds of events that say something of what is used."""
