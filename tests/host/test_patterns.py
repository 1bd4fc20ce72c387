"""Patterns that agents write: judged as ECMA 262 says, in bounded work, or not at all."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from dragoman.host.forms import bounded_pattern
from dragoman.host.forms.bounded_pattern import MOST_WORK, Work


def fits(pattern: str, text: str) -> bool | None:
    return bounded_pattern.fits(pattern, text, Work())


KNOWN = [
    *(
        "",
        "^$",
        "^[a-z-]+$",
        "^[a-z]+(-[a-z]+)*$",
        r"^\d{3}-\d{4}$",
        "^(a|b|cd)?x{2,3}$",
        "b+",
        "a.c",
    ),
    *(
        r"\bfoo\b",
        r"\Boo",
        "[^a-c]",
        "[a-]+$",
        r"^[\w.-]+@[\w-]+\.\w{2,}$",
        r"^\s*\S+\s*$",
        r"[\d\-x]$",
    ),
    *("^(?:a|b)*?c", "^x{2,}$", r"^[^\W_]+$", r"\x41\u0042", "a|", "^(|a)+b$", "x{0}y"),
]
TEXTS = [
    *("", "a", "b", "bb", "cdxx", "xxx", "a-b-c", "a--b", "bad name!", "good-name", "123-4567"),
    *("a foo b", "afoob", "a.b@c.de", " x ", "AB", "ab", "aab", "y", "a\nc", "ééé", "_", "9"),
]


@pytest.mark.parametrize("pattern", KNOWN)
def test_a_pattern_means_what_it_means_elsewhere(pattern: str) -> None:
    for text in TEXTS:
        assert fits(pattern, text) == bool(re.search(pattern, text, re.ASCII)), text


@examples(400)
@given(st.from_regex(r"([ab.]|\(a\|b\)|\[^a\])([*+?]|\{1,2\})?", fullmatch=True), st.text("abc\n"))
def test_small_patterns_agree_with_another_engine(pattern: str, text: str) -> None:
    assert fits(f"^{pattern}$", text) == bool(re.search(rf"\A{pattern}\Z", text))


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=x)",
        "(?!x)",
        "(?<=x)y",
        r"(a)\1",
        r"\p{L}",
        "*a",
        "a**",
        "(",
        ")",
        "[a",
        "a{2",
        "{",
        "\\",
    ],
)
def test_what_is_not_known_is_not_judged(pattern: str) -> None:
    assert fits(pattern, "x") is None


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a*)*(a*)*$", "(a|a)*b", "(a{0,20}){0,40}b$"])
def test_a_pattern_cannot_be_made_to_run_for_long(pattern: str) -> None:
    assert fits(pattern, "a" * 100 + "!") is False
    assert fits(pattern, "a" * 1_000_000) is None


PROSE = "The quick, brown fox (all of 7 years) jumps over 10 lazy dogs; why? Nobody knows.\n"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^[^<>]*$", PROSE * 120, True),
        (r"^[^<>]*$", PROSE * 120 + "<", False),
        (r"^[\s\S]*\S[\s\S]*$", PROSE * 120, True),
        (r"^(\s*\S+\s*)+$", PROSE * 120, True),
        (r"^[A-Za-z0-9+/]*={0,2}$", "aGVsbG8h" * 1_200 + "==", True),
        (r"^[a-z0-9]+(-[a-z0-9]+)*$", "a-long-name-" * 800, False),
        (r"\bdogs\b.*\bcats?\b", PROSE * 120 + "dogs and a cat", True),
    ],
)
def test_common_patterns_judge_texts_of_ten_thousand_characters(
    pattern: str, text: str, expected: bool
) -> None:
    assert fits(pattern, text) is expected


LETTERS = "".join(chr(0x4E00 + at) for at in range(450))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a" * 501, "a"),
        ("((a{2000}){2000}){2000}", "a"),
        ("((((){2000}){2000}){2000}){2000}", "a"),
        ("((((a{0}){0,2000}){0,2000}){0,2000}){2000}", "a"),
        ("(((^|$){2000}){2000}){2000}", "a"),
        (f"(?:[{LETTERS}]?){{660}}Z$", "x" * 99),
        (f"(?:[^{LETTERS}]?){{660}}Z$", "x" * 99),
        ("^a", "b" * 1_000_000),
    ],
)
def test_what_would_cost_too_much_is_not_judged(
    pattern: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = _counted_steps(monkeypatch)
    work = Work()
    assert bounded_pattern.fits(pattern, text, work) is None
    assert len(steps) <= MOST_WORK + 1


def _counted_steps(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each thing that is done, told by those who do it and not by the budget."""
    steps: list[None] = []

    def counting(name: str) -> None:
        real = getattr(bounded_pattern, name)

        def counted(*args: object) -> object:
            steps.append(None)
            return real(*args)

        monkeypatch.setattr(bounded_pattern, name, counted)

    for name in ("_emit", "_holds"):
        counting(name)
    takes = bounded_pattern._Class.__call__  # pyright: ignore[reportPrivateUsage]

    def call(self: Any, char: str) -> bool:
        steps.extend([None] * len(self.parts))
        return takes(self, char)

    monkeypatch.setattr(bounded_pattern._Class, "__call__", call)  # pyright: ignore[reportPrivateUsage]
    return steps
