from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.decoded import failure, malformed, notified, reply, request
from support.examples import EXAMPLES
from support.json_values import IDS, Json, json_values

from dragoman.wire.messages import (
    Failure,
    Malformed,
    Notification,
    decode,
    encode_failure,
    encode_notification,
    encode_reply,
    encode_request,
)

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


@pytest.mark.parametrize("key", IDS)
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


def test_an_error_with_a_number_beyond_reason_settles_its_call() -> None:
    error = b'{"code":1,"message":"m","data":1e999}'
    assert failure(b'{"jsonrpc":"2.0","id":1,"error":%b}' % error).message == error.decode()


def test_a_long_error_with_a_number_beyond_reason_settles_its_call_with_what_is_wrong() -> None:
    error = b'{"code":1,"message":"m","data":%b}' % (b"1" * 5000)
    message = failure(b'{"jsonrpc":"2.0","id":1,"error":%b}' % error)
    assert message.message == "the reply is made of numbers with more than 309 digits"


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


@pytest.mark.parametrize("frame", [b'{"a":"\xff"}', b'{"a":NaN}', b'\xef\xbb\xbf{"a":1}'])
def test_a_line_that_had_to_be_mended_first_is_not_json(frame: bytes) -> None:
    message = malformed(frame)
    assert (message.is_json, message.id) == (False, None)


@pytest.mark.parametrize("method", [b"1", b"null", b'["x"]', b"{}"])
def test_a_request_whose_method_is_no_string_is_to_be_answered(method: bytes) -> None:
    message = malformed(b'{"jsonrpc":"2.0","id":"a","method":%b}' % method)
    assert message == Malformed("the method is not a string", is_json=True, id=b'"a"')


@pytest.mark.parametrize("method", [b"null", b"7"])
def test_a_reply_that_has_a_method_which_is_no_string_is_a_reply(method: bytes) -> None:
    members = (
        b'{"jsonrpc":"2.0","id":1,"method":%b,"params":null,"result":%%b,"error":%%b}' % method
    )
    assert bytes(reply(members % (b"3", b"null")).result) == b"3"
    assert failure(members % (b"null", b'{"code":-1,"message":"no"}')).message == "no"


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


def test_raw_json_is_encoded_as_it_is() -> None:
    raw = msgspec.Raw(b'{"a": 1.0}')
    assert encode_reply(b"1", raw) == b'{"jsonrpc":"2.0","id":1,"result":{"a": 1.0}}'


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
