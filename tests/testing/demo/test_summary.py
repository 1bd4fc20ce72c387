"""An extract of a text is short, and made of the text."""

from __future__ import annotations

import pytest

from dragoman.testing.demo.script import summarise


def test_a_document_is_its_title_its_opening_and_its_headings() -> None:
    text = (
        "# Dragons #\n\n![x](y)\n\nThey breathe fire and fly. They sleep! And more.\n\n"
        "```sh\n# no heading\n```\n\n## Eggs\n\n### Gold\n"
    )
    assert summarise("a.md", text) == (
        "**Dragons** (`a.md`): 13 lines, 22 words.\n\n"
        "They breathe fire and fly. They sleep!\n\n"
        "It has:\n- Eggs\n- Gold\n"
    )


def test_a_program_is_its_definitions() -> None:
    text = '"""Hatches eggs of every kind."""\n\nclass Nest:\n    def f(x): ...\n\ndef hatch(): 1\n'
    extract = summarise("a.py", text)
    assert extract.endswith("Hatches eggs of every kind.\n\nIt has:\n- `Nest`\n- `hatch`\n")


@pytest.mark.parametrize(
    ("text", "size"),
    [("", "empty"), ("\n\n", "empty"), ("word", "1 line, 1 word"), ("a b\n", "1 line, 2 words")],
)
def test_a_small_text_has_a_size_alone(text: str, size: str) -> None:
    assert summarise("a.txt", text) == f"`a.txt`: {size}.\n"


def test_an_extract_stays_short() -> None:
    text = "# T\n\n" + "word " * 10_000 + "\n\n" + "".join(f"## {n}\n" for n in range(1000))
    assert len(summarise("a.md", text)) < 1000
