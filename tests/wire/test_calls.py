from __future__ import annotations

import pytest

from dragoman.wire.in_flight import Calls


def test_ids_count_from_zero() -> None:
    calls: Calls[str] = Calls()
    assert [calls.open("a"), calls.open("b"), calls.open("c")] == [b"0", b"1", b"2"]


def test_an_id_is_never_given_out_again() -> None:
    calls: Calls[str] = Calls()
    calls.settle(calls.open("first"))
    assert calls.open("second") == b"1"


def test_an_answer_finds_its_waiter_in_any_order() -> None:
    calls: Calls[str] = Calls()
    first, second = calls.open("first"), calls.open("second")
    assert calls.settle(second) == "second"
    assert calls.settle(first) == "first"


def test_a_waiter_is_given_back_once() -> None:
    calls: Calls[str] = Calls()
    key = calls.open("once")
    assert calls.settle(key) == "once"
    assert calls.settle(key) is None


@pytest.mark.parametrize("echo", [b"7", b"7.0", b"7e0", b"70e-1", b"0.7E+1"])
def test_the_same_number_written_otherwise_is_the_same_id(echo: bytes) -> None:
    assert eight_calls().settle(echo) == "waiter 7"


@pytest.mark.parametrize(
    "echo",
    [b'"7"', b"7.5", b"-7", b"8", b"true", b"false", b"null", b"{}", b"[7]", b"1e999", b"x", b""],
)
def test_what_is_not_the_number_is_not_the_id(echo: bytes) -> None:
    calls = eight_calls()
    assert calls.settle(echo) is None
    assert len(calls) == 8


@pytest.mark.parametrize("echo", [b"9" * 5000, b"%d" % 2**70, b"1e300"])
def test_huge_numbers_are_merely_unknown(echo: bytes) -> None:
    assert eight_calls().settle(echo) is None


def test_closing_gives_back_every_waiter_left_once() -> None:
    calls: Calls[str] = Calls()
    calls.settle(calls.open("answered"))
    key = calls.open("left")
    assert calls.close() == ["left"]
    assert (len(calls), calls.close(), calls.settle(key)) == (0, [], None)


def eight_calls() -> Calls[str]:
    calls: Calls[str] = Calls()
    for number in range(8):
        calls.open(f"waiter {number}")
    return calls
