"""Calls in flight: which id was given to which waiter.

Generic over the waiter, so that it needs no event loop: the peer keeps futures here.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from dragoman.wire.messages import Id

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
        return waiter if waiter is not None else self._waiting.pop(_plain(key), None)

    def close(self) -> list[Waiter]:
        """Every waiter left, at the end of the connection."""
        left = list(self._waiting.values())
        self._waiting.clear()
        return left


def _plain(key: Id) -> Id:
    """Our ids are integers; a peer may echo 7 as 7.0 or 7e0, but `true` and "7" are not 7."""
    try:
        number = msgspec.json.decode(key, type=float)
    except msgspec.DecodeError:
        return key
    return b"%d" % int(number) if number.is_integer() else key
