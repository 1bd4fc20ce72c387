"""Frames for tests: valid ones of every kind, and seeded mutations of them."""

from __future__ import annotations

import random
from collections.abc import Callable

from support.samples import schema_frames

_TOKENS = [
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"%d" % 2**70,
    b"9" * 5000,
    b'""',
    b'"\\ud800"',
    b'"\\u0000"',
    b'"id"',
    b'"method"',
    b'"result"',
    b'"error"',
    b'"error":"text"',
    b"{}",
    b"[]",
    b"[" * 200,
    b"}",
    b"\\",
    b'"',
    b",",
    b":",
    b"\x00",
    b"\xff",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"\r",
]


def corpus() -> list[bytes]:
    """Valid frames: every message of the schema, and envelopes and ids of every sort."""
    text = '"ö \\"q\\" \\\\ \u2028 \\ud83d\\ude00 [{"'.encode()
    keys = [b"0", b"-1", b"1.0", b'"1"', b"null", b"%d" % 2**70, b'{"a":1}', text]
    requests = [b'{"jsonrpc":"2.0","id":%b,"method":"echo","params":{"a":[1]}}' % k for k in keys]
    replies = [b'{"jsonrpc":"2.0","id":%d,"result":{"ok":true}}' % n for n in range(5)]
    return [
        *schema_frames(),
        *requests,
        *replies,
        b'{"id":3,"method":"echo"}',
        b'{"params":{"text":%b},"method":"echo","id":4,"jsonrpc":"2.0"}' % text,
        b'{"jsonrpc":"2.0","id":5,"method":"unknown","params":[]}',
        b'{"jsonrpc":"2.0","id":6,"method":"fails","params":null}',
        b'{"jsonrpc":"2.0","method":"session/update","params":{"text":%b}}' % text,
        b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":{"m":%b}}}' % text,
        b'{"jsonrpc":"2.0","id":2,"error":"text"}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}',
    ]


def mutated(frame: bytes, seed: int, times: int) -> bytes:
    """The frame after some mutations; always the same for the same seed. Never two lines."""
    chance = random.Random(seed)
    for _ in range(times):
        frame = chance.choice(_MUTATIONS)(frame, chance)
    return frame.replace(b"\n", b" ")


def _flip_bit(frame: bytes, chance: random.Random) -> bytes:
    if not frame:
        return b"\x80"
    at = chance.randrange(len(frame))
    return frame[:at] + bytes([frame[at] ^ 1 << chance.randrange(8)]) + frame[at + 1 :]


def _truncate(frame: bytes, chance: random.Random) -> bytes:
    start, end = _span(frame, chance)
    return frame[:end] if chance.random() < 0.8 else frame[start:]


def _duplicate(frame: bytes, chance: random.Random) -> bytes:
    start, end = _span(frame, chance)
    return frame[:end] + frame[start:]


def _cut_out(frame: bytes, chance: random.Random) -> bytes:
    start, end = _span(frame, chance)
    return frame[:start] + frame[end:]


def _splice(frame: bytes, chance: random.Random) -> bytes:
    other = chance.choice(_CORPUS)
    return frame[: _span(frame, chance)[0]] + other[_span(other, chance)[0] :]


def _replace_token(frame: bytes, chance: random.Random) -> bytes:
    start = chance.randint(0, len(frame))
    end = min(len(frame), start + chance.randint(0, 4))
    return frame[:start] + chance.choice(_TOKENS) + frame[end:]


def _replace_value(frame: bytes, chance: random.Random) -> bytes:
    """Put a token where a value stands, so that the frame often stays JSON."""
    start = frame.find(b":", chance.randint(0, len(frame))) + 1
    end = frame.find(b",", start)
    return frame if end < 0 else frame[:start] + chance.choice(_TOKENS) + frame[end:]


def _span(frame: bytes, chance: random.Random) -> tuple[int, int]:
    start, end = sorted(chance.randint(0, len(frame)) for _ in range(2))
    return start, end


_CORPUS = corpus()
_MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    _flip_bit,
    _truncate,
    _duplicate,
    _cut_out,
    _splice,
    _replace_token,
    _replace_value,
]
