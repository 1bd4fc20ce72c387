"""What a session was: its events, and words in them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from dragoman.session.events import Event
from dragoman.web.shapes.base import Count, Cursor, Shape


class EventsQuery(Shape):
    """`coalesce` joins pieces of one text: true always, false never, else for a slow reader.
    `types` are those of the events that are wanted as JSON, with commas between; else all."""

    after: Cursor = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=5_000)] = 1_000
    coalesce: bool | None = None
    types: Annotated[str, msgspec.Meta(max_length=500)] = ""


class AllEventsQuery(Shape):
    """Without `after`, from now on."""

    after: Cursor | None = None
    coalesce: bool | None = None


class EventPage(Shape):
    """`last` is the number of the session's last event: there is more while it was not reached."""

    events: list[Event]
    last: int


class SearchQuery(Shape):
    q: str
    limit: Count = 50


class HitShape(Shape):
    """In `snippet` the words found stand between U+0001 and U+0002."""

    session_id: str
    title: str | None
    seq: int
    kind: str
    snippet: str


class Hits(Shape):
    hits: list[HitShape]


class CostsQuery(Shape):
    """`since` is a moment, in seconds since 1970."""

    since: Annotated[float, msgspec.Meta(ge=0, le=1e11)]


class CostAmount(Shape):
    amount: float
    currency: str


class CostList(Shape):
    """What was spent, in each currency; agents that tell no cost are not in it."""

    costs: list[CostAmount]
