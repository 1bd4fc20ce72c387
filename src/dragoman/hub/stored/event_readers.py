"""Readers of stored events: each has a cursor and no queue, so a slow reader costs nothing.

The newest events of the sessions that run here are kept in memory; a reader that is further back
reads from the store.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, count, repeat, takewhile
from operator import itemgetter
from typing import TypeVar

from dragoman.errors import StoreAway
from dragoman.store.base import Store
from dragoman.store.records import StoredEvent

_TAIL_BYTES = 1024 * 1024
_TAIL_EVENTS = 10_000
_PAGE = 1000
_AGAIN_SECONDS = 0.5

T = TypeVar("T")


class Tail:
    """The newest stored events of one session, as many as fit.

    Only their bodies are kept: a session that is not read pays for nothing else.
    """

    def __init__(self, session_id: str, last_seq: int) -> None:
        self._session_id = session_id
        self._bodies: list[bytes] = []
        self._dropped = 0
        """Bodies at the front of the list that no longer count."""
        self._end = 0
        """The bytes of all that were ever pushed."""
        self._last_seq = last_seq
        self._batches: list[tuple[int, int, int]] = []
        """For each batch, its last number, how far positions are ahead of numbers in it, and where
        it ends among all bytes."""

    def push(self, first_position: int, bodies: Sequence[bytes], size: int) -> None:
        """Add a batch that was stored, of so many bytes; its positions follow each other."""
        offset = first_position - self._last_seq - 1
        self._last_seq += len(bodies)
        self._end += size
        if size > _TAIL_BYTES:
            self.forget()
            bodies = _newest(bodies)
        self._bodies += bodies
        self._batches.append((self._last_seq, offset, self._end))
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Batches in front of the last so many bytes, and what is too much by its number."""
        length = len(self._bodies)
        before = bisect_right(self._batches, self._end - _TAIL_BYTES, key=_end_of)
        kept = self._last_seq - self._batches[before - 1][0] if before else length
        self._dropped = max(self._dropped, length - min(kept, _TAIL_EVENTS))
        # Cutting a list costs its length, so it is done when half of it is of no use.
        if self._dropped * 2 > length:
            del self._bodies[: self._dropped]
            self._dropped = 0
            del self._batches[: self._batch_after(self._last_seq - len(self._bodies))]

    def forget(self) -> None:
        """Drop everything: no reader has asked for it for a while."""
        self._bodies, self._batches, self._dropped = [], [], 0

    def after(self, seq: int) -> list[StoredEvent] | None:
        """A page of what came after an event; None when that goes back beyond what is kept."""
        if seq >= self._last_seq:
            return []
        # The sequence is dense, so the place of an event follows from its number.
        place = len(self._bodies) - (self._last_seq - seq)
        if place < self._dropped:
            return None
        page: list[StoredEvent] = []
        for last, offset, _ in self._batches[self._batch_after(seq) :]:
            bodies = self._bodies[place : place + min(last - seq, _PAGE - len(page))]
            positions, session_ids = count(seq + 1 + offset), repeat(self._session_id)
            page += map(StoredEvent, positions, session_ids, count(seq + 1), bodies)
            seq, place = seq + len(bodies), place + len(bodies)
            if len(page) == _PAGE:
                break
        return page

    def _batch_after(self, seq: int) -> int:
        """Which batch has the event after `seq`."""
        return bisect_left(self._batches, (seq + 1,))


_end_of = itemgetter(2)


def _newest(bodies: Sequence[bytes]) -> Sequence[bytes]:
    """As many as fit; the last one in any case."""
    sizes = accumulate(map(len, reversed(bodies)))
    fit = sum(1 for _ in takewhile(lambda size: size <= _TAIL_BYTES, sizes))
    return bodies[-max(fit, 1) :]


class News:
    """Wakes readers that wait for something new, in one session or anywhere."""

    def __init__(self) -> None:
        self._waiting: dict[str | None, set[asyncio.Event]] = {}

    @contextmanager
    def of(self, session_id: str | None) -> Generator[asyncio.Event]:
        """An event that is set when there may be something new; None is for all sessions."""
        news = asyncio.Event()
        waiting = self._waiting.setdefault(session_id, set())
        waiting.add(news)
        try:
            yield news
        finally:
            waiting.discard(news)
            if not waiting:
                self._waiting.pop(session_id, None)

    def tell(self, session_id: str) -> None:
        for key in (session_id, None):
            for news in self._waiting.get(key, ()):
                news.set()

    def tell_all(self, but: Container[str | None] = ()) -> None:
        """Wake everyone except those who are notified of news in their session one by one."""
        for session_id, waiting in self._waiting.items():
            if session_id not in but:
                for news in waiting:
                    news.set()


async def watch_session(
    store: Store,
    news: News,
    session_id: str,
    after: int,
    tail: Callable[[], Tail | None],
) -> AsyncIterator[list[StoredEvent]]:
    """The events of one session behind `after`, those there are and then those to come; it ends
    when the session was deleted."""
    with news.of(session_id) as fresh:
        while True:
            fresh.clear()
            near = tail()
            events = None if near is None else near.after(after)
            if events is None:
                events = await _patiently(
                    partial(store.events, session_id, after=after, limit=_PAGE)
                )
            if events:
                after = events[-1].seq
                yield events
            elif near is None and await _patiently(partial(store.session, session_id)) is None:
                return
            else:
                await fresh.wait()


async def watch_all(store: Store, news: News, after: int) -> AsyncIterator[list[StoredEvent]]:
    """The events of all sessions behind a position, those there are and then those to come."""
    with news.of(None) as fresh:
        while True:
            fresh.clear()
            events = await _patiently(partial(store.all_events, after=after, limit=_PAGE))
            if events:
                after = events[-1].position
                yield events
            else:
                await fresh.wait()


async def _patiently(read: Callable[[], Awaitable[T]]) -> T:
    """A follower waits for a database that is unavailable: it misses nothing."""
    while True:
        try:
            return await read()
        except StoreAway:
            await asyncio.sleep(_AGAIN_SECONDS)
