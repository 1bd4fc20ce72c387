"""Reads the `limits` of the settings."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Collection
from typing import Any

from dragoman.session.facts import Measure
from dragoman.session.limits.spending_limits import MEASURES, SpendingLimit, seconds_in


class BadLimit(Exception):
    """What is wrong: where it is, and what was expected there."""

    def __init__(self, place: str, expected: str) -> None:
        super().__init__(place, expected)
        self.place, self.expected = place, expected


def read_limits(entry: dict[str, Any], place: str, agents: Collection[str]) -> list[SpendingLimit]:
    """One for each thing that is limited there; `agents` are those that can be named. Raises
    BadLimit."""
    measured: list[Measure] = [each for each in MEASURES if each in entry]
    if not measured:
        raise BadLimit(place, f"one of {', '.join(MEASURES)}")
    per = _one_of(entry, place, "per", ("session", "turn"))
    if per == "turn" and "turns" in entry:
        raise BadLimit(f"{place}.turns", 'a limit of the session, without "per": "turn"')
    return [
        SpendingLimit(
            measure=each,
            most=_most(entry[each], f"{place}.{each}", each),
            per=per,
            then=_one_of(entry, place, "then", ("stop", "warn")),
            currency=_word(entry, place, "currency", "USD"),
            agent=_agent(entry, place, agents),
            project=_project(entry, place),
            source=f"{place}.{each} of the settings",
        )
        for each in measured
    ]


def _most(value: Any, place: str, measure: Measure) -> float:
    if measure == "time":
        seconds = seconds_in(value) if isinstance(value, str) else None
        if seconds is None:
            raise BadLimit(place, f'a time such as "90s", "10m" or "2h", not {value!r}')
        return seconds
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
        expected = " or ".join(f'"{word}"' for word in words)
        raise BadLimit(f"{place}.{key}", f"{expected}, not {value!r}")
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
