"""Markdown as it streams: the same bytes however it is cut, and nothing held for ever."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost import cpu_seconds
from support.examples import examples

from dragoman.cli.render.markdown.markdown_stream import MarkdownStream
from dragoman.cli.render.style import Style
from dragoman.safe_text import columns

PAINT = re.compile(r"\x1b\[[0-9;]*m")
ALPHABET = " \n*_`[]()#>|~\\-+.1ab中é"
PIECES = [
    *("**bold**", "`code`", "[a](http://b)", "* item\n", "1. one\n", "```\n", "# h\n", "> q\n"),
    *("word " * 30, "x" * 310, "|a|b|\n", "---\n", "\n\n", "*", "_", "中文" * 20),
]
RICH = [
    *("| a | b |\n|---|:-:|\n", "| x | long words here to be wrapped |\n", "|---|\n", "| a\\|b |"),
    *("- [ ] ", "- [x] ", "- [", "~~gone~~", "~~", "&amp;", "&", "&lt", "&zwnj;", "\n", "\n", " "),
    *("```py\n", 'x = """a\n', "b # c\n", '"""', "```\n", "```diff\n", "+a\n", "word " * 9),
]
"""What is more than words, marks and lines."""
TEXTS = st.text(ALPHABET, max_size=120) | st.lists(st.sampled_from(PIECES), max_size=12).map(
    "".join
)


def painted(*pieces: str, colour: bool = True, width: int = 30) -> str:
    stream = MarkdownStream(Style(colour=colour), lambda: width)
    return "".join(map(stream.feed, pieces)) + stream.flush()


def shown(text: str, width: int = 30) -> str:
    return PAINT.sub("", painted(text, width=width))


@examples(400)
@given(TEXTS, st.data(), st.booleans())
def test_the_same_bytes_however_it_is_cut(text: str, data: st.DataObject, colour: bool) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    pieces = [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]
    whole = painted(text, colour=colour)
    assert painted(*pieces, colour=colour) == whole
    assert painted(*text, colour=colour) == whole


@examples(400)
@given(st.lists(st.sampled_from(RICH), max_size=14).map("".join), st.data(), st.integers(9, 50))
def test_tables_and_code_are_the_same_however_they_are_cut(
    text: str, data: st.DataObject, width: int
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    pieces = [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]
    whole = painted(text, width=width)
    assert painted(*pieces, width=width) == whole
    assert painted(*text, width=width) == whole


@examples(200)
@given(st.text("ab *_`[]()中é \n", max_size=200), st.integers(10, 60))
def test_no_line_of_text_is_wider_than_the_terminal(text: str, width: int) -> None:
    for line in shown(text, width).split("\n"):
        assert columns(line) < width


@examples(200)
@given(TEXTS)
def test_no_word_is_lost_and_every_colour_ends(text: str) -> None:
    out = painted(text)
    letters = re.compile(r"[ab中é1x]")
    assert letters.findall(PAINT.sub("", out)) == letters.findall(text)
    for line in out.split("\n"):
        codes = PAINT.findall(line)
        assert len([code for code in codes if code == "\x1b[0m"]) * 2 == len(codes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold** and *slanted*", "\x1b[1mbold\x1b[0m and \x1b[3mslanted\x1b[0m"),
        ("a `b*c` d", "a \x1b[36mb*c\x1b[0m d"),
        ("**a `b` c**", "\x1b[1ma\x1b[0m \x1b[1;36mb\x1b[0m \x1b[1mc\x1b[0m"),
        ("***x***", "\x1b[1;3mx\x1b[0m"),
        ("2 * 3 * 4 and 2**3**4", "2 * 3 * 4 and 2**3**4"),
        ("snake_case_name _x_", "snake_case_name \x1b[3mx\x1b[0m"),
        ("never **closed", "never **closed"),
        ("open `for ever", "open `for ever"),
        (r"\*not\* so", "*not* so"),
        ("# Title", "\x1b[1;4mTitle\x1b[0m"),
        ("### Part", "\x1b[1mPart\x1b[0m"),
        ("#hash", "#hash"),
        ("- a\n  * b\n1. c", "• a\n  • b\n1. c"),
        ("> said", "\x1b[2m│ \x1b[0msaid"),
        ("```py\n**x**\n```\ny", "\x1b[2mpy\x1b[0m\n\x1b[36m**x**\x1b[0m\ny"),
        ("a\n~~~ \nx\n\n  ~~~~\ny", "a\n\x1b[36mx\x1b[0m\n\ny"),
        ("[docs](http://x)", "\x1b[4mdocs\x1b[0m \x1b[2m(http://x)\x1b[0m"),
        ("[ ] open [x] done", "[ ] open [x] done"),
        ("| **a** | b |", "| **a** | b |"),
        ("~~gone~~ ~kept~", "\x1b[9mgone\x1b[0m ~kept~"),
        ("- [ ] a\n- [x] b\n- [y] c", "☐ a\n☑ b\n• [y] c"),
        ("&lt;b&gt; &amp;amp; `&lt;` &#27; & a", "<b> &amp; \x1b[36m&lt;\x1b[0m &#27; & a"),
        ("```diff\n+a\n b\n```", "\x1b[2mdiff\x1b[0m\n\x1b[32m+a\x1b[0m\n\x1b[36m b\x1b[0m\n"),
        (
            "```py\nif x:  # y\n```",
            "\x1b[2mpy\x1b[0m\n\x1b[35mif\x1b[0m\x1b[36m x:  \x1b[0m\x1b[2m# y\x1b[0m\n",
        ),
        (
            "```js\n/* a\nb */ c\n```",
            "\x1b[2mjs\x1b[0m\n\x1b[2m/* a\x1b[0m\n\x1b[2mb */\x1b[0m\x1b[36m c\x1b[0m\n",
        ),
    ],
)
def test_what_is_painted_how(text: str, expected: str) -> None:
    assert painted(text, width=60) == expected


TABLE = (
    "| Name | What it does | Cost |\n|--|:-:|--:|\n| `a` | **one** two three | 1.5 |\n| b\\|c |\n"
)


def test_a_table_stands_in_columns() -> None:
    assert painted(TABLE, width=60) == (
        "\x1b[1mName\x1b[0m\x1b[2m │ \x1b[0m\x1b[1mWhat\x1b[0m \x1b[1mit\x1b[0m "
        "\x1b[1mdoes\x1b[0m \x1b[2m │ \x1b[0m\x1b[1mCost\x1b[0m\n"
        "\x1b[2m─────┼───────────────┼─────\x1b[0m\n"
        "\x1b[36ma\x1b[0m   \x1b[2m │ \x1b[0m\x1b[1mone\x1b[0m two three\x1b[2m │ \x1b[0m 1.5\n"
        "b|c \x1b[2m │ \x1b[0m             \x1b[2m │ \x1b[0m\n"
    )


def test_a_table_wider_than_the_terminal_has_its_cells_wrapped() -> None:
    assert shown(TABLE, 24) == (
        "Name │  What it  │ Cost\n"
        "     │   does    │ \n"
        "─────┼───────────┼─────\n"
        "a    │  one two  │  1.5\n"
        "     │   three   │ \n"
        "b|c  │           │ \n"
    )


def test_where_there_is_no_room_for_columns_each_cell_is_below_its_heading() -> None:
    assert shown(TABLE, 20) == (
        "Name\n  a\nWhat it does\n  one two three\nCost\n  1.5\n"
        "\nName\n  b|c\nWhat it does\n\nCost\n\n"
    )


@examples(200)
@given(
    st.integers(1, 4).flatmap(
        lambda count: st.lists(
            st.lists(st.text("ab 中é`*", max_size=30), min_size=count, max_size=count),
            min_size=1,
            max_size=5,
        )
    ),
    st.integers(12, 70),
)
def test_no_cell_of_a_table_is_lost_and_no_line_is_too_wide(
    rows: list[list[str]], width: int
) -> None:
    head, *others = rows
    lines = [head, ["---"] * len(head), *others]
    text = "".join(f"|{'|'.join(line)}|\n" for line in lines)
    out = shown(text, width)
    assert all(columns(line) < width for line in out.split("\n"))
    assert not set("ab中é").intersection(text) - set(out)
    for char in "ab中é":
        assert out.count(char) >= text.count(char)


def test_a_row_is_held_until_it_is_known_whether_it_is_of_a_table() -> None:
    stream = MarkdownStream(Style(colour=True), lambda: 80)
    assert stream.feed("| a | b |\n") == ""
    assert stream.feed("no row ") == "| a | b |\nno row"
    stream.flush()
    assert stream.feed("| a | b |\n| - | - |\n| 1 | 2 |\n") == ""
    assert PAINT.sub("", stream.feed("after ")) == "a │ b\n──┼──\n1 │ 2\nafter"


def test_long_lines_go_on_below_their_beginning() -> None:
    text = "- one two three four five six seven\n> one two three four five six seven"
    assert shown(text, 20) == (
        "• one two three\n  four five six\n  seven\n│ one two three\n│ four five six\n│ seven"
    )


def test_a_word_wider_than_the_terminal_is_broken() -> None:
    assert shown("ab " + "x" * 25, 11) == "ab\nxxxxxxxxxx\nxxxxxxxxxx\nxxxxx"


def test_without_colour_the_marks_stay() -> None:
    text = "# T\n**b** `c`\n- x\n---\n```py\nx\n```\n"
    assert painted(text, colour=False) == text


def test_text_comes_out_as_it_comes_in() -> None:
    stream = MarkdownStream(Style(colour=True), lambda: 80)
    assert stream.feed("Hello wor") == "Hello"
    assert stream.feed("ld and") == " world"
    assert stream.pause() == " and"
    assert stream.feed(" **bo") == ""
    assert stream.feed("ld** x ") == " \x1b[1mbold\x1b[0m x"


@pytest.mark.parametrize("start", ["**", "`", "[", "- - ", "|", "```\n", "~~", "&", "- ["])
def test_what_never_ends_is_not_held_for_ever(start: str) -> None:
    stream = MarkdownStream(Style(colour=True), lambda: 80)
    out = "".join(stream.feed(piece) for piece in [start, *["word "] * 2000])
    assert out.count("word") > 1000


@pytest.mark.parametrize("piece", ["-", "*", "`", "x", "[", "| ", "中", "~", "&"])
def test_a_flood_of_small_pieces_takes_time_in_proportion(piece: str) -> None:
    def work(count: int) -> None:
        stream = MarkdownStream(Style(colour=True), lambda: 80)
        for _ in range(count):
            stream.feed(piece)
        stream.flush()

    few, many = cpu_seconds(lambda: work(500)), cpu_seconds(lambda: work(4_000))
    assert many < 8 * 4 * few
