"""The base of all shapes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, TypeAlias

import msgspec

from dragoman.store.records import LAST_MOMENT

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=500)]
LARGEST_CURSOR = 2**63 - 1
"""That a store can tell from another."""
Cursor: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_CURSOR)]


class Shape(msgspec.Struct, rename="camel"):
    """Anything that travels."""


class IdQuery(Shape):
    """Which one is meant."""

    id: str


def utc(seconds: float) -> datetime:
    """The nearest moment that has a date: one odd record must not take a whole list away."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), LAST_MOMENT), UTC)
