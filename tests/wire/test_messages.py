from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import EXAMPLES
from support.frames import corpus, mutated
from support.json_values import Json, json_values, nested

from dragoman.wire.messages import (
    MAX_DEPTH,
    Failure,
    Malformed,
    Message,
    Notification,
    Reply,
    Request,
    decode,
    encode_failure,
    encode_notification,
    encode_reply,
    encode_request,
    is_whole,
)


def request(frame: bytes) -> Request:
    message = decode(frame)
    assert isinstance(message, Request), message
    return message


def reply(frame: bytes) -> Reply:
    message = decode(frame)
    assert isinstance(message, Reply), message
    return message


def failure(frame: bytes) -> Failure:
    message = decode(frame)
    assert isinstance(message, Failure), message
    return message


def malformed(frame: bytes) -> Malformed:
    message = decode(frame)
    assert isinstance(message, Malformed), message
    return message


def notified(params: bytes) -> Any:
    """What a notification's params are for whoever decodes them."""
    message = decode(b'{"jsonrpc":"2.0","method":"note","params":%b}' % params)
    assert isinstance(message, Notification), message
    return msgspec.json.decode(message.params)


# ── the four kinds ────────────────────────────────────────────────────────────────────────────


def test_a_method_with_an_id_is_a_request() -> None:
    message = request(b'{"jsonrpc":"2.0","id":1,"method":"fs/read","params":{"path":"a"}}')
    assert (message.id, message.method, bytes(message.params)) == (
        b"1",
        "fs/read",
        b'{"path":"a"}',
    )


def test_a_method_without_an_id_is_a_notification() -> None:
    message = decode(b'{"jsonrpc":"2.0","method":"session/update","params":[1]}')
    assert isinstance(message, Notification)
    assert (message.method, bytes(message.params)) == ("session/update", b"[1]")


def test_missing_params_are_null() -> None:
    assert bytes(request(b'{"jsonrpc":"2.0","id":1,"method":"ping"}').params) == b"null"


def test_an_id_with_a_result_is_a_reply() -> None:
    message = reply(b'{"jsonrpc":"2.0","id":1,"result":{"ok":true}}')
    assert (message.id, bytes(message.result)) == (b"1", b'{"ok":true}')


@pytest.mark.parametrize("result", [b"null", b"false", b"0", b'""'])
def test_a_result_may_be_nothing_much(result: bytes) -> None:
    assert bytes(reply(b'{"jsonrpc":"2.0","id":1,"result":%b}' % result).result) == result


def test_an_id_with_an_error_is_a_failure() -> None:
    frame = b'{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no","data":[1]}}'
    assert failure(frame) == Failure(b'"x"', -32601, "no", [1])


def test_a_result_beside_an_error_that_is_null_counts() -> None:
    assert bytes(reply(b'{"jsonrpc":"2.0","id":1,"error": null ,"result":3}').result) == b"3"


def test_an_error_beats_a_result() -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"result":3,"error":{"code":-1,"message":"no"}}'
    assert failure(frame).message == "no"


def test_the_version_and_unknown_members_do_not_matter() -> None:
    assert request(b'{"id":1,"method":"x","extra":{"a":[]}}').method == "x"


@pytest.mark.parametrize("members", [b"", b',"error":null'])
def test_a_reply_without_result_and_error_still_settles_its_call(members: bytes) -> None:
    message = failure(b'{"jsonrpc":"2.0","id":4%b}' % members)
    assert (message.id, message.code) == (b"4", -32603)
    assert message.message == "the reply holds neither a result nor an error"


# ── ids ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "key",
    [
        b"0",
        b"-1",
        b"1.0",
        b"1e3",
        b'"1"',
        rb'"\u0061"',
        b"null",
        b"true",
        b"%d" % 2**70,
        b"9" * 5000,
        b"1e999",
        b"{}",
        b'{"a": [1]}',
        '"ö\u2028"'.encode(),
    ],
)
def test_an_id_is_kept_as_the_exact_bytes_it_came_in(key: bytes) -> None:
    assert request(b'{"jsonrpc":"2.0","id": %b ,"method":"x"}' % key).id == key
    assert reply(b'{"jsonrpc":"2.0","id": %b ,"result":1}' % key).id == key
    answer = encode_reply(key, b"1")
    assert answer == b'{"jsonrpc":"2.0","id":%b,"result":1}' % key
    assert encode_failure(key, -1, "no").startswith(b'{"jsonrpc":"2.0","id":%b,"error":' % key)


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"y","method":"x"}',
        rb'{"jsonrpc":"2.0","\u0069d":2,"meth\u006fd":"x"}',
    ],
)
def test_the_last_of_duplicate_keys_counts_and_escapes_in_keys_do_not(frame: bytes) -> None:
    message = request(frame)
    assert (message.id, message.method) == (b"2", "x")


# ── errors of odd shapes ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (b'"no such model"', (-32603, "no such model", None)),
        (b'"a \\"quoted\\" word"', (-32603, 'a "quoted" word', None)),
        (b"42", (-32603, "42", None)),
        (b"false", (-32603, "false", None)),
        (b"[1,2]", (-32603, "[1,2]", None)),
        (b"{}", (-32603, "", None)),
        (b'{"code":-32000}', (-32000, "", None)),
        (b'{"message":"m"}', (-32603, "m", None)),
        (b'{"code":"E_FAIL","message":"m"}', (-32603, '{"code":"E_FAIL","message":"m"}', None)),
        (b'{"code":1,"message":null}', (-32603, '{"code":1,"message":null}', None)),
        (b'{"code":1,"message":"m","data":{"a":[null]}}', (1, "m", {"a": [None]})),
        (b'{"code":%d,"message":"m"}' % 2**70, (2**70, "m", None)),
    ],
)
def test_an_error_of_any_shape_settles_its_call(
    error: bytes, expected: tuple[int, str, object]
) -> None:
    message = failure(b'{"jsonrpc":"2.0","id":1,"error":%b}' % error)
    assert (message.code, message.message, message.data) == expected


@pytest.mark.parametrize("number", [b"1" * 5000, b"1e999"])
def test_an_error_with_numbers_beyond_reason_settles_its_call(number: bytes) -> None:
    error = b'{"code":1,"message":"m","data":%b}' % number
    assert failure(b'{"jsonrpc":"2.0","id":1,"error":%b}' % error).message == error.decode()


# ── lines that are no messages ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "frame",
    [b"[]", b"42", b"null", b'"x"', b"true", b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', b" [1] "],
)
def test_json_that_is_no_object_is_malformed_and_asks_for_no_answer(frame: bytes) -> None:
    assert malformed(frame) == Malformed("not an object", is_json=True)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b" ",
        b"\x00",
        b"Starting agent...",
        b"[INFO] ready",
        b"42% done",
        b'"quoted" text',
        b"{",
        b"}",
        b"{'id': 1, 'method': 'x'}",
        b'{"method":1, oops',
        b'{"id":1,"method":"x"} trailing',
        b"\xff\xfe\xfd",
        b"[" * 100_000,
    ],
)
def test_a_line_that_was_never_meant_for_us_is_not_json(frame: bytes) -> None:
    message = malformed(frame)
    assert (message.is_json, message.id) == (False, None)


@pytest.mark.parametrize(
    "frame",
    [b'{"level":"info","id":7}', b'{"id":7,"msg":"started"}', b'{"id":null}', b"{}", b'{"a":1}'],
)
def test_a_log_line_that_holds_an_id_settles_no_call(frame: bytes) -> None:
    message = malformed(frame)
    assert (message.is_json, message.id) == (True, None)


@pytest.mark.parametrize("method", [b"1", b"null", b'["x"]', b"{}"])
def test_a_request_whose_method_is_no_string_is_to_be_answered(method: bytes) -> None:
    message = malformed(b'{"jsonrpc":"2.0","id":"a","method":%b}' % method)
    assert message == Malformed("the method is not a string", is_json=True, id=b'"a"')


def test_a_notification_whose_method_is_no_string_is_not_to_be_answered() -> None:
    assert malformed(b'{"jsonrpc":"2.0","method":1}').id is None


# ── text that is nearly JSON ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (rb'["\ud83d","\ude00"]', ["\ufffd", "\ufffd"]),
        (rb'["\ud83d\ude00"]', ["\U0001f600"]),
        (b"[NaN,Infinity,-Infinity]", [None, None, None]),
        (b'["caf\xe9"]', ["caf\ufffd"]),
        (b'["\xed\xa0\x80"]', ["\ufffd\ufffd\ufffd"]),
        (b"[%d]" % 2**70, [2**70]),
        ('["\u2028\u2029\x85"]'.encode(), ["\u2028\u2029\x85"]),
        (b'["\\u0000"]', ["\x00"]),
    ],
)
def test_a_message_survives_what_agents_get_wrong(params: bytes, expected: object) -> None:
    assert notified(params) == expected


@pytest.mark.parametrize("bom", [b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 3000])
def test_byte_order_marks_are_skipped(bom: bytes) -> None:
    assert request(bom + b'{"jsonrpc":"2.0","id":1,"method":"x"}').method == "x"


def test_a_line_may_end_in_crlf_and_hold_spaces() -> None:
    assert request(b' \t{"jsonrpc":"2.0", "id":1, "method":"x"} \r').id == b"1"


# ── frames refused ────────────────────────────────────────────────────────────────────────────


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


# ── encoding ──────────────────────────────────────────────────────────────────────────────────


@EXAMPLES
@given(st.text(), json_values())
def test_what_is_encoded_is_decoded_the_same(method: str, value: Json) -> None:
    text = json.dumps(value).encode()
    sent = request(encode_request(b"1", method, text))
    assert (sent.id, sent.method, json.loads(bytes(sent.params))) == (b"1", method, value)
    told = decode(encode_notification(method, text))
    assert isinstance(told, Notification)
    assert (told.method, json.loads(bytes(told.params))) == (method, value)
    assert json.loads(bytes(reply(encode_reply(b'"k"', text)).result)) == value


@EXAMPLES
@given(st.integers(-(2**63), 2**63 - 1), st.text(), json_values())
def test_an_error_is_decoded_as_it_was_encoded(code: int, message: str, data: object) -> None:
    assert failure(encode_failure(b"1", code, message, data)) == Failure(b"1", code, message, data)


def test_json_laid_out_over_lines_becomes_one_line() -> None:
    laid_out = b'{\n  "a": [\r\n 1,\n 2]\n}'
    for frame in (
        encode_request(b"1", "x", laid_out),
        encode_notification("x", laid_out),
        encode_reply(b"1", laid_out),
    ):
        assert b"\n" not in frame
        assert b'{"a":[1,2]}' in frame


def test_an_error_without_data_has_no_data_member() -> None:
    answer = encode_failure(b"1", -32601, "no")
    assert answer == b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'


@pytest.mark.parametrize("data", [object(), "\udcff", {"a": object()}, {object(): 1}])
def test_an_error_that_cannot_be_encoded_is_sent_without_its_data(data: object) -> None:
    assert failure(encode_failure(b"1", -5, "no", data)) == Failure(b"1", -5, "no")


def test_an_error_that_names_an_undecodable_file_is_still_sent() -> None:
    sent = failure(encode_failure(b"1", -32002, "no such file: \udcff.txt"))
    assert (sent.code, sent.message) == (-32002, "no such file: ?.txt")
