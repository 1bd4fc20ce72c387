"""Matches text against an agent's regular expressions, in bounded time.

A backtracking engine can be made to run for years by a short pattern. This one follows all
alternatives at once, and each step, in compiling a pattern and in matching it, is paid from a
budget. It reads the usual part of what JSON Schema means by a pattern (ECMA 262); what it does not
know, or cannot pay for, is not judged. Pure.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from itertools import chain
from typing import TypeAlias

_LONGEST_PATTERN = 500
_MOST_STEPS = 2_000
MOST_WORK = 50_000
"""Steps, of a microsecond or a few each."""

_Fits: TypeAlias = Callable[[str], bool]
_Assertion: TypeAlias = str
"""`^` and `$`, `b` for the edge of a word and `B` for no edge."""


class _Sequence(list["_Node"]):
    """One after another."""


class _Choice(list["_Node"]):
    """One of these."""


class _Repeat:
    def __init__(self, node: _Node, least: int, most: int | None) -> None:
        self.node, self.least, self.most = node, least, most


class _Class:
    """One character of these, or of all others."""

    def __init__(self, parts: list[_Fits], is_negated: bool) -> None:
        self.parts, self._is_negated = parts, is_negated

    def __call__(self, char: str) -> bool:
        return any(part(char) for part in self.parts) != self._is_negated


_Node: TypeAlias = "_Fits | _Assertion | _Sequence | _Choice | _Repeat"


class _Split(tuple[int, ...]):
    """Continue at each of these places."""


_Step: TypeAlias = "_Fits | _Assertion | _Split | None"
"""None is the end: the text fits."""


class _Unknown(Exception):
    """The pattern says something that is not read here."""


class Work:
    """The budget of all patterns that are judged together: once it is spent, none is judged."""

    def __init__(self, most: int = MOST_WORK) -> None:
        self.left = most

    def spend(self, steps: int = 1) -> None:
        """Raises _Unknown where so much is not left."""
        self.left -= steps
        if self.left < 0:
            raise _Unknown


def fits(pattern: str, text: str, work: Work) -> bool | None:
    """Whether the pattern is found in the text; None where that is not judged."""
    if len(pattern) > _LONGEST_PATTERN:
        return None
    try:
        return _found(_compiled(pattern, work), text, work)
    except (_Unknown, ValueError, RecursionError):
        return None


# ── following all ways at once ────────────────────────────────────────────────────────────────


_Places: TypeAlias = frozenset[int]


def _found(program: list[_Step], text: str, work: Work) -> bool:
    """Texts mostly repeat themselves: where the same places met the same character before, the way
    from there is known, and costs one step."""
    ways: dict[tuple[_Places, str, str], _Places] = {}
    alike: dict[_Places, _Places] = {}
    here: _Places = frozenset()
    before = ""
    for char in chain(text, ("",)):
        work.spend()
        met = (here, before, char)
        if met not in ways:
            then = _next_places(program, here, before, char, work)
            ways[met] = alike.setdefault(then, then)  # one of each, so that looking up is cheap
        here = ways[met]
        if len(program) in here:
            return True
        before = _side(char)
    return False


def _next_places(
    program: list[_Step], here: _Places, before: str, char: str, work: Work
) -> _Places:
    """Where one is behind this character; behind the program where the text fits."""
    reached = _reached(program, {*here, 0}, before, char, work)
    end = len(program) - 1
    if end in reached:
        return frozenset((end + 1,))
    return frozenset(place + 1 for place in reached if char and _takes(program[place], char, work))


def _takes(step: _Step, char: str, work: Work) -> bool:
    if isinstance(step, _Class):
        work.spend(len(step.parts))
    return callable(step) and step(char)


def _reached(
    program: list[_Step], places: set[int], before: str, char: str, work: Work
) -> set[int]:
    """All places one comes to without taking a character."""
    seen: set[int] = set()
    open_ = list(places)
    while open_:
        work.spend()
        place = open_.pop()
        if place in seen:
            continue
        seen.add(place)
        step = program[place]
        if isinstance(step, _Split):
            open_.extend(step)
        elif isinstance(step, str) and _holds(step, before, char):
            open_.append(place + 1)
    return seen


def _holds(assertion: _Assertion, before: str, behind: str) -> bool:
    if assertion == "^":
        return not before
    if assertion == "$":
        return not behind
    is_edge = (before in _WORD) != (behind in _WORD)
    return is_edge == (assertion == "b")


def _side(char: str) -> str:
    """All that an assertion asks of the character before it."""
    return "w" if char in _WORD else " "


# ── reading a pattern ─────────────────────────────────────────────────────────────────────────


def _compiled(pattern: str, work: Work) -> list[_Step]:
    work.spend(len(pattern))
    program: list[_Step] = []
    _emit(_Reader(pattern).whole(), program, work)
    program.append(None)
    return program


def _emit(node: _Node, program: list[_Step], work: Work) -> None:
    work.spend()  # also for what adds no step: it may be repeated
    if len(program) > _MOST_STEPS:
        raise _Unknown
    match node:
        case _Sequence():
            for each in node:
                _emit(each, program, work)
        case _Choice():
            _emit_choice(node, program, work)
        case _Repeat():
            _emit_repeat(node, program, work)
        case _:
            program.append(node)


def _emit_choice(choice: _Choice, program: list[_Step], work: Work) -> None:
    split = len(program)
    program.append(None)
    starts: list[int] = []
    ends: list[int] = []
    for each in choice:
        starts.append(len(program))
        _emit(each, program, work)
        ends.append(len(program))
        program.append(None)
    program[split] = _Split(starts)
    for end in ends:
        program[end] = _Split((len(program),))


def _emit_repeat(repeat: _Repeat, program: list[_Step], work: Work) -> None:
    for _ in range(repeat.least):
        _emit(repeat.node, program, work)
    if repeat.most is None:
        start = len(program)
        program.append(None)
        _emit(repeat.node, program, work)
        program.append(_Split((start,)))
        program[start] = _Split((start + 1, len(program)))
        return
    skips: list[int] = []
    for _ in range(repeat.most - repeat.least):
        skips.append(len(program))
        program.append(None)
        _emit(repeat.node, program, work)
    for skip in skips:
        program[skip] = _Split((skip + 1, len(program)))


_DIGITS = frozenset(string.digits)
_WORD = frozenset(string.ascii_letters + string.digits + "_")
_CLASSES: dict[str, _Fits] = {
    "d": _DIGITS.__contains__,
    "w": _WORD.__contains__,
    "s": lambda char: char.isspace() or char == "\ufeff",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


class _Reader:
    """Reads a pattern once, from the left; raises _Unknown or ValueError for what it does not
    know."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def whole(self) -> _Node:
        node = self._choice()
        if self._at < len(self._pattern):
            raise _Unknown
        return node

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise _Unknown
        self._at += 1
        return char

    def _skip(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _choice(self) -> _Node:
        ways = [self._sequence()]
        while self._skip("|"):
            ways.append(self._sequence())
        return ways[0] if len(ways) == 1 else _Choice(ways)

    def _sequence(self) -> _Node:
        nodes = _Sequence()
        while self._peek() not in ("", "|", ")"):
            nodes.append(self._repeated(self._atom()))
        return nodes

    def _atom(self) -> _Node:
        match char := self._next():
            case "(":
                return self._group()
            case "[":
                return self._class()
            case ".":
                return lambda one: one not in "\n\r\u2028\u2029"
            case "^" | "$":
                return char
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise _Unknown
            case _:
                return char.__eq__

    def _group(self) -> _Node:
        if self._skip("?"):
            self._group_name()
        node = self._choice()
        if not self._skip(")"):
            raise _Unknown
        return node

    def _group_name(self) -> None:
        if self._skip(":"):
            return
        if not self._skip("<") or self._peek() in ("=", "!"):
            raise _Unknown
        while self._next() != ">":
            pass

    def _repeated(self, node: _Node) -> _Node:
        bounds = self._bounds()
        if bounds is None:
            return node
        if isinstance(node, str):
            raise _Unknown  # an assertion
        self._skip("?")  # how many are taken first makes no difference
        return _Repeat(node, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skip(sign):
                return bounds
        if not self._skip("{"):
            return None
        end = self._pattern.index("}", self._at)
        least, comma, most = self._pattern[self._at : end].partition(",")
        self._at = end + 1
        low = int(least)
        high = (int(most) if most else None) if comma else low
        if low > _MOST_STEPS or (high is not None and not low <= high <= _MOST_STEPS):
            raise _Unknown
        return low, high

    def _escape(self) -> _Node:
        if self._peek() in ("b", "B"):
            return "b" if self._next() == "b" else "B"
        found = self._escaped()
        return found.__eq__ if isinstance(found, str) else found

    def _escaped(self) -> str | _Fits:
        char = self._next()
        if (kind := _CLASSES.get(char.lower())) is not None:
            return kind if char.islower() else lambda one: not kind(one)
        if char in _CONTROLS and not (char == "0" and self._peek().isdigit()):
            return _CONTROLS[char]
        if char == "x":
            return chr(int(self._next() + self._next(), 16))
        if char == "u":
            return self._code_point()
        if char.isalnum():
            raise _Unknown
        return char

    def _code_point(self) -> str:
        if self._skip("{"):
            end = self._pattern.index("}", self._at)
            digits, self._at = self._pattern[self._at : end], end + 1
        else:
            digits = "".join(self._next() for _ in range(4))
        return chr(int(digits, 16))

    def _class(self) -> _Fits:
        is_negated = self._skip("^")
        parts: list[_Fits] = []
        while not self._skip("]"):
            parts.append(self._class_part())
        return _Class(parts, is_negated)

    def _class_part(self) -> _Fits:
        first = self._class_atom()
        if not isinstance(first, str):
            return first
        if self._pattern[self._at + 1 : self._at + 2] in ("]", "") or not self._skip("-"):
            return first.__eq__
        last = self._class_atom()
        if not isinstance(last, str) or last < first:
            raise _Unknown
        return lambda one: first <= one <= last

    def _class_atom(self) -> str | _Fits:
        char = self._next()
        if char != "\\":
            return char
        if self._skip("b"):
            return "\b"
        return "-" if self._skip("-") else self._escaped()
