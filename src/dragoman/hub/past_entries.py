"""The entries of a thread that its state has let go: folded from the stored events once more.

Each is as it was when it left the state: later updates about it began another one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from dragoman.hub.session_state import readable
from dragoman.session.bounds import LIMITS, ROW, Limits
from dragoman.session.reduce import reduce
from dragoman.session.state import AnyEntry, SessionState
from dragoman.store.base import Store

_PAGE = 2_000
KEPT_SECONDS = 60.0
"""How long the entries that somebody asked for stay at hand, since he may go on to older ones."""


async def whole_thread(
    store: Store, session_id: str, limits: Limits = LIMITS
) -> AsyncGenerator[AnyEntry]:
    """All entries of a session from its first on, however many: no more are held than a state
    does."""
    state = SessionState()
    held: deque[AnyEntry] = deque()
    given = after = 0
    while events := await store.events(session_id, after=after, limit=_PAGE):
        for event in readable(events):
            reduce(state, event, limits)
            fresh = state.entry_count - given - len(held)
            held.extend(state.entries[len(state.entries) - fresh :])
            while given < state.entries_before:
                given += 1
                yield held.popleft()
        after = events[-1].seq
    for entry in held:
        yield entry


class Past:
    """Looks back on request; the last stretch that was read stays at hand for a while."""

    def __init__(self, store: Store, limits: Limits = LIMITS) -> None:
        self._store = store
        self._limits = limits
        self._session_id = ""
        self._first = 0
        self._entries: list[AnyEntry] = []
        self._reading = asyncio.Lock()
        self._forgetting: asyncio.TimerHandle | None = None

    async def entries(self, session_id: str, before: int, count: int) -> Sequence[AnyEntry]:
        """At most so many entries, the last of those before the one numbered `before`; only for
        those that have left the state."""
        async with self._reading:
            if not self._has(session_id, before):
                await self._read(session_id, before)
            self._keep_a_while()
            end = before - self._first
            return self._entries[max(0, end - count) : end]

    def _has(self, session_id: str, before: int) -> bool:
        last = self._first + len(self._entries)
        return session_id == self._session_id and self._first < before <= last

    async def _read(self, session_id: str, before: int) -> None:
        """As much as a state would hold."""
        self.forget()
        found: deque[AnyEntry] = deque()
        size = number = 0
        async with aclosing(whole_thread(self._store, session_id, self._limits)) as thread:
            async for entry in thread:
                if number == before:
                    break
                number += 1
                found.append(entry)
                size += ROW + entry.size
                while len(found) > self._limits.entries or size > self._limits.thread:
                    if len(found) == 1:
                        break
                    size -= ROW + found.popleft().size
        self._session_id, self._entries = session_id, list(found)
        self._first = number - len(found)

    def _keep_a_while(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
        loop = asyncio.get_running_loop()
        self._forgetting = loop.call_later(KEPT_SECONDS, self.forget)

    def forget(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
            self._forgetting = None
        self._session_id, self._first, self._entries = "", 0, []
