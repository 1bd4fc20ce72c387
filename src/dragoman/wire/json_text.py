"""Reads JSON as text, for frames that a JSON parser refuses.

Everything here is linear in the frame's length: the patterns are possessive, and the closing quote
is optional so that an unterminated string is one token, not a new attempt at every quote in it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate

_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_TOKENS = _STRING + rb"|[\[\]{}]"
_SCALAR_VALUE = rb"\s*:\s*(" + _STRING + rb"|[^\s,{}\[\]]+)\s*[,}]"
_NOT_JSON = _STRING + rb"|-?\bInfinity\b|\bNaN\b"
_ESCAPES = (
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u])"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_SAME_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_SLICE = 1 << 16
# Refused frames are taken apart in Python, at a microsecond and a hundred bytes a token: what is
# larger than any honest agent gets wrong must neither stall the others nor fill the memory.
_OUTLINED = 1 << 18
_REPAIRED = 1 << 20


@cache
def _pattern(words: bytes) -> re.Pattern[bytes]:
    """Compiled when it is needed, which is seldom: that takes longer than a whole connection."""
    return re.compile(words, re.DOTALL)


def is_utf8(frame: bytes) -> bool:
    """Checked in slices: decoding 64 MiB whole could take four times that for a moment."""
    try:
        if len(frame) <= _SLICE:
            frame.decode()
            return True
        decoder = codecs.getincrementaldecoder("utf-8")()
        for start in range(0, len(frame), _SLICE):
            decoder.decode(frame[start : start + _SLICE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def depth(frame: bytes) -> int:
    """How deep the arrays and objects of valid JSON nest."""
    brackets = b"".join(_outside_strings(frame, b"[]{}"))
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def has_more_values(frame: bytes, most: int) -> bool:
    """Whether the arrays and objects of valid JSON, and their further items, are more than that."""
    found = accumulate(map(len, _outside_strings(frame, b"[{,")))
    return any(count > most for count in found)


def has_longer_number(frame: bytes, digits: int) -> bool:
    """Whether valid JSON has a number with more digits in a row; a string may have as many."""
    # So many digits in a row show in a sample of the bytes too, which is cheap to look at.
    if b"0" * 10 not in frame[:: digits // 10].translate(_SAME_DIGITS):
        return False
    long, before = b"0" * (digits + 1), b""
    for part in _outside_strings(frame, b"0123456789,:[]{}"):
        before += part.translate(_SAME_DIGITS)
        if long in before:
            return True
        before = before[-digits:]
    return False


def _outside_strings(frame: bytes, wanted: bytes) -> Iterator[bytes]:
    """Those characters of valid JSON that stand outside its strings; in slices, as above."""
    plain = frame.replace(b"\\\\", b"").replace(b'\\"', b"")
    unwanted = bytes(set(range(256)) - set(wanted))
    in_string = 0
    for start in range(0, len(plain), _SLICE):
        parts = plain[start : start + _SLICE].split(b'"')
        yield b"".join(parts[in_string::2]).translate(None, unwanted)
        in_string = (in_string + len(parts) - 1) % 2


def outline(frame: bytes) -> tuple[bytes | None, set[bytes]]:
    """The raw value of the outermost `"id"`, if it is a scalar, and all strings on that level.

    Ids stand near the front: the rest of a large frame is not looked at.
    """
    key: bytes | None = None
    strings: set[bytes] = set()
    level = 0
    for token in _pattern(_TOKENS).finditer(frame, 0, _OUTLINED):
        text = token.group()
        if text in (b"{", b"["):
            level += 1
        elif text in (b"}", b"]"):
            level -= 1
        elif level == 1:
            strings.add(text)
            if text == b'"id"' and (value := _pattern(_SCALAR_VALUE).match(frame, token.end())):
                key = value.group(1)
    return key, strings


def repair(frame: bytes) -> bytes:
    """Make JSON of what agents commonly get wrong: half surrogate pairs, NaN and infinities.

    A chunk of text cut between the halves of a pair is worth more with one U+FFFD than not at all.
    """
    return frame if len(frame) > _REPAIRED else _pattern(_NOT_JSON).sub(_repair_token, frame)


def _repair_token(token: re.Match[bytes]) -> bytes:
    text = token.group()
    if not text.startswith(b'"'):
        return b"null"
    return _pattern(_ESCAPES).sub(lambda escape: escape.group(1) or rb"\ufffd", text)
