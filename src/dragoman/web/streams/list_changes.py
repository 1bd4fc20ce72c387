"""Changes to the list of sessions, and questions outside of them, for readers of all events.

Renaming, archiving and deleting are not events of a session, and other processes do them too.
The list is compared with what it was when something may be new in the store. A reader has a cursor
into the newest of what was found, and no queue.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from dragoman.errors import DragomanError
from dragoman.host.forms.elicitation import ElicitationRequest
from dragoman.hub.stored.event_readers import News
from dragoman.store.base import Store, session_pages
from dragoman.store.records import SessionFilter, SessionRecord
from dragoman.web.shapes.server_shapes import Shape
from dragoman.web.streams.sse import named_frame

_PAGE = 1_000
_KEPT = 1_000
_BETWEEN_SECONDS = 0.5
_SHARE = 20
"""Of the time there is, the part that is spent on looking, however long the list."""


class Listed(Shape):
    """What is reported when it changes; a title that nobody gave follows from the events."""

    session_id: str
    title: str | None
    renamed: bool
    name: str | None
    archived: bool

    def is_news_after(self, before: Listed) -> bool:
        fixed = (self.renamed, self.name, self.archived)
        if fixed != (before.renamed, before.name, before.archived):
            return True
        return self.renamed and self.title != before.title


class Deleted(Shape):
    session_id: str


class Asking(Shape):
    """The agents that ask something outside of sessions."""

    agents: list[str]


Outside: TypeAlias = list[tuple[str, ElicitationRequest]]
"""What is asked there, with the names of the agents."""


class Roster:
    """Polls for changes while there are readers, until `closing`."""

    def __init__(
        self, store: Store, news: News, closing: asyncio.Event, outside: Callable[[], Outside]
    ) -> None:
        self._outside = outside
        self._asked: frozenset[tuple[str, str]] = frozenset()
        self._store = store
        self._news = news
        self._closing = closing
        self._known: dict[str, Listed] = {}
        self._frames: deque[bytes] = deque(maxlen=_KEPT)
        self._count = 0
        self._readers = 0
        self._told = asyncio.Event()
        """Set, and replaced, when there are more frames."""
        self._comparing = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    # ── readers ───────────────────────────────────────────────────────────────────────────────

    async def begin(self) -> int:
        """The cursor of a reader that begins now: all changes from here on are reported."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._keep_looking())
        await self._look()
        return self._count

    async def frames(self, after: int) -> AsyncGenerator[bytes]:
        """What changes after the cursor; of what is no longer kept, only the newest."""
        self._readers += 1
        try:
            while True:
                if after == self._count:
                    await self._told.wait()
                    continue
                missed = min(self._count - after, len(self._frames))
                after = self._count
                yield b"".join(list(self._frames)[-missed:])
        finally:
            self._readers -= 1

    # ── looking ───────────────────────────────────────────────────────────────────────────────

    async def _keep_looking(self) -> None:
        with self._news.of(None) as fresh:
            while not self._closing.is_set():
                await self._first_of(fresh, None)
                fresh.clear()
                started = time.monotonic()
                if self._readers and not self._closing.is_set():
                    with suppress(DragomanError):  # the next look finds it
                        await self._look()
                took = time.monotonic() - started
                await self._first_of(None, max(_BETWEEN_SECONDS, took * _SHARE))

    async def _first_of(self, fresh: asyncio.Event | None, seconds: float | None) -> None:
        """Until there is news, the time is over, or the server ends."""
        events = [self._closing] if fresh is None else [self._closing, fresh]
        tasks = [asyncio.create_task(event.wait()) for event in events]
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()

    async def _look(self) -> None:
        async with self._comparing:
            known, found = self._known, await self._read()
            for session_id in known.keys() - found.keys():
                # One that moved while the pages were read is still there.
                if await self._store.session(session_id) is not None:
                    found[session_id] = known[session_id]
            self._known = found
            self._compare(known, found)
            self._compare_questions()

    def _compare_questions(self) -> None:
        asked = frozenset((agent, question.request_id) for agent, question in self._outside())
        if asked != self._asked:
            self._asked = asked
            self._tell("questions", Asking(sorted({agent for agent, _ in asked})))

    def _compare(self, before: dict[str, Listed], now: dict[str, Listed]) -> None:
        """A new session is reported by its own events."""
        for session_id, listed in before.items():
            if session_id not in now:
                self._tell("deleted", Deleted(session_id))
            elif now[session_id].is_news_after(listed):
                self._tell("session", now[session_id])

    async def _read(self) -> dict[str, Listed]:
        pages = session_pages(self._store, SessionFilter(limit=_PAGE))
        return {each.id: _listed(each) async for page in pages for each in page}

    def _tell(self, name: str, note: Listed | Deleted | Asking) -> None:
        self._frames.append(named_frame(name, msgspec.json.encode(note)))
        self._count += 1
        told, self._told = self._told, asyncio.Event()
        told.set()


def _listed(record: SessionRecord) -> Listed:
    return Listed(record.id, record.title, record.renamed, record.name, record.archived)
