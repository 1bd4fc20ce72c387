"""Requests in flight, in both directions, and cancelling one with `$/cancel_request`.

Generic over the waiter, so that it needs no event loop: the peer keeps futures here.

Generic over the worker, so that it needs no event loop: the peer keeps tasks here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

import msgspec

from dragoman.wire.messages import Id, Request, encode_notification

Waiter = TypeVar("Waiter")


class Calls(Generic[Waiter]):
    """Gives out ids, one after the other, and gives back the waiter that an answer belongs to,
    once."""

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._waiting: dict[Id, Waiter] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self, waiter: Waiter) -> Id:
        key = b"%d" % self._next
        self._next += 1
        self._waiting[key] = waiter
        return key

    def settle(self, key: Id) -> Waiter | None:
        """The waiter for an answered id; None when it is unknown, given up or already answered."""
        waiter = self._waiting.pop(key, None)
        return waiter if waiter is not None else self._waiting.pop(_as_integer(key), None)

    def close(self) -> list[Waiter]:
        """Every waiter left, at the end of the connection."""
        left = list(self._waiting.values())
        self._waiting.clear()
        return left


def _as_integer(key: Id) -> Id:
    """Our ids are integers; a peer may echo 7 as 7.0 or 7e0, but `true` and "7" are not 7."""
    try:
        number = msgspec.json.decode(key, type=float)
    except msgspec.DecodeError:
        return key
    return b"%d" % int(number) if number.is_integer() else key


Worker = TypeVar("Worker")


class Answers(Generic[Worker]):
    """Finds a request by its worker, and workers by id: one that was cancelled may be used again
    before its worker is done."""

    def __init__(self) -> None:
        self._requests: dict[Worker, Request] = {}
        self._workers: dict[Id, dict[Worker, None]] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._requests)

    def open(self, worker: Worker, request: Request) -> None:
        self._requests[worker] = request
        self._workers.setdefault(_normalised(request.id), {})[worker] = None

    def is_open(self, key: Id) -> bool:
        """Whether a request with this id is being answered, and has not been cancelled."""
        return bool(self._workers) and _normalised(key) in self._workers

    def close(self, worker: Worker) -> Request:
        """What the worker was answering; it is done."""
        request = self._requests.pop(worker)
        key = _normalised(request.id)
        workers = self._workers.get(key, {})
        workers.pop(worker, None)
        if not workers:
            self._workers.pop(key, None)
        return request

    def cancel(self, key: Id) -> list[Worker]:
        """Who answers the requests with this id; each is named once, however often it is asked."""
        return list(self._workers.pop(_normalised(key), ()))


def _normalised(key: Id) -> Id:
    """One spelling for equal ids: "\\u0061" is "a", but 1 is neither 1.0 nor "1"."""
    try:
        return msgspec.json.encode(msgspec.json.decode(key), order="sorted")
    except msgspec.DecodeError:  # half a surrogate pair, or a number beyond reason
        return key


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
