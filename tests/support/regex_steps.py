"""Counts what a backtracking engine tries for a regular expression: no clock is asked.

Matches as Python does, one character after another, from Python's own reading of the pattern.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

_parser: Any = importlib.import_module("re._parser")
_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def steps(pattern: str | re.Pattern[str], text: str) -> int:
    """How many places and characters a search looks at. Raises AssertionError if it does not find
    what Python finds."""
    compiled = re.compile(pattern)
    engine = _Engine(text)
    engine.search(_parser.parse(compiled.pattern, compiled.flags))
    assert engine.has_found == (compiled.search(text) is not None), (pattern, text[:80])
    return engine.steps


class _Engine:
    def __init__(self, text: str) -> None:
        self._text = text
        self.steps = 0
        self._ignores_case = False
        self._any_is_all = False
        self.has_found = False

    def search(self, parsed: Any) -> None:
        self._ignores_case = bool(parsed.state.flags & re.IGNORECASE)
        self._any_is_all = bool(parsed.state.flags & re.DOTALL)
        for at in range(len(self._text) + 1):
            self.steps += 1
            if next(self._ends(parsed, at), None) is not None:
                self.has_found = True
                return

    def _ends(self, items: Sequence[Any], at: int) -> Iterator[int]:
        """Where the items may end that begin here, the preferred first."""
        if not items:
            yield at
            return
        first, rest = items[0], items[1:]
        for end in self._item(str(first[0]), first[1], at):
            yield from self._ends(rest, end)

    def _item(self, kind: str, given: Any, at: int) -> Iterator[int]:
        match kind:
            case "MAX_REPEAT" | "MIN_REPEAT":
                yield from self._repeat(given, at, is_lazy=kind == "MIN_REPEAT")
            case "POSSESSIVE_REPEAT":
                yield from _first(self._repeat(given, at, is_lazy=False))
            case "ATOMIC_GROUP":
                yield from _first(self._ends(given, at))
            case "SUBPATTERN":
                yield from self._group(given, at)
            case "BRANCH":
                for each in given[1]:
                    yield from self._ends(each, at)
            case "ASSERT" | "ASSERT_NOT":
                if self._looks(given, at) == (kind == "ASSERT"):
                    yield at
            case "AT":
                if self._is_at(str(given), at):
                    yield at
            case _:
                self.steps += 1
                if at < len(self._text) and self._fits(kind, given, self._text[at]):
                    yield at + 1

    def _group(self, given: Any, at: int) -> Iterator[int]:
        _, added, _, items = given
        if not added:
            yield from self._ends(items, at)
            return
        before = self._ignores_case, self._any_is_all
        self._ignores_case |= bool(added & re.IGNORECASE)
        self._any_is_all |= bool(added & re.DOTALL)
        ends = list(self._ends(items, at))
        self._ignores_case, self._any_is_all = before
        yield from ends

    def _repeat(self, given: Any, at: int, *, is_lazy: bool) -> Iterator[int]:
        """Depth first, without recursion: a text is longer than the stack."""
        least, most, item = given
        ways: list[Iterator[int]] = []
        ends = [at]
        if is_lazy and least == 0:
            yield at
        while ends:
            if len(ways) < len(ends):
                more = len(ends) - 1 < int(most)
                ways.append(self._ends(item, ends[-1]) if more else iter(()))
            end = next(ways[-1], None)
            if end is not None and end != ends[-1]:
                ends.append(end)
                if is_lazy and len(ends) > least:
                    yield end
            elif end is None:
                ways.pop()
                last = ends.pop()
                if not is_lazy and len(ends) >= least:
                    yield last

    def _looks(self, given: Any, at: int) -> bool:
        direction, items = given
        if direction > 0:
            return next(self._ends(items, at), None) is not None
        width = items.getwidth()[0]
        return at >= width and at in self._ends(items, at - width)

    def _is_at(self, where: str, at: int) -> bool:
        self.steps += 1
        before = at > 0 and re.match(r"\w", self._text[at - 1]) is not None
        after = at < len(self._text) and re.match(r"\w", self._text[at]) is not None
        match where:
            case "AT_BEGINNING" | "AT_BEGINNING_STRING":
                return at == 0
            case "AT_END":
                return self._text[at:] in ("", "\n")
            case "AT_END_STRING":
                return at == len(self._text)
            case "AT_BOUNDARY":
                return before != after
            case _:
                raise NotImplementedError(where)

    def _fits(self, kind: str, given: Any, char: str) -> bool:
        match kind:
            case "LITERAL":
                return self._is(given, char)
            case "NOT_LITERAL":
                return not self._is(given, char)
            case "ANY":
                return self._any_is_all or char != "\n"
            case "IN":
                named = [(str(each), value) for each, value in given if str(each) != "NEGATE"]
                is_negated = str(given[0][0]) == "NEGATE"
                return any(self._is_in(*each, char) for each in named) != is_negated
            case _:
                raise NotImplementedError(kind)

    def _is_in(self, kind: str, given: Any, char: str) -> bool:
        if kind == "RANGE":
            chars = {char, char.lower(), char.upper()} if self._ignores_case else {char}
            return any(given[0] <= ord(each) <= given[1] for each in chars)
        if kind == "CATEGORY":
            name = str(given).removeprefix("CATEGORY_")
            is_one = re.match(_CATEGORIES[name.removeprefix("NOT_")], char) is not None
            return is_one != name.startswith("NOT_")
        return self._is(given, char)

    def _is(self, code: int, char: str) -> bool:
        wanted = chr(code)
        return char == wanted or (self._ignores_case and char.lower() == wanted.lower())


def _first(ends: Iterator[int]) -> Iterator[int]:
    end = next(ends, None)
    if end is not None:
        yield end
