"""Reads `limits`, of the settings, a policy file or a new session; and the `prices` of models."""

from __future__ import annotations

import fnmatch
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

from dragoman.agents.known import KnownAgent
from dragoman.agents.settings.setting_keys import LIMIT_KEYS, PRICE_KEYS, Keys, known_keys
from dragoman.errors import LimitUnusable
from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.facts import Measure
from dragoman.session.limits.prices import Price
from dragoman.session.limits.spending_limits import (
    MEASURES,
    REACTIONS,
    SCOPES,
    SpendingLimit,
    seconds_in,
)

_REPORTED: frozenset[Measure] = frozenset({"cost", "tokens"})
_COUNTED: frozenset[str] = frozenset({"time", "tool_calls", "turns"})
_ABOUT = ("per", "then", "agent", "project")


class BadLimit(Exception):
    """What is wrong: where it is, and what was expected there."""

    def __init__(self, place: str, expected: str) -> None:
        super().__init__(place, expected)
        self.place, self.expected = place, expected


def read_limits(value: Any, agents: Collection[str], where: str) -> tuple[SpendingLimit, ...]:
    """Those of a list, one for each thing that is limited; `agents` are those that can be named,
    `where` says where the list is. Raises BadLimit."""
    if not isinstance(value, list):
        raise BadLimit("limits", "a list")
    return tuple(
        limit
        for index, entry in enumerate(cast("list[Any]", value))
        for limit in _limits(entry, f"limits[{index}]", agents, where)
    )


def _limits(entry: Any, place: str, agents: Collection[str], where: str) -> list[SpendingLimit]:
    if not isinstance(entry, dict):
        raise BadLimit(place, "an object")
    entry = cast("dict[str, Any]", entry)
    if unknown := next((key for key in entry if key not in LIMIT_KEYS), None):
        raise BadLimit(f"{place}.{unknown}", known_keys(unknown, LIMIT_KEYS))
    measured: list[Measure] = [each for each in MEASURES if each in entry]
    if not measured:
        raise BadLimit(place, f"one of {', '.join(MEASURES)}")
    per = _one_of(entry, place, "per", SCOPES)
    if per == "turn" and "turns" in entry:
        raise BadLimit(f"{place}.turns", 'a limit of more than a turn, without "per": "turn"')
    instead = _instead(entry, place, measured, agents, where)
    return [
        SpendingLimit(
            measure=each,
            most=_most(entry[each], f"{place}.{each}", each),
            per=per,
            then=_one_of(entry, place, "then", REACTIONS),
            currency=_currency(entry, place),
            agent=_agent(entry, place, agents),
            project=_project(entry, place),
            source=f"{place}.{each} of {where}",
            instead=instead if each in _REPORTED else (),
        )
        for each in measured
    ]


def _instead(
    entry: dict[str, Any],
    place: str,
    measured: Collection[Measure],
    agents: Collection[str],
    where: str,
) -> tuple[SpendingLimit, ...]:
    """What Dragoman counts itself, for agents that do not report what it is about."""
    if "instead" not in entry:
        return ()
    inside = f"{place}.instead"
    if _REPORTED.isdisjoint(measured):
        raise BadLimit(inside, "to stand next to cost or tokens")
    given = entry["instead"]
    if not isinstance(given, dict) or not _COUNTED.issuperset(cast("dict[str, Any]", given)):
        raise BadLimit(inside, f"an object with some of {', '.join(sorted(_COUNTED))}")
    shared = {key: value for key, value in entry.items() if key in _ABOUT}
    return tuple(_limits({**given, **shared}, inside, agents, where))


def _most(value: Any, place: str, measure: Measure) -> float:
    if measure == "time":
        seconds = seconds_in(value) if isinstance(value, str) else None
        if seconds is None:
            raise BadLimit(place, f'a time such as "90s", "10m" or "2h", not {value!r}')
        value = seconds
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return SpendingLimit(measure=measure, most=value).most
    except ValueError as error:
        raise BadLimit(place, str(error).removeprefix("expected ")) from error
    raise BadLimit(place, f"a number above 0, not {value!r}")


def _one_of(entry: dict[str, Any], place: str, key: str, words: tuple[Any, ...]) -> Any:
    """The first is the default."""
    value = entry.get(key, words[0])
    if value not in words:
        *others, last = (f'"{word}"' for word in words)
        raise BadLimit(f"{place}.{key}", f"{', '.join(others)} or {last}, not {value!r}")
    return value


def _word(entry: dict[str, Any], place: str, key: str, usual: str) -> str:
    value = entry.get(key, usual)
    if not isinstance(value, str) or not value:
        raise BadLimit(f"{place}.{key}", f"a non-empty string, not {value!r}")
    return value


def _agent(entry: dict[str, Any], place: str, agents: Collection[str]) -> str:
    pattern = _word(entry, place, "agent", "*")
    if not any(fnmatch.fnmatchcase(name, pattern) for name in agents):
        raise BadLimit(f"{place}.agent", f"the name of an agent, not {pattern!r}")
    return pattern


def _project(entry: dict[str, Any], place: str) -> str:
    if "project" not in entry:
        return ""
    path = os.path.expanduser(_word(entry, place, "project", ""))
    if not os.path.isabs(path):
        raise BadLimit(f"{place}.project", f"the absolute path of a directory, not {path!r}")
    return os.path.normpath(path)


def must_be_told(limits: Iterable[SpendingLimit], known: KnownAgent | None) -> None:
    """Raises LimitUnusable for one that could not be checked, since the agent is known not to
    report what it is about."""
    for limit in limits:
        untold = known is not None and limit.measure in known.untold
        if known is not None and untold and not limit.instead and limit.then != "warn":
            what = "what it costs" if limit.measure == "cost" else "its tokens"
            reason = f"{known.name} does not report {what}"
            advice = "limit the time or the tool calls, which Dragoman counts itself"
            raise LimitUnusable(limit.source, f"{reason}; {advice}")


_CURRENCY = lazy_pattern("[A-Z]{3}")
_MOST_MONEY = 1e6
"""For a million tokens; more is not believed."""


def read_prices(
    entries: Mapping[str, Any], checked: Callable[[Any, str, Keys], dict[str, Any]]
) -> dict[str, Price]:
    """By the names of the models in lower case; `checked` returns a value as an object with
    those keys. Raises BadLimit."""
    return {
        name.lower(): _price_in(checked(entry, f"prices.{name}", PRICE_KEYS), f"prices.{name}")
        for name, entry in entries.items()
    }


def _price_in(entry: Mapping[str, Any], place: str) -> Price:
    for key in ("input", "output"):
        if key not in entry:
            raise BadLimit(place, f"`input` and `output`, but there is no `{key}`")
    amounts: dict[str, Any] = {
        key: _amount(entry[key], f"{place}.{key}") for key in entry if key != "currency"
    }
    return Price(**amounts, currency=_currency(entry, place), source="settings")


def _currency(entry: Mapping[str, Any], place: str) -> str:
    """As agents write it: a limit in any other unit could never be compared."""
    currency = entry.get("currency", "USD")
    if not isinstance(currency, str) or _CURRENCY.fullmatch(currency) is None:
        raise BadLimit(f"{place}.currency", f'a currency such as "EUR", not {currency!r}')
    return currency


def _amount(value: Any, place: str) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and 0 <= value <= _MOST_MONEY:
        return float(value)
    raise BadLimit(place, f"what a million tokens cost, a number of at least 0, not {value!r}")
