"""JSON for tests: any value, and text nested to a given depth."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import strategies as st

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

IDS = [
    b"0",
    b"-1",
    b"1.0",
    b"1e3",
    b'"1"',
    rb'"\u0061"',
    b"null",
    b"true",
    b"%d" % 2**70,
    b"9" * 1000,
    b"1e999",
    b"{}",
    b'{"a": [1]}',
    '"ö\u2028"'.encode(),
]
"""Ids that agents may come up with, as they are on the wire."""


def json_values() -> st.SearchStrategy[Json]:
    """Any value that JSON can hold; its texts are sometimes full of what JSON is made of."""
    texts = st.text() | st.text(alphabet='\\"[]{}:,\u2028\n\t a')
    scalars: st.SearchStrategy[Json] = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts
    )
    return st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20
    )


def nested(levels: int) -> bytes:
    """Arrays in arrays, `levels` deep."""
    return b"[" * levels + b"]" * levels
