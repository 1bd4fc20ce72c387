"""The words of a text, as search compares them, and where they stand in it. Pure.

The same words as in the SQLite store: runs of letters and digits, without case and accents. They
are made here and not by PostgreSQL, whose parser knows addresses and files but not code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dragoman.safe_text import decomposed
from dragoman.store.sqlite.search import pieces

_MAX_POSITION = 16_383
"""The last place in a text that PostgreSQL tells from others."""
_MAX_BYTES = 600_000
"""Of different words in one text; PostgreSQL takes a megabyte with all it adds to them."""
_MAX_WORD = 200
# An accent may be a character of its own; of many in a row the rest is skipped.
_word = re.compile("(?:[^\\W_][\u0300-\u036f]{0,8})+")


def storable(value: Any) -> Any:
    """PostgreSQL has no text with a NUL in it."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def words(text: str) -> Iterator[tuple[str, int, int]]:
    """Each with the places where it begins and ends."""
    for found in _word.finditer(text):
        if word := _plain(found[0]):
            yield word, found.start(), found.end()


def _plain(word: str) -> str:
    if word.isascii():
        return word.lower()[:_MAX_WORD]
    parts = decomposed(word.casefold())
    return "".join(part for part in parts if part.isalnum())[:_MAX_WORD]


def vector(text: str) -> str:
    """What PostgreSQL takes as a tsvector."""
    places: dict[str, list[int]] = {}
    size = 0
    for place, (word, _, _) in enumerate(words(text), 1):
        known = places.get(word)
        if known is None:
            size += len(word.encode()) + 8
            if size > _MAX_BYTES:
                break
            known = places[word] = []
        if len(known) < 255:
            known.append(min(place, _MAX_POSITION))
    return " ".join(f"'{word}':{','.join(map(str, found))}" for word, found in places.items())


def query(text: str) -> str:
    """What PostgreSQL takes as a tsquery: all the words, those of one piece in that order, the last
    one as the beginning of a word; "" when there is nothing to look for."""
    phrases: list[str] = []
    found, is_open = pieces(text)
    for number, piece in enumerate(found, 1):
        parts = [f"'{word}'" for word, _, _ in words(piece)]
        if parts and is_open and number == len(found):
            parts[-1] += ":*"
        if parts:
            phrases.append(f"({' <-> '.join(parts)})")
    return " & ".join(phrases)
