from __future__ import annotations

import tracemalloc

import pytest

from dragoman.errors import FrameTooLarge
from dragoman.transport.http import EventStream

LIMIT = 1000


def fed(*parts: bytes) -> list[bytes]:
    stream = EventStream(LIMIT)
    return [frame for part in parts for frame in stream.feed(part)]


def test_the_data_of_each_event_is_a_frame() -> None:
    text = b'retry: 5\n\n: still here\n\nid: 1\nevent: message\ndata: {"a":1}\n\ndata:{}\r\n\r\n'
    assert fed(text) == [b'{"a":1}', b"{}"]
    assert fed(*(text[i : i + 1] for i in range(len(text)))) == [b'{"a":1}', b"{}"]


def test_data_on_several_lines_is_one_frame() -> None:
    assert fed(b'data: {\ndata: "a":\ndata: 1}\n\n') == [b'{ "a": 1}']
    assert fed(b"data:\n\ndata\n\n") == [b""]


def test_an_event_that_was_not_finished_is_none() -> None:
    assert fed(b"data: {}\n") == []


def test_an_event_of_many_tiny_lines_takes_little_more_than_its_bytes() -> None:
    stream = EventStream()
    tracemalloc.start()
    try:
        for _ in range(100):
            assert list(stream.feed(b"data:xyz\n" * 1000)) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * 100_000 * len(b"xyz ")


def test_an_event_of_exactly_the_limit_passes() -> None:
    assert fed(b"data: " + b"x" * LIMIT + b"\r\n\r\n") == [b"x" * LIMIT]


@pytest.mark.parametrize(
    "text",
    [b"data: " + b"x" * (LIMIT + 1) + b"\n", b"x" * LIMIT * 2, b"data: xxxxxxxxx\n" * LIMIT],
    ids=["one line", "no line", "many lines"],
)
def test_what_is_over_the_limit_is_refused(text: bytes) -> None:
    with pytest.raises(FrameTooLarge) as caught:
        fed(text)
    assert caught.value.limit == LIMIT
