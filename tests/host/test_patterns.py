"""Patterns that agents write: judged as ECMA 262 says, in bounded work, or not at all."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host import patterns
from dragoman.host.patterns import fits

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
def test_a_pattern_cannot_be_made_to_run_for_long(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    takes = patterns._takes  # pyright: ignore[reportPrivateUsage]

    def counted(step: object, char: str) -> bool:
        nonlocal looks
        looks += 1
        return takes(step, char)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(patterns, "_takes", counted)
    assert fits(pattern, "a" * 100 + "!") is False
    assert looks <= 200_000
    assert fits(pattern, "a" * 1_000_000) is None
    assert fits("a" * 501, "a") is None
    assert fits("((a{2000}){2000}){2000}", "a") is None
