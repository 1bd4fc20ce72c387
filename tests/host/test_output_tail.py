"""The end of an output: how much of it is kept, where it is cut, and how bytes become text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost import peak_bytes
from support.examples import examples

from dragoman.host.terminals.pty import Kept, OutputTail

MIB = 1024 * 1024


def kept(limit: int, *pieces: bytes, final: bool = True) -> Kept:
    tail = OutputTail(limit)
    for piece in pieces:
        tail.append(piece)
    return tail.read(final=final)


def test_what_fits_is_kept_whole() -> None:
    assert kept(5, b"hel", b"lo") == ("hello", False)
    assert kept(5) == ("", False)


def test_the_end_is_kept_not_the_beginning() -> None:
    assert kept(5, b"hello ", b"world") == ("world", True)


def test_nothing_is_kept_of_anything_when_the_limit_is_zero() -> None:
    assert kept(0, b"x") == ("", True)
    assert kept(0) == ("", False)


@pytest.mark.parametrize(
    ("limit", "text"),
    [(9, "€€€"), (8, "€€"), (7, "€€"), (6, "€€"), (3, "€"), (2, ""), (1, "")],
)
def test_the_cut_is_between_two_characters(limit: int, text: str) -> None:
    assert kept(limit, "€€€".encode()) == (text, limit < 9)


@pytest.mark.parametrize("limit", range(5, 9))
def test_a_character_of_four_bytes_is_dropped_whole(limit: int) -> None:
    assert kept(limit, "🦊🦊abc".encode()) == ("🦊abc" if limit >= 7 else "abc", True)


def test_a_character_that_arrives_in_two_pieces_is_one() -> None:
    assert kept(10, b"\xe2", b"\x82\xac") == ("€", False)


def test_half_a_character_is_left_out_until_the_rest_comes_or_the_end() -> None:
    tail = OutputTail(10)
    tail.append(b"a\xe2\x82")
    assert tail.read(final=False) == ("a", False)
    assert tail.read(final=True) == ("a�", False)
    tail.append(b"\xac")
    assert tail.read(final=False) == ("a€", False)


def test_bytes_that_are_no_text_become_replacement_characters_within_the_limit() -> None:
    assert kept(10, b"a\xffb") == ("a�b", False)
    assert kept(10, b"\xff" * 10) == ("���", True)
    assert kept(4, b"x\x80\x80\x80\x80") == ("�", True)


def test_reading_changes_nothing() -> None:
    tail = OutputTail(4)
    tail.append(b"abcdef")
    assert tail.read(final=False) == tail.read(final=True) == ("cdef", True)
    tail.append(b"g")
    assert tail.read(final=True) == ("defg", True)


@examples(400)
@given(st.lists(st.text(max_size=20)), st.integers(0, 200), st.integers(1, 7))
def test_it_is_the_longest_end_of_the_text_that_fits(
    texts: list[str], limit: int, size: int
) -> None:
    text = "".join(texts).encode("utf-8", "replace").decode()
    data = text.encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    output, truncated = kept(limit, *pieces)
    assert text.endswith(output)
    assert len(output.encode()) <= limit
    assert truncated == (output != text)
    if truncated:
        longer = text[len(text) - len(output) - 1 :]
        assert len(longer.encode()) > limit


@examples(400)
@given(st.lists(st.binary(max_size=40)), st.integers(0, 60), st.booleans())
def test_any_bytes_give_text_within_the_limit(pieces: list[bytes], limit: int, final: bool) -> None:
    output, truncated = kept(limit, *pieces, final=final)
    assert len(output.encode()) <= limit
    whole = b"".join(pieces)
    if not truncated and final:
        assert output == whole.decode(errors="replace")
    assert truncated or len(whole) <= limit


@pytest.mark.parametrize(
    ("limit", "size"), [(0, 1024), (MIB, 64 * 1024), (MIB, 100), (16 * MIB, MIB)]
)
def test_memory_is_bounded_however_much_is_printed(limit: int, size: int) -> None:
    def print_much() -> None:
        tail = OutputTail(limit)
        piece = b"x" * size
        for _ in range(4 * max(limit, MIB) // size):
            tail.append(piece)

    assert peak_bytes(print_much) < 1.25 * limit + 2 * MIB
