from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost import cpu_seconds, peak_bytes
from support.examples import EXAMPLES

from dragoman.errors import FrameTooLarge
from dragoman.wire.framing import MAX_FRAME_BYTES, Framer

LINES = [b'{"a":1}', b"", b'{"text":"\xe2\x80\xa8 \xc2\x85"}\r', b"\x0b\x0c\x1c \xff", b"[]"]
STREAM = b"".join(line + b"\n" for line in LINES) + b"half"


def frames(framer: Framer, *pieces: bytes) -> list[bytes]:
    return [frame for piece in pieces for frame in framer.feed(piece)]


def test_a_frame_is_a_line_without_its_newline() -> None:
    assert frames(Framer(), b'{"a":1}\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']


def test_only_a_newline_ends_a_frame() -> None:
    assert frames(Framer(), STREAM) == LINES


def test_frames_do_not_depend_on_where_the_stream_is_split() -> None:
    for cut in range(len(STREAM) + 1):
        for end in range(cut, len(STREAM) + 1):
            framer = Framer()
            got = frames(framer, STREAM[:cut], STREAM[cut:end], STREAM[end:])
            assert (got, framer.rest()) == (LINES, b"half")


def test_frames_do_not_depend_on_bytes_that_trickle_in_one_by_one() -> None:
    framer = Framer()
    assert frames(framer, *(bytes([byte]) for byte in STREAM)) == LINES
    assert framer.rest() == b"half"


@EXAMPLES
@given(st.lists(st.binary() | st.sampled_from([b"\n", b"\n\n", b"a\nb"])))
def test_no_byte_is_lost_or_added(pieces: list[bytes]) -> None:
    framer = Framer()
    lines = [*frames(framer, *pieces), framer.rest()]
    assert b"\n".join(lines) == b"".join(pieces)


def test_the_rest_is_taken_once() -> None:
    framer = Framer()
    assert frames(framer, b"half") == []
    assert framer.rest() == b"half"
    assert framer.rest() == b""


@pytest.mark.parametrize(
    "pieces", [[b"12345678\n"], [b"1234", b"5678", b"\n"], [b"12345678", b"\n"]]
)
def test_a_frame_of_exactly_the_limit_passes(pieces: list[bytes]) -> None:
    assert frames(Framer(8), *pieces) == [b"12345678"]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"123456789"],
        [b"123456789\n"],
        [b"1234", b"56789"],
        [b"1234", b"56789\n"],
        [b"12345678", b"9"],
        [b"ok\n123456789\n"],
        [b"ok\n1234", b"56789\nok\n"],
    ],
)
def test_a_frame_one_byte_over_the_limit_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(FrameTooLarge) as caught:
        frames(Framer(8), *pieces)
    assert caught.value.limit == 8


def test_frames_before_an_oversized_one_are_still_delivered() -> None:
    feeding = Framer(8).feed(b"one\ntwo\n123456789\nlost\n")
    assert [next(feeding), next(feeding)] == [b"one", b"two"]
    with pytest.raises(FrameTooLarge):
        next(feeding)


def test_nothing_of_an_oversized_frame_is_held() -> None:
    framer = Framer(8)
    assert frames(framer, b"12345678") == []
    with pytest.raises(FrameTooLarge):
        frames(framer, b"9")
    assert framer.rest() == b""


def test_the_limit_is_64_mib_unless_told() -> None:
    assert Framer().limit == MAX_FRAME_BYTES == 64 * 1024 * 1024


def feed_in_pieces(size: int) -> int:
    framer, piece = Framer(), b"x" * 4096
    for _ in range(size // len(piece)):
        assert frames(framer, piece) == []
    return len(frames(framer, b"\n")[0])


def test_a_frame_of_64_mib_arrives_in_small_pieces() -> None:
    assert feed_in_pieces(MAX_FRAME_BYTES) == MAX_FRAME_BYTES


def test_the_work_grows_no_faster_than_the_frame() -> None:
    # Copying what is held at every piece would be 64 times the work for 8 times the frame.
    small = cpu_seconds(lambda: feed_in_pieces(2 << 20))
    large = cpu_seconds(lambda: feed_in_pieces(16 << 20))
    assert large < 32 * small


def test_bytes_that_trickle_in_take_no_more_memory_than_they_are() -> None:
    framer, size = Framer(), 1 << 15

    def trickle() -> None:
        for number in range(size // 2):
            frames(framer, b"%02d" % (number % 100))

    assert peak_bytes(trickle) < 2 * size
