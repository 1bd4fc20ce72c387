"""Which frames are the usual notification, and what a run of them is handed over as."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.wire.fast_path import Usual
from dragoman.wire.messages import MAX_DEPTH, MAX_VALUES, SMALL, is_modest


class Notes:
    def __init__(self) -> None:
        self.runs: list[list[str]] = []
        self.sizes: list[list[int]] = []
        self.usual = Usual("note", str, self.told, decoder=msgspec.json.Decoder)

    def told(self, run: list[str], sizes: list[int]) -> None:
        self.runs.append(run)
        self.sizes.append(sizes)


def note(text: str) -> bytes:
    return b'{"jsonrpc":"2.0","method":"note","params":%b}' % msgspec.json.encode(text)


def test_frames_are_handed_over_together_in_order_each_with_its_size() -> None:
    notes = Notes()
    notes.usual.expect()
    frames = [note("a"), note("bc" * SMALL), note("ä")]
    assert notes.usual.take(iter(frames[:2])) is None
    assert notes.usual.take(iter(frames[2:])) is None
    assert notes.usual.frames == frames
    assert notes.runs == []
    notes.usual.hand_over()
    assert notes.usual.frames == []
    notes.usual.hand_over()
    assert notes.runs == [["a", "bc" * SMALL, "ä"]]
    assert notes.sizes == [[len(frame) for frame in frames]]


def test_none_is_taken_before_one_is_expected() -> None:
    notes = Notes()
    frames = iter([note("a"), note("b")])
    assert notes.usual.take(frames) == note("a")
    assert notes.usual.take(frames) == note("b")
    assert notes.usual.take(frames) is None
    notes.usual.hand_over()
    assert notes.runs == []


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","method":"note","params":"a","id":1}',
        b'{"jsonrpc":"2.0","method":"note","params":"a","id":null}',
        b'{"jsonrpc":"2.0","method":"other","params":"a"}',
        b'{"jsonrpc":"2.0","method":"note","params":1}',
        b'{"jsonrpc":"2.0","method":"note"}',
        b'{"jsonrpc":"2.0","method":"note","params":"\xff"}',
        b'{"jsonrpc":"2.0","method":"note","params":"a"}}',
        b'{"jsonrpc":"2.0","method":"note","params":"a","x":%b}' % (b"[" * 200 + b"]" * 200),
        b"",
    ],
)
def test_one_that_is_none_ends_what_was_expected_and_leaves_the_run(frame: bytes) -> None:
    notes = Notes()
    notes.usual.expect()
    frames = iter([note("a"), frame, note("b"), note("c")])
    assert notes.usual.take(frames) == frame
    assert notes.usual.take(frames) == note("b")
    notes.usual.expect()
    assert notes.usual.take(frames) is None
    assert notes.usual.frames == [note("a"), note("c")]
    notes.usual.hand_over()
    assert notes.runs == [["a", "c"]]


@pytest.mark.parametrize(
    ("frame", "modest"),
    [
        (b"[" * MAX_DEPTH, True),
        (b"[" * (MAX_DEPTH + 1), False),
        (b"[" + b"{" * MAX_DEPTH, False),
        (b"x" * MAX_VALUES, True),
        (b"x" * (MAX_VALUES + 1), True),
        (b"[" + b"," * MAX_VALUES, False),
    ],
)
def test_a_modest_frame_can_hold_too_much_of_nothing(frame: bytes, modest: bool) -> None:
    assert is_modest(frame) is modest
