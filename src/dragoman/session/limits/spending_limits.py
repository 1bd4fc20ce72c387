"""Limits of what a turn or a session may use, and when one is reached."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.facts import LimitOutcome, LimitScope, Measure, OnLimit
from dragoman.session.limits.spending import Spending

Reaction: TypeAlias = Literal["stop", "ask", "warn"]

SCOPES: tuple[LimitScope, ...] = ("session", "turn", "day", "agent", "project")
REACTIONS: tuple[Reaction, ...] = ("stop", "ask", "warn")

OF_THE_SESSION = "the session's limit"
"""The `source` of a limit that a session was given when it began, and that cannot be changed."""
MEASURES: tuple[Measure, ...] = ("cost", "tokens", "time", "tool_calls", "turns")
_COUNTS: frozenset[Measure] = frozenset({"tool_calls", "turns"})
_MOST = 1e12


class SpendingLimit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """At most this much of something, in each turn, in the whole session, or in all sessions of a
    day, an agent or a project together.

    For tool calls and turns, `most` is how many are allowed: the next one reaches the limit. A
    limit on anything else is reached as soon as `most` has been used. `stop` cancels the turn, and
    no prompt is sent while the limit is reached; `ask` holds the turn and asks a person; `warn`
    only says so. With `agent` (a pattern) or `project` (a folder), the limit applies only to those
    sessions. `instead` are limits that apply until the agent reports what this one is about.
    `source` says where it was set.

    Raises ValueError for a number that cannot be a limit.
    """

    measure: Measure
    most: float
    per: LimitScope = "session"
    then: Reaction = "stop"
    currency: str = "USD"
    agent: str = "*"
    project: str = ""
    source: str = "the limit"
    instead: tuple[SpendingLimit, ...] = ()

    def __post_init__(self) -> None:
        if not self.most > 0:
            raise ValueError(f"expected a number above 0, not {self.most:g}")
        if self.most > _MOST:
            raise ValueError(f"expected at most {_MOST:,.0f} {self.unit}")
        if self.is_whole and self.most != int(self.most):
            raise ValueError(f"expected a whole number, not {self.most:g}")

    @property
    def is_shared(self) -> bool:
        """Whether what other sessions use counts, too."""
        return self.per not in ("turn", "session")

    def used(self, spent: Spending) -> float:
        """How much of it was used; 0 if the agent reports nothing."""
        match self.measure:
            case "cost":
                return spent.cost.get(self.currency, 0.0)
            case "tokens":
                return 0.0 if spent.tokens is None else float(spent.tokens.total)
            case "time":
                return spent.seconds
            case "tool_calls":
                return float(spent.tool_calls)
            case "turns":
                return float(spent.turns)

    def is_reached(self, spent: Spending) -> bool:
        """Whether it is reached. A cost in another currency cannot be compared, and counts as too
        much."""
        used = self.used(spent)
        if self.measure in _COUNTS:
            return used > self.most
        return used >= self.most or bool(self.other_currency(spent))

    def other_currency(self, spent: Spending) -> str:
        """The currency in which the agent reports a cost, if it is not that of the limit; else
        ""."""
        if self.measure != "cost":
            return ""
        others = (name for name, sum_ in spent.cost.items() if name != self.currency and sum_ > 0)
        return next(others, "")

    def is_unknown(self, spent: Spending) -> bool:
        """Whether the agent has reported nothing that can be compared."""
        if self.measure == "cost":
            return not spent.cost
        return self.measure == "tokens" and spent.tokens is None

    def raised_by(self, more: float, spent: Spending) -> float:
        """The limit once a person has allowed this much more. The call or turn that was one too
        many counts as the first of these."""
        used = self.used(spent) - (self.measure in _COUNTS)
        return min(max(self.most, used) + more, _MOST)

    def concerns(self, agent: str, cwd: str) -> bool:
        """Whether it applies to a session of that agent in that folder."""
        return self._holds(cwd) and fnmatch.fnmatchcase(agent, self.agent)

    def _holds(self, folder: str) -> bool:
        if not self.project:
            return True
        from pathlib import PurePath

        return PurePath(folder).is_relative_to(self.project)

    def sentence(self, spent: Spending, outcome: LimitOutcome) -> str:
        """What was used, what is allowed, what was done, and how to continue."""
        if other := self.other_currency(spent):
            what = f"the agent reports its cost in {_named(other)}"
            allowed = f"{self.source} is in {self.currency}, so that it cannot be checked"
            raised = f"give {self.source} in {_named(other)}"
        else:
            what = self.use_in_words(spent)
            allowed = f"{self.source} allows {self._amount(self.most)}"
            raised = f"raise {self.source}"
        return f"{_DONE[outcome]}{what}, and {allowed}{self._go_on(outcome, raised)}"

    def _go_on(self, outcome: LimitOutcome, raised: str) -> str:
        if self.source != OF_THE_SESSION or outcome not in ("stopped", "not_sent"):
            return _GO_ON[outcome].format(raised)
        if self.per == "turn":
            return "; to continue, send another prompt"
        return "; to continue, start a new session with another limit"

    def use_in_words(self, spent: Spending) -> str:
        """Such as: this session has used 3 tool calls."""
        used = self._amount(self._shown(spent))
        match self.per:
            case "turn" | "session":
                return f"this {self.per} has used {used}"
            case "day":
                return f"sessions have used {used} today"
            case "agent" | "project":
                return f"the sessions of this {self.per} have used {used}"

    @property
    def unit(self) -> str:
        """What its numbers count, such as `seconds` or `USD`."""
        names: dict[Measure, str] = {"cost": self.currency, "time": "seconds"}
        return names.get(self.measure, self.measure.replace("_", " "))

    @property
    def is_whole(self) -> bool:
        return self.measure in _COUNTS | {"tokens"}

    def _shown(self, spent: Spending) -> float:
        """The call or the prompt that was one too many was not carried out."""
        used = self.used(spent)
        return min(used, self.most) if self.measure in _COUNTS else used

    def _amount(self, value: float) -> str:
        match self.measure:
            case "cost":
                digits = 6 if value >= 1e-6 else 12
                return f"{value:.{digits}f}".rstrip("0").rstrip(".") + f" {self.currency}"
            case "time":
                return f"{value:.1f}".removesuffix(".0") + " s"
            case "tokens" | "tool_calls" | "turns":
                word = self.measure.replace("_", " ")
                return f"{value:,.0f} {word if value != 1 else word.removesuffix('s')}"


def _named(currency: str) -> str:
    """An agent may call money what it likes."""
    return "".join(each for each in currency if each.isalnum()) or "another currency"


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What one session was given besides the limits of its agent: limits, and what becomes of a
    prompt when its provider reports one."""

    limits: tuple[SpendingLimit, ...] = ()
    on_limit: OnLimit | None = None


NO_LIMITS = SessionLimits()
_DONE: dict[LimitOutcome, str] = {
    "warned": "",
    "asked": "",
    "raised": "the limit was raised: ",
    "stopped": "the turn was stopped: ",
    "not_sent": "the prompt was not sent: ",
    "late": "the turn was over when its usage was known: ",
}
_GO_ON: dict[LimitOutcome, str] = {
    "warned": "",
    "asked": "",
    "raised": " from now on",
    "stopped": "; to continue, {} and send another prompt",
    "not_sent": "; to continue, {}, or start a new session",
    "late": "",
}


_TIME = lazy_pattern(r"(\d+(?:\.\d+)?)([smh])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_in(text: str) -> float | None:
    """A time above 0 such as `90s`, `10m` or `2h`; None for anything else."""
    found = _TIME.fullmatch(text)
    return None if found is None else float(found[1]) * _SECONDS[found[2]] or None


def limits_for(limits: Iterable[SpendingLimit], agent: str, cwd: str) -> list[SpendingLimit]:
    """Those that hold for a session of that agent in that folder."""
    return [each for each in limits if each.concerns(agent, cwd)]
