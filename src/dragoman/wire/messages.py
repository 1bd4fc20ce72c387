"""Frames to JSON-RPC messages and back.

`decode` is total: whatever bytes come in, a message comes out, `Malformed` at worst. Ids stay the
raw JSON they arrived as, so that `1`, `1.0`, `"1"` and `null` are each answered exactly. Params and
results stay raw too: what they mean is not known here.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.wire.json_text import (
    depth,
    has_longer_number,
    has_more_values,
    is_utf8,
    outline,
    repair,
)

MAX_DEPTH = 128
# Each may take a hundred bytes once it is decoded, and microseconds on its way to the store: a
# frame full of them would fill the memory, and keep other sessions waiting.
MAX_VALUES = 1 << 18
# Reading and writing an integer costs the square of its digits; no double has more of them.
MAX_DIGITS = 309
_MANY_DIGITS = 4 * 1024
"""Bytes of a frame in which numbers are worth a look."""
SMALL = 2 * MAX_DEPTH
"""Bytes that cannot hold too much of anything: each level takes two."""
# Ids are remembered until their requests are answered, thousands of them.
MAX_ID_BYTES = 1024

Id = bytes
"""An id as the JSON it is on the wire."""


class Request(msgspec.Struct, frozen=True, gc=False):
    id: Id
    method: str
    params: msgspec.Raw


class Notification(msgspec.Struct, frozen=True, gc=False):
    method: str
    params: msgspec.Raw


class Reply(msgspec.Struct, frozen=True, gc=False):
    id: Id
    result: msgspec.Raw


class Failure(msgspec.Struct, frozen=True):
    id: Id
    code: int
    message: str
    data: Any = None


class Malformed(msgspec.Struct, frozen=True):
    """A frame that is not a usable message.

    `id` is there when the frame was a request that must be answered; `is_json` tells a broken
    message from a line that was never meant for us, such as a banner.
    """

    reason: str
    is_json: bool
    id: Id | None = None


Message = Request | Notification | Reply | Failure | Malformed

INTERNAL_ERROR = -32603
NULL = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, gc=False):
    jsonrpc: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = NULL
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _LooseEnvelope(msgspec.Struct):
    """Any JSON as the method."""

    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _ErrorObject(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_loose = msgspec.json.Decoder(_LooseEnvelope).decode
_decode_raw = msgspec.json.Decoder(msgspec.Raw).decode
_decode_error = msgspec.json.Decoder(_ErrorObject | str).decode


def decode(frame: bytes, deepest: int = MAX_DEPTH) -> Message:
    """The message in a frame; never raises."""
    if not frame.isascii() and not is_utf8(frame):
        return _mended(frame.decode("utf-8", "replace").encode(), deepest)
    try:
        return _decode_json(frame, deepest)
    except msgspec.DecodeError as error:
        return _decode_broken(frame, str(error), deepest)
    except RecursionError:
        return _refuse(frame, _too_deep(deepest))


def is_modest(frame: bytes) -> bool:
    """Whether a frame is surely neither nested too deeply nor made of too many or too long
    values."""
    return (
        frame.count(b"{") + frame.count(b"[") <= MAX_DEPTH
        and (len(frame) <= MAX_VALUES or frame.count(b",") <= MAX_VALUES - MAX_DEPTH)
        and not _has_long_number(frame)
    )


def _has_long_number(frame: bytes) -> bool:
    return len(frame) > _MANY_DIGITS and has_longer_number(frame, MAX_DIGITS)


def is_whole(frame: bytes) -> bool:
    """Whether a line that lacks its newline is JSON to its end, not cut off in the middle."""
    return _is_json(repair(frame))


def _decode_json(frame: bytes, deepest: int) -> Message:
    try:
        envelope = _decode_envelope(frame)
    except msgspec.ValidationError:
        envelope = _decode_misshapen(frame)
        if isinstance(envelope, Malformed):
            return envelope
    if len(frame) > SMALL and (reason := _excess(frame, envelope, deepest)):
        return _refuse_envelope(envelope, reason)
    if envelope.method is not msgspec.UNSET:
        if envelope.id is msgspec.UNSET:
            return Notification(envelope.method, envelope.params)
        return Request(bytes(envelope.id), envelope.method, envelope.params)
    return _decode_answer(envelope)


def _excess(frame: bytes, envelope: _Envelope, deepest: int) -> str:
    """What there is too much of, if anything; a plain count settles it for nearly every frame."""
    if envelope.id is not msgspec.UNSET and len(bytes(envelope.id)) > MAX_ID_BYTES:
        return _LONG_ID
    brackets = frame.count(b"{") + frame.count(b"[")
    items = brackets + frame.count(b",") if len(frame) > MAX_VALUES else 0
    if items > MAX_VALUES and has_more_values(frame, MAX_VALUES):
        return _TOO_MANY
    if _has_long_number(frame):
        return _LONG_NUMBER
    return _too_deep(deepest) if brackets > deepest and depth(frame) > deepest else ""


def _decode_answer(envelope: _Envelope) -> Message:
    if envelope.id is msgspec.UNSET:
        return Malformed("neither a method nor an id", is_json=True)
    key = bytes(envelope.id)
    if envelope.error is not msgspec.UNSET and bytes(envelope.error) != b"null":
        return _failure(key, bytes(envelope.error))
    if envelope.result is not msgspec.UNSET:
        return Reply(key, envelope.result)
    # A JSON log line may hold an "id" too: only what claims to be JSON-RPC may settle a call.
    if envelope.jsonrpc is msgspec.UNSET:
        return Malformed("no JSON-RPC message", is_json=True)
    return Failure(key, INTERNAL_ERROR, "the reply holds neither a result nor an error")


def _failure(key: Id, error: bytes) -> Failure:
    """An error reply settles its call whatever its shape: `"error": "text"` must not hang it."""
    try:
        known = _decode_error(error)
    except msgspec.DecodeError:
        return Failure(key, INTERNAL_ERROR, error.decode())
    if isinstance(known, str):
        return Failure(key, INTERNAL_ERROR, known)
    return Failure(key, known.code, known.message, known.data)


def _decode_misshapen(frame: bytes) -> _Envelope | Malformed:
    # The type was found wrong before the rest was read: a line like `[INFO] ready` is not JSON.
    _decode_raw(frame)
    try:
        envelope = _decode_loose(frame)
    except msgspec.ValidationError:
        return Malformed("not an object", is_json=True)
    if envelope.result is not msgspec.UNSET or envelope.error is not msgspec.UNSET:
        # Some write all members of every message, so that a reply has a method, which is null.
        return _Envelope(id=envelope.id, result=envelope.result, error=envelope.error)
    # A request must be answered, even if nobody can tell what it asks for.
    key = None if envelope.id is msgspec.UNSET else bytes(envelope.id)
    return Malformed("the method is not a string", is_json=True, id=key)


_BOM = b"\xef\xbb\xbf"


def _decode_broken(frame: bytes, reason: str, deepest: int) -> Message:
    if frame.startswith(_BOM):
        return _mended(frame.lstrip(_BOM), deepest)
    if not frame.lstrip().startswith(b"{"):
        return Malformed(f"not JSON: {reason}", is_json=False)
    repaired = repair(frame)
    if repaired != frame:
        return _mended(repaired, deepest)
    return _refuse(frame, f"not JSON: {reason}")


def _mended(frame: bytes, deepest: int) -> Message:
    """The message in a line that was not JSON as it arrived."""
    message = decode(frame, deepest)
    if isinstance(message, Malformed):
        return msgspec.structs.replace(message, is_json=False)
    return message


_TOO_MANY = f"made of more than {MAX_VALUES} values"
_LONG_NUMBER = f"made of numbers with more than {MAX_DIGITS} digits"
_LONG_ID = f"marked with an id of more than {MAX_ID_BYTES} bytes"


def _too_deep(deepest: int) -> str:
    return f"nested deeper than {deepest} levels"


def _refuse_envelope(envelope: _Envelope, reason: str) -> Message:
    key = None if envelope.id is msgspec.UNSET else bytes(envelope.id)
    if envelope.method is not msgspec.UNSET:
        return Malformed(reason, is_json=False, id=key)
    claims = (envelope.jsonrpc, envelope.result, envelope.error)
    if key is None or all(claim is msgspec.UNSET for claim in claims):
        return Malformed(reason, is_json=False)
    return Failure(key, INTERNAL_ERROR, f"the reply is {reason}")


def _refuse(frame: bytes, reason: str) -> Message:
    """Find whose frame this is, so that a request is answered and a reply settles its call."""
    key, keys = outline(frame)
    if key is not None and not _is_json(key):
        key = None
    if b'"jsonrpc"' not in keys:
        return Malformed(reason, is_json=False)
    if key is None or b'"method"' in keys:
        return Malformed(reason, is_json=False, id=key)
    return Failure(key, INTERNAL_ERROR, f"the reply is {reason}")


def _is_json(text: bytes) -> bool:
    try:
        _decode_raw(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def encode_request(key: Id, method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,%b}' % (key, encode_members(method, params))


def encode_notification(method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0",%b}' % encode_members(method, params)


def encode_members(method: str, params: bytes) -> bytes:
    """What is asked or told, without braces; JSON-RPC has no params that are null."""
    name, text = msgspec.json.encode(method), _one_line(params)
    return b'"method":%b' % name if text == b"null" else b'"method":%b,"params":%b' % (name, text)


def encode_reply(key: Id, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (key, _one_line(result))


def encode_failure(key: Id, code: int, message: str, data: Any = None) -> bytes:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (key, _encode_error(error))


def _encode_error(error: dict[str, Any]) -> bytes:
    """Whatever the error holds, such as an undecodable file name, the other side is answered."""
    try:
        return msgspec.json.encode(error)
    except (TypeError, ValueError, RecursionError):
        message = error["message"].encode("utf-8", "replace").decode()
        return msgspec.json.encode({"code": error["code"], "message": message})


def _one_line(json: bytes) -> bytes:
    """JSON passed on from elsewhere may be laid out over lines; a frame is one line."""
    text = bytes(json)  # a `Raw` is bytes to type checkers, but not at run time
    return msgspec.json.format(text, indent=-1) if b"\n" in text else text
