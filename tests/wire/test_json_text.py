from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost import cpu_seconds, peak_bytes
from support.examples import EXAMPLES
from support.json_values import Json, json_values, nested

from dragoman.wire.json_text import depth, has_more_values, is_utf8, outline, repair

SLICE = 1 << 16


@pytest.mark.parametrize(
    "text",
    [
        b"",
        "ö\u2028\U0001f600".encode(),
        b"x" * (SLICE - 1) + "\U0001f600".encode() * 2,
        b"x" * (SLICE - 3) + "\U0001f600".encode() * 2,
    ],
)
def test_utf8_is_recognised_across_slices(text: bytes) -> None:
    assert is_utf8(text)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff",
        b"\xe2\x80",
        b"\xed\xa0\x80",
        b"x" * SLICE + b"\xff",
        b"x" * (SLICE - 1) + b"\xe2x",
        b"x" * SLICE + b"\xe2\x80",
    ],
)
def test_what_is_not_utf8_is_recognised_across_slices(text: bytes) -> None:
    assert not is_utf8(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", 0),
        (b"1", 0),
        (b"[]", 1),
        (b'{"a":[{}],"b":[]}', 3),
        (b'["[[[[", {"{": "]"}]', 2),
        (rb'["\"[[", "\\", ["\\\"["]]', 2),
        (nested(500), 500),
        (b'["' + b"x" * SLICE + b'", [[]]]', 3),
        (b'["' + rb"\"[" * SLICE + b'", [[]]]', 3),
    ],
)
def test_depth_counts_brackets_outside_strings(text: bytes, expected: int) -> None:
    assert depth(text) == expected


def measured(value: Json) -> int:
    match value:
        case list():
            return 1 + max(map(measured, value), default=0)
        case dict():
            return 1 + max(map(measured, value.values()), default=0)
        case _:
            return 0


@EXAMPLES
@given(json_values(), st.booleans())
def test_depth_is_that_of_the_value(value: Json, ascii_only: bool) -> None:
    assert depth(json.dumps(value, ensure_ascii=ascii_only).encode()) == measured(value)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"1", 0),
        (b"[]", 1),
        (b"[1,2,3]", 3),
        (b'{"a":[{}],"b":[]}', 5),
        (rb'["[,{", "\",", ","]', 3),
        (b'["' + b"," * SLICE + b'"' + b",[]" * SLICE + b"]", 2 * SLICE + 1),
    ],
)
def test_values_are_counted_outside_strings(text: bytes, count: int) -> None:
    assert not has_more_values(text, count)
    assert count == 0 or has_more_values(text, count - 1)


@pytest.mark.parametrize(
    ("frame", "key"),
    [
        (b'{"id": 7 , "method":', b"7"),
        (b'{"method":"x","id":"a\\"b"} trailing', b'"a\\"b"'),
        (b'{"params":{"id":1},"id":null}', b"null"),
        (b'{"params":{"id":1}', None),
        (b'{"id":{"id":1},', None),
        (b'{"id":"never closed', None),
        (b'{"id":12', None),
        (b'{"id":1,"id":2,', b"2"),
        (b'["id",1]', None),
        (b'"id":1,', None),
    ],
)
def test_outline_finds_the_outermost_id_if_it_is_whole_and_scalar(
    frame: bytes, key: bytes | None
) -> None:
    assert outline(frame)[0] == key


def test_outline_gives_the_strings_of_the_outermost_level_only() -> None:
    _, strings = outline(b'{"jsonrpc":"2.0","params":{"inner":1},"method":"x"')
    assert strings == {b'"jsonrpc"', b'"2.0"', b'"params"', b'"method"', b'"x"'}


@pytest.mark.parametrize(
    ("broken", "repaired"),
    [
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\ude00"', rb'"\ufffd"'),
        (rb'"\uD83D x"', rb'"\ufffd x"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ud83d\ude00\ude00"', rb'"\ud83d\ude00\ufffd"'),
        (b"[NaN,Infinity,-Infinity]", b"[null,null,null]"),
        (rb'{"NaN":NaN,"a\"b":"-Infinity"}', rb'{"NaN":null,"a\"b":"-Infinity"}'),
    ],
)
def test_repair_makes_json_of_half_pairs_and_odd_numbers(broken: bytes, repaired: bytes) -> None:
    assert repair(broken) == repaired
    assert repair(repaired) == repaired
    json.loads(repaired, parse_constant=pytest.fail)


@pytest.mark.parametrize("text", [rb'"\\ud83d"', rb'"\ud83d\ude00"', rb'"\u00e9"', b"[NaNa, xNaN]"])
def test_repair_leaves_the_rest_alone(text: bytes) -> None:
    assert repair(text) == text


@EXAMPLES
@given(json_values())
def test_repair_leaves_json_alone(value: Json) -> None:
    text = json.dumps(value, allow_nan=False).encode()
    assert repair(text) == text


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "brackets": lambda size: b"{" + b"[" * size,
    "pairs": lambda size: b'{"a":[' + b"[]," * (size // 3),
    "strings": lambda size: b'{"a":[' + b'"",' * (size // 3),
    "escaped quotes": lambda size: b'{"' + rb"\"" * (size // 2),
    "backslashes": lambda size: b'{"' + b"\\" * size,
    "half pairs": lambda size: b'{"' + rb"\ud800" * (size // 6),
    "colons": lambda size: b'{"id":' + b" " * size,
    "minus signs": lambda size: b"{" + b"-" * size,
}


@pytest.mark.parametrize("look", [outline, repair], ids=["outline", "repair"])
@pytest.mark.parametrize("name", HOSTILE)
def test_looking_at_a_refused_frame_is_linear(look: Callable[[bytes], object], name: str) -> None:
    # Quadratic work would be 64 times as much for 8 times the frame.
    small, large = (HOSTILE[name](size) for size in (1 << 12, 1 << 15))
    assert cpu_seconds(lambda: look(large)) < 24 * cpu_seconds(lambda: look(small)) + 0.01


@pytest.mark.parametrize("look", [outline, repair], ids=["outline", "repair"])
@pytest.mark.parametrize("name", HOSTILE)
def test_looking_at_a_huge_refused_frame_takes_little_memory(
    look: Callable[[bytes], object], name: str
) -> None:
    frame = HOSTILE[name](4 << 20)
    assert peak_bytes(lambda: look(frame)) < 1 << 20


def test_measuring_depth_takes_less_memory_than_the_frame() -> None:
    frame = b"[" + b'"", ' * (3 << 18) + b"1]"
    assert peak_bytes(lambda: depth(frame)) < len(frame)
