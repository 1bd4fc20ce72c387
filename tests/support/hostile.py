"""Frames no honest agent sends, by name. None of them may end a connection."""

from __future__ import annotations

from support.json_values import nested


def _request(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":"h","method":"hostile","params":%b}' % params


def _note(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"hostile","params":%b}' % params


def _reply(key: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":null}' % key


def _cancel(key: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % key


LONG = b"x" * 2048
_TWO_MILLION_VALUES = b"[" + b"[]," * 1_000_000 + b"0]"

ANSWERED: dict[str, bytes] = {
    "request with invalid UTF-8": _request(b'["\xff\xc3"]'),
    "request with a lone surrogate": _request(rb'["\ud83d"]'),
    "request with an encoded surrogate": _request(b'["\xed\xa0\xbd"]'),
    "request with NaN": _request(b"[NaN,-Infinity]"),
    "request with an integer beyond 64 bits": _request(b"[%d]" % 2**70),
    "request with an integer beyond reason": _request(b"9" * 5000),
    "request with a float beyond reason": _request(b"1e999"),
    "request with line separators": _request('["\u2028\u2029\x85"]'.encode()),
    "request nested 129 levels": _request(nested(129)),
    "request nested 100000 levels": _request(nested(100_000)),
    "request made of two million values": _request(_TWO_MILLION_VALUES),
    "request with a raw control character": _request(b'"\x01"'),
    "request cut off": _request(b'{"a":[')[:-1],
    "request followed by another value": _request(b"1") + b"{}",
    "request with duplicate keys": b'{"id":1,"id":"h","method":1,"method":"x","jsonrpc":"2.0"}',
    "request with a method that is no string": b'{"jsonrpc":"2.0","id":"h","method":[]}',
    "request with escapes in its keys": rb'{"\u0069d":"h","m\u0065thod":"x"}',
    "request after a byte order mark": b"\xef\xbb\xbf" + _request(b"1"),
    "request with an id that is null": b'{"jsonrpc":"2.0","id":null,"method":"x"}',
    "request with an id that is true": b'{"jsonrpc":"2.0","id":true,"method":"x"}',
    "request with an id that is an object": b'{"jsonrpc":"2.0","id":{"a":[]},"method":"x"}',
    "request with an id of two kibibytes": b'{"jsonrpc":"2.0","id":"%b","method":"x"}' % LONG,
    "request with a result": b'{"jsonrpc":"2.0","id":"h","method":"x","result":1}',
    "request that ends in CRLF": _request(b"1") + b"\r",
}
"""Each is answered, once."""

IGNORED: dict[str, bytes] = {
    "empty array": b"[]",
    "number": b"42",
    "null": b"null",
    "string": b'"x"',
    "empty object": b"{}",
    "batch": b"[%b,%b]" % (_request(b"1"), _request(b"2")),
    "nothing": b"",
    "spaces": b" \t\r",
    "NUL": b"\x00",
    "invalid UTF-8": b"\xff\xfe\x80",
    "byte order marks": b"\xef\xbb\xbf" * 5000,
    "banner": b"Welcome to the agent!",
    "bracketed log line": b"[INFO] ready",
    "JSON log line with an id": b'{"level":"info","id":0,"msg":"started"}',
    "a megabyte of noise": b"x" * (1 << 20),
    "a megabyte of brackets": b"[" * (1 << 20),
    "a megabyte of quotes": b'{"' + rb"\"" * (1 << 19),
    "notification with a lone surrogate": _note(rb'["\ud83d"]'),
    "notification with invalid UTF-8": _note(b'["\xff"]'),
    "notification with NaN": _note(b"NaN"),
    "notification nested 100000 levels": _note(nested(100_000)),
    "notification made of two million values": _note(_TWO_MILLION_VALUES),
    "notification whose method is null": b'{"jsonrpc":"2.0","method":null}',
    "request with an id that is no JSON": b'{"jsonrpc":"2.0","id":tru,"method":"x"}',
    "request with an id cut off": b'{"jsonrpc":"2.0","method":"x","id":12',
    "reply with an unknown id": _reply(b"99"),
    "reply with an id that is a string": _reply(b'"0"'),
    "reply with an id that is true": _reply(b"true"),
    "reply with an id that is null": _reply(b"null"),
    "reply with an id beyond reason": _reply(b"9" * 5000),
    "reply with an id of two kibibytes": _reply(b'"%b"' % LONG),
    "error with an id that is null": b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}',
    "error that is text, for an unknown id": b'{"jsonrpc":"2.0","id":99,"error":"text"}',
    "cancellation of an unknown request": _cancel(b"99"),
    "cancellation of an id beyond reason": _cancel(b"1e999"),
    "cancellation without an id": b'{"jsonrpc":"2.0","method":"$/cancel_request"}',
}
"""Each is passed over."""

SETTLING: dict[str, bytes] = {
    "result with a lone surrogate": b'"result":"\\ud83d"',
    "result with NaN": b'"result":NaN',
    "result with invalid UTF-8": b'"result":"\xff"',
    "result with an integer beyond reason": b'"result":' + b"9" * 5000,
    "result nested 129 levels": b'"result":' + nested(129),
    "result nested 100000 levels": b'"result":' + nested(100_000),
    "result made of two million values": b'"result":' + _TWO_MILLION_VALUES,
    "result with a method that is null": b'"method":null,"params":null,"result":1,"error":null',
    "error with a method that is null": b'"method":null,"result":null,"error":{"code":1}',
    "result cut off": b'"result":{"a":[',
    "result that is no JSON": b'"result":tru',
    "result and error": b'"result":1,"error":{"code":1,"message":"m"}',
    "neither result nor error": b'"other":1',
    "error that is text": b'"error":"text"',
    "error that is null": b'"error":null',
    "error that is a list": b'"error":[1]',
    "error without a code": b'"error":{"message":"m"}',
    "error with a code that is text": b'"error":{"code":"E","message":"m"}',
    "error with a code beyond reason": b'"error":{"code":%b,"message":"m"}' % (b"9" * 5000),
    "error with a message that is null": b'"error":{"code":1,"message":null}',
}
"""Members of replies; each reply settles its call, whatever it holds."""
