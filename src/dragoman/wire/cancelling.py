"""Giving a request up: `$/cancel_request` names it by its id on this connection."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman.wire.messages import Id, encode_notification

CANCEL_REQUEST: Final = "$/cancel_request"


class _CancelParams(msgspec.Struct):
    request_id: msgspec.Raw = msgspec.field(name="requestId")


def encode_cancel(key: Id) -> bytes:
    return encode_notification(CANCEL_REQUEST, b'{"requestId":%b}' % key)


def cancelled_id(params: bytes) -> Id | None:
    """The request that is given up; None when the params do not say."""
    try:
        return bytes(msgspec.json.decode(params, type=_CancelParams).request_id)
    except msgspec.DecodeError:
        return None
