"""The words that search compares, and the snippets it shows."""

from __future__ import annotations

import pytest
from support.normalising import Normalised

from dragoman.store.postgres.search import query, storable, vector
from dragoman.store.search_texts import snippet, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The quick, brown", ["the", "quick", "brown"]),
        ("snake_case.name()", ["snake", "case", "name"]),
        ("Café CAFE\u0301", ["cafe", "cafe"]),
        ("日本語 x²", ["日本語", "x2"]),
        ("-- !! ''", []),
    ],
)
def test_words_are_runs_of_letters_without_case_and_accents(text: str, found: list[str]) -> None:
    assert [word for word, _, _ in words(text)] == found


def test_a_vector_has_every_word_with_its_places() -> None:
    assert vector("a b a") == "'a':1,3 'b':2"
    assert vector("") == ""


def test_a_text_of_any_length_fits() -> None:
    many = vector(" ".join(f"word{number}" for number in range(200_000)))
    assert len(many) < 2_000_000
    assert len(vector("same " * 100_000)) < 10_000


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("quick fox", "('quick') & ('fox':*)"),
        ('"quick brown" fox', "('quick' <-> 'brown') & ('fox':*)"),
        ('"quick brown"', "('quick' <-> 'brown')"),
        ("a a", "('a') & ('a':*)"),
        ("a.b", "('a' <-> 'b':*)"),
        ("'; DROP --", "('drop')"),
        ("", ""),
    ],
)
def test_a_query_is_made_of_words_alone(typed: str, asked: str) -> None:
    assert query(typed) == asked


@pytest.mark.parametrize(
    ("text", "typed", "shown"),
    [
        ("The quick brown fox", "brown", "The quick \x01brown\x02 fox"),
        ("The quick brown fox", '"quick brown"', "The \x01quick brown\x02 fox"),
        ("a fox, a FOX!", "fo", "a \x01fox\x02, a \x01FOX\x02!"),
        ("Un café noir", "cafe", "Un \x01café\x02 noir"),
    ],
)
def test_a_snippet_marks_what_was_found(text: str, typed: str, shown: str) -> None:
    assert snippet(text, typed) == shown


def test_a_long_text_is_cut_around_what_was_found() -> None:
    text = " ".join(["before"] * 50 + ["fox"] + ["after"] * 50)
    shown = snippet(text, "fox")
    assert shown.startswith("…before")
    assert shown.endswith("after…")
    assert shown.count("before") == 5
    assert "\x01fox\x02" in shown
    assert snippet("x " * 3 + "fox", "fox").endswith("\x01fox\x02")


def test_what_postgresql_cannot_hold_is_replaced() -> None:
    assert storable("a\0b") == "a\ufffdb"
    assert storable(3) == 3


def test_a_word_of_many_marks_is_normalised_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    normalised = Normalised(monkeypatch)
    assert vector("e\u0301" + "\u0301\u0316" * 100_000 + "te") == "'e':1 'te':2"
    # A letter that is nothing but a mark joins the marks around it.
    assert vector("\uff9e\u0301" * 100_000 + "te") == "'te':1"
    assert normalised.longest_run <= 8
