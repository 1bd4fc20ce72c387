"""Words in the lines of a terminal: broken where they must be, in work that their length bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from dragoman.cli.render import wrap
from dragoman.cli.render.style import Style
from dragoman.cli.render.wrap import Wrap
from dragoman.safe_text import columns

WIDTH = 10


def laid_out(*pieces: str) -> str:
    made = Wrap(Style(colour=False), lambda: WIDTH)
    return made.begin("", "", 0) + "".join(map(made.put, pieces)) + made.rest()


@examples(400)
@given(st.lists(st.text("aé漢\u0301", min_size=1), min_size=1))
def test_a_word_of_any_length_fits_its_lines_and_loses_nothing(pieces: list[str]) -> None:
    lines = laid_out(*pieces).split("\n")
    assert "".join(lines) == "".join(pieces)
    assert all(columns(line) < WIDTH for line in lines)


@pytest.mark.parametrize("letters", ["é", "e\u0301", "\u0301", "漢", "漢a"])
def test_a_long_word_is_looked_at_a_few_times(
    letters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = widths = 0

    def counted(text: str) -> int:
        nonlocal looks
        looks += len(text)
        return columns(text)

    def width() -> int:
        nonlocal widths
        widths += 1
        return 80

    monkeypatch.setattr(wrap, "columns", counted)
    word = letters * 20_000
    made = Wrap(Style(colour=False), width)
    made.begin("", "", 0)
    made.put(word)
    assert looks <= 6 * len(word)
    assert widths == 1
