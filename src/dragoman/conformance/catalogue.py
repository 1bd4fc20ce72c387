"""The table of all checks, and what is taken from it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from dragoman.conformance.check import Check, Side


@cache
def table(side: Side) -> tuple[Check[Any], ...]:
    """Every check of one side, in the order in which they are made and reported."""
    return _agent_checks() if side == "agent" else _client_checks()


def _agent_checks() -> tuple[Check[Any], ...]:
    from dragoman.conformance.agent_checks import (
        handshake_checks,
        message_checks,
        process_checks,
        session_checks,
        tool_checks,
        turn_checks,
        v2_checks,
    )

    subjects = (
        handshake_checks,
        message_checks,
        session_checks,
        turn_checks,
        tool_checks,
        process_checks,
        v2_checks,
    )
    return tuple(row for subject in subjects for row in subject.checks.rows)


def _client_checks() -> tuple[Check[Any], ...]:
    from dragoman.conformance.client_scenes import (
        ending_scenes,
        host_scenes,
        message_scenes,
        opening_scenes,
        question_scenes,
        update_scenes,
    )

    subjects = (
        opening_scenes,
        message_scenes,
        update_scenes,
        question_scenes,
        host_scenes,
        ending_scenes,
    )
    return tuple(row for subject in subjects for row in subject.checks.rows)


class UnknownCheck(Exception):
    """No check has this id, nor does the pattern match one."""

    def __init__(self, key: str, meant: str | None) -> None:
        hint = f"; did you mean {meant}?" if meant else ""
        super().__init__(f"no check is called {key}{hint}")


def select(
    checks: Iterable[Check[Any]], only: Iterable[str] = (), skip: Iterable[str] = ()
) -> list[Check[Any]]:
    """The checks whose ids match one of `only`, if there are any, and none of `skip`. Each is an
    id, a pattern like `rpc.*`, or the first part of ids. Raises UnknownCheck."""
    known = list(checks)
    wanted, unwanted = list(only), list(skip)
    for pattern in (*wanted, *unwanted):
        if not any(matches(each.id, pattern) for each in known):
            raise _unknown(pattern, known)
    return [
        each
        for each in known
        if (not wanted or any(matches(each.id, pattern) for pattern in wanted))
        and not any(matches(each.id, pattern) for pattern in unwanted)
    ]


def matches(key: str, pattern: str) -> bool:
    return fnmatchcase(key, pattern) or key.partition(".")[0] == pattern


def find(key: str, *sides: Side) -> Check[Any]:
    """The check with this id. Raises UnknownCheck."""
    known = [each for side in sides for each in table(side)]
    for each in known:
        if each.id == key:
            return each
    raise _unknown(key, known)


def _unknown(key: str, known: list[Check[Any]]) -> UnknownCheck:
    meant = get_close_matches(key, [each.id for each in known], 1)
    return UnknownCheck(key, meant[0] if meant else None)
