"""A transaction in few round trips: what is asked, and what is written then. Knows no tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")

Rows: TypeAlias = list[tuple[Any, ...]]
Statement: TypeAlias = tuple[str, Sequence[Any]]


class Plan(Generic[T]):
    """A transaction of two round trips: all that is `first` is asked in one, and what `decide`
    makes of the answers is written and committed in the other. `decide` has the result too, and
    raises what there is to refuse. One that is `repeatable` does no harm when it is done twice:
    it takes one round trip, and nothing is written afterwards."""

    def __init__(
        self,
        first: Sequence[Statement],
        decide: Callable[[list[Rows]], tuple[T, Sequence[Statement]]],
        *,
        repeatable: bool = False,
    ) -> None:
        self.first = first
        self.decide = decide
        self.repeatable = repeatable
