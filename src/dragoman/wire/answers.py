"""Requests of the other side that are being answered: who answers which, however its id is spelt.

Generic over the worker, so that it needs no event loop: the peer keeps tasks here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from dragoman.wire.messages import Id, Request

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
        self._workers.setdefault(_plain(request.id), {})[worker] = None

    def is_open(self, key: Id) -> bool:
        """Whether a request with this id is being answered, and has not been cancelled."""
        return bool(self._workers) and _plain(key) in self._workers

    def close(self, worker: Worker) -> Request:
        """What the worker was answering; it is done."""
        request = self._requests.pop(worker)
        key = _plain(request.id)
        workers = self._workers.get(key, {})
        workers.pop(worker, None)
        if not workers:
            self._workers.pop(key, None)
        return request

    def cancel(self, key: Id) -> list[Worker]:
        """Who answers the requests with this id; each is named once, however often it is asked."""
        return list(self._workers.pop(_plain(key), ()))


def _plain(key: Id) -> Id:
    """One spelling for equal ids: "\\u0061" is "a", but 1 is neither 1.0 nor "1"."""
    try:
        return msgspec.json.encode(msgspec.json.decode(key), order="sorted")
    except msgspec.DecodeError:  # half a surrogate pair, or a number beyond reason
        return key
