"""Decoding for tests: the message of the kind that is expected, or a failure that shows it."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.wire.messages import Failure, Malformed, Notification, Reply, Request, decode


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
