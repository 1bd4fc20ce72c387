"""Frames that are no JSON, or nest too deep: whose are they, and what becomes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.decoded import failure, malformed, notified, reply, request
from support.examples import EXAMPLES
from support.frames import corpus, mutated
from support.json_values import nested

from dragoman.wire.messages import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_ID_BYTES,
    MAX_VALUES,
    Malformed,
    Message,
    Notification,
    Request,
    decode,
    is_modest,
    is_whole,
)


def request_nested(levels: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":5,"method":"x","params":%b}' % nested(levels - 1)


def reply_nested(levels: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":5,"result":%b}' % nested(levels - 1)


def test_a_message_may_nest_128_levels() -> None:
    assert request(request_nested(MAX_DEPTH)).id == b"5"
    assert reply(reply_nested(MAX_DEPTH)).id == b"5"
    wide = b'{"jsonrpc":"2.0","id":5,"result":[%b]}' % b",".join([nested(MAX_DEPTH - 2)] * 9)
    assert reply(wide).id == b"5"


def test_many_brackets_in_a_string_are_not_depth() -> None:
    assert len(notified(b'["%b"]' % (b"[" * 1000))[0]) == 1000


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 1000, 100_000])
def test_a_request_nested_deeper_is_to_be_refused(levels: int) -> None:
    message = malformed(request_nested(levels))
    assert (message.id, message.reason) == (b"5", "nested deeper than 128 levels")


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 1000, 100_000])
def test_a_reply_nested_deeper_fails_its_call(levels: int) -> None:
    message = failure(reply_nested(levels))
    assert (message.id, message.message) == (b"5", "the reply is nested deeper than 128 levels")


def test_a_notification_nested_deeper_is_noise() -> None:
    frame = b'{"jsonrpc":"2.0","method":"x","params":%b}' % nested(1000)
    assert malformed(frame) == Malformed("nested deeper than 128 levels", is_json=False)


def test_more_levels_are_allowed_where_that_is_asked_for() -> None:
    frame = request_nested(MAX_DEPTH + 1)
    assert isinstance(decode(frame, MAX_DEPTH + 1), Request)
    odd = b"\xef\xbb\xbf" + frame.replace(b"[]", b"[NaN]")
    assert isinstance(decode(odd, MAX_DEPTH + 1), Request)
    for levels in (MAX_DEPTH + 2, 100_000):
        refused = decode(request_nested(levels), MAX_DEPTH + 1)
        assert refused == Malformed("nested deeper than 129 levels", is_json=False, id=b"5")


# ── long ids ──────────────────────────────────────────────────────────────────────────────────

LONGEST = b'"%b"' % (b"x" * (MAX_ID_BYTES - 2))
TOO_LONG = b'"%b"' % (b"x" * (MAX_ID_BYTES - 1))


def test_an_id_may_have_a_kibibyte() -> None:
    assert request(b'{"id":%b,"method":"x"}' % LONGEST).id == LONGEST
    assert reply(b'{"id":%b,"result":1}' % LONGEST).id == LONGEST


def test_a_request_with_a_longer_id_is_to_be_refused_with_that_id() -> None:
    message = malformed(b'{"id":%b,"method":"x"}' % TOO_LONG)
    assert (message.id, message.reason) == (TOO_LONG, "marked with an id of more than 1024 bytes")


def test_a_reply_with_a_longer_id_is_one_that_nobody_waits_for() -> None:
    message = failure(b'{"id":%b,"result":1}' % TOO_LONG)
    assert (message.id, message.code) == (TOO_LONG, -32603)
    assert malformed(b'{"id":%b,"msg":"a line of a log"}' % TOO_LONG).id is None


# ── long numbers ──────────────────────────────────────────────────────────────────────────────

_FILLED = b'{"jsonrpc":"2.0","id":5,"method":"x","params":["%b",%%b]}' % (b"x" * 4096)


def test_a_message_may_hold_every_number_that_a_double_can_hold_and_strings_of_digits() -> None:
    assert request(_FILLED % (b"-" + b"9" * MAX_DIGITS)).id == b"5"
    assert request(_FILLED % (rb'"a\"%b"' % (b"9" * 100_000))).id == b"5"


@pytest.mark.parametrize("before", [b"", b'"\\\\",', b'"\\"","%b",' % (b"1" * 1000)])
def test_a_request_with_a_longer_number_is_to_be_refused(before: bytes) -> None:
    frame = _FILLED % (before + b"9" * (MAX_DIGITS + 1))
    message = malformed(frame)
    assert not is_modest(frame)
    assert (message.id, message.reason) == (b"5", "made of numbers with more than 309 digits")


# ── many values ───────────────────────────────────────────────────────────────────────────────


def full_of(values: int) -> bytes:
    """An array that holds so many, itself counted."""
    return b"[" + b",".join([b"0"] * values) + b"]"


TOO_MANY = full_of(MAX_VALUES + 1)


def test_a_message_may_hold_so_many_values_and_many_more_commas_in_its_strings() -> None:
    envelope = b'{"jsonrpc":"2.0","id":5,"method":"x","params":%b}'
    commas_of_its_own = 3
    fits = full_of(MAX_VALUES - commas_of_its_own - 1)
    assert request(envelope % fits).id == b"5"
    assert request(envelope % (b'"%b"' % (b",[{" * MAX_VALUES))).id == b"5"
    assert malformed(envelope % full_of(MAX_VALUES - commas_of_its_own)).id == b"5"


def test_an_update_of_hundreds_of_thousands_of_small_parts_is_refused() -> None:
    """Each costs microseconds on its way to the store, and other sessions wait meanwhile."""
    item = b'{"type":"content","content":{"type":"text","text":"x"}}'
    update = b'{"jsonrpc":"2.0","method":"session/update","params":[%b]}'
    assert "values" in malformed(update % b",".join([item] * 100_000)).reason
    message = decode(update % b",".join([item] * 20_000))
    assert not isinstance(message, Malformed)


def test_a_request_with_more_values_is_to_be_refused_wherever_its_id_stands() -> None:
    message = malformed(b'{"jsonrpc":"2.0","method":"x","params":%b,"id":5}' % TOO_MANY)
    assert (message.id, message.reason) == (b"5", f"made of more than {MAX_VALUES} values")


@pytest.mark.parametrize(
    "members",
    [
        b'"jsonrpc":"2.0","result":%b',
        b'"jsonrpc":"2.0","x":%b',
        b'"error":%b',
        b'"method":null,"result":%b',
    ],
)
def test_a_reply_with_more_values_fails_its_call(members: bytes) -> None:
    message = failure(b'{"id":5,%b}' % (members % TOO_MANY))
    assert (message.id, message.message) == (
        b"5",
        f"the reply is made of more than {MAX_VALUES} values",
    )


@pytest.mark.parametrize("members", [b'"method":"x","params":%b', b'"id":5,"x":%b', b'"result":%b'])
def test_anything_else_with_more_values_is_noise(members: bytes) -> None:
    message = malformed(b"{%b}" % (members % TOO_MANY))
    assert (message.id, message.is_json) == (None, False)


def test_an_odd_method_before_bottomless_nesting_is_refused() -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":1,"params":' + b"[" * 100_000
    assert malformed(frame).id == b"1"


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":3,"method":"x","params":{"a":tru}}',
        b'{"jsonrpc":"2.0","id":3,"method":"x","params":"cut of',
        b'{"jsonrpc":"2.0","id":3,"method":1,',
        b'{"jsonrpc":"2.0","id":3,"method":"x"}{"jsonrpc":"2.0","id":4,"method":"y"}',
        b'{"jsonrpc":"2.0","id":3,"method":"x","params":"\x01"}',
        rb'{"jsonrpc":"2.0","id":3,"method":"x","params":"\ud800\x"}',
    ],
)
def test_a_request_broken_behind_its_id_is_to_be_answered(frame: bytes) -> None:
    message = malformed(frame)
    assert message.reason.startswith("not JSON")
    assert message.id in (b"3", b"4")


def test_a_reply_broken_behind_its_id_fails_its_call() -> None:
    message = failure(b'{"jsonrpc":"2.0","id":3,"result":{"a":')
    assert (message.id, message.code) == (b"3", -32603)
    assert message.message.startswith("the reply is not JSON")


@pytest.mark.parametrize("key", [b"tru", b'"\x01"', rb'"\x"', b"01", b"1-", b"'a'", b"$"])
def test_an_id_that_is_no_json_is_never_sent_back(key: bytes) -> None:
    assert malformed(b'{"jsonrpc":"2.0","id":%b,"method":"x"}' % key).id is None


@pytest.mark.parametrize("cut", [b'"id":12', b'"id":"abc', b'"id":'])
def test_an_id_cut_off_is_no_id(cut: bytes) -> None:
    assert malformed(b'{"jsonrpc":"2.0","method":"x",' + cut).id is None
    assert malformed(b'{"jsonrpc":"2.0",' + cut).id is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (b'{"a":1}', True),
        (b'{"a":"\\ud800"}', True),
        (b"42", True),
        (b'{"a":1', False),
        (b'{"a":1}{', False),
        (b"bye", False),
        (b"", False),
        (b"[" * 100_000, False),
    ],
)
def test_a_line_is_whole_when_it_is_json_to_its_end(text: bytes, whole: bool) -> None:
    assert is_whole(text) is whole


# ── whatever comes ────────────────────────────────────────────────────────────────────────────


def is_sound(message: Message) -> bool:
    """An id that came out can be sent back inside a frame."""
    key = None if isinstance(message, Notification) else message.id
    return key is None or (b"\n" not in key and is_whole(key))


@EXAMPLES
@given(st.binary())
def test_decode_never_raises_for_any_bytes(frame: bytes) -> None:
    assert is_sound(decode(frame))


@EXAMPLES
@given(st.sampled_from(corpus()), st.integers(), st.integers(1, 4))
def test_decode_never_raises_for_mutated_messages(frame: bytes, seed: int, times: int) -> None:
    assert is_sound(decode(mutated(frame, seed, times)))


@EXAMPLES
@given(st.lists(st.sampled_from(b'"id":1,{}[]\\uD8 NaN method result error jsonrpc'.split(b" "))))
def test_decode_never_raises_for_shuffled_tokens(tokens: list[bytes]) -> None:
    assert is_sound(decode(b"{" + b"".join(tokens)))
