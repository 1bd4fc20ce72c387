"""Stored events of some types, told by how they begin: the others are not decoded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

from dragoman.store.base import Store
from dragoman.store.records import StoredEvent

_PAGE = 2_000


async def events_of_types(
    store: Store, session_id: str, types: Iterable[str], *, after: int = 0, until: int | None = None
) -> AsyncGenerator[StoredEvent]:
    """Those behind the event numbered `after`, up to `until` or to the last."""
    beginnings = tuple(b'{"type":"%b"' % each.encode() for each in types)
    while until is None or after < until:
        limit = _PAGE if until is None else min(_PAGE, until - after)
        if not (page := await store.events(session_id, after=after, limit=limit)):
            return
        for event in page:
            if event.body.startswith(beginnings):
                yield event
        after = page[-1].seq
