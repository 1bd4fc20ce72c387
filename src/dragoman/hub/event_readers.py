"""Readers of stored events: each has a cursor and no queue, so one that is slow costs nothing.

The newest events of the sessions that run here are kept at hand; whoever is further behind reads
from the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from dragoman.errors import StoreAway
from dragoman.store.base import Store
from dragoman.store.records import StoredEvent

_TAIL_BYTES = 1024 * 1024
_EACH = 256
"""Bytes that an event takes beside its body."""
_PAGE = 1000
_AGAIN_SECONDS = 0.5

T = TypeVar("T")


class Tail:
    """The newest stored events of one session, as many as fit."""

    def __init__(self, last_seq: int) -> None:
        self._events: list[StoredEvent] = []
        self._dropped = 0
        """Events at the front of the list that do not count any more."""
        self._size = 0
        self._last_seq = last_seq

    def push(self, events: Sequence[StoredEvent]) -> None:
        self._events += events
        self._size += sum(len(event.body) + _EACH for event in events)
        self._last_seq = events[-1].seq
        while self._size > _TAIL_BYTES and self._dropped < len(self._events) - 1:
            self._size -= len(self._events[self._dropped].body) + _EACH
            self._dropped += 1
        # Cutting the list costs its length, so it is done when half of it is of no use.
        if self._dropped * 2 > len(self._events):
            del self._events[: self._dropped]
            self._dropped = 0

    def forget(self) -> None:
        """Keep nothing at hand: nobody has asked for it for a while."""
        self._events, self._dropped, self._size = [], 0, 0

    def after(self, seq: int) -> list[StoredEvent] | None:
        """What came behind an event; None when that goes further back than what is kept."""
        if seq >= self._last_seq:
            return []
        # The sequence is dense, so the place of an event follows from its number.
        place = len(self._events) - (self._last_seq - seq)
        return self._events[place : place + _PAGE] if place >= self._dropped else None


class News:
    """Wakes whoever waits for something new, in one session or anywhere."""

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
        """Everybody, without those who are told of what is new in their session one by one."""
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
    """Whoever follows waits for a database that is away: it misses nothing."""
    while True:
        try:
            return await read()
        except StoreAway:
            await asyncio.sleep(_AGAIN_SECONDS)
