"""Who came with an access token of the store, and for how long: out as soon as it is revoked.

Another process may revoke a token, or its time may end, while a stream is open. Each change of the
store is a reason to look at the tokens of those who are in, and so is the end of a token's time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from dragoman.access.access_tokens import AccessToken
from dragoman.access.token_book import TokenBook
from dragoman.errors import StoreError
from dragoman.store.base import Store

_PAUSE_SECONDS = 0.2
"""Between two looks: streams change the store all the time."""
_RECENT_SECONDS = 10.0
"""Reading a token takes less."""


class Visitors:
    """Those who are in. `end` stops watching the store."""

    def __init__(self, store: Store) -> None:
        self.book = TokenBook(store)
        self._inside: dict[str, list[Callable[[], None]]] = {}
        """What cuts off each of the requests that a token has open."""
        self._store = store
        self._stop_watching: Callable[[], None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._again = False
        self._changed_at = -_RECENT_SECONDS

    async def find(self, text: str) -> AccessToken | None:
        """The valid token that was presented. Raises StoreError."""
        if self._stop_watching is None:
            self._stop_watching = self._store.on_change(self._changed)
        return await self.book.find(text)

    @contextmanager
    def inside(self, token: AccessToken, cut_off: Callable[[], None]) -> Generator[None]:
        """While this lasts, `cut_off` is called when the token is no longer valid."""
        here = self._inside.setdefault(token.id, [])
        here.append(cut_off)
        timer = self._at_its_end(token)
        if time.monotonic() - self._changed_at < _RECENT_SECONDS:
            self._look_soon()  # it may have been revoked after it was read
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            here.remove(cut_off)
            if not here:
                self._inside.pop(token.id, None)

    def _at_its_end(self, token: AccessToken) -> asyncio.TimerHandle | None:
        if token.expires_at is None:
            return None
        left = max(token.expires_at - time.time(), 0.0)
        return asyncio.get_running_loop().call_later(left, self.cut_off, token.id)

    def cut_off(self, token_id: str) -> None:
        """Everyone who came with this token."""
        for cut in list(self._inside.get(token_id, ())):
            cut()

    def _changed(self) -> None:
        self._changed_at = time.monotonic()
        if self._inside:
            self._look_soon()

    def _look_soon(self) -> None:
        """Whether all who are in still may be."""
        self._again = True
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        try:
            while self._again:
                self._again = False
                with suppress(StoreError):  # they stay until the store can be asked
                    for token_id in await self.book.invalid(set(self._inside)):
                        self.cut_off(token_id)
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self._looking = None

    def end(self) -> None:
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        if self._looking is not None:
            self._looking.cancel()
