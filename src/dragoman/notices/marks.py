"""Which notices were sent to whom, so that each is sent once, by the first process of the store.

A process marks a notice before it sends it, and again after that. One that is killed in between
leaves the first mark: the next process that finds it sends it again, since nobody knows whether the
message went out. What it replaces has the same topic and tag, so people see one.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.hub.cluster.owner import has_stopped
from dragoman.store.base import Store
from dragoman.store.records import Owner

_KIND = "notice"
_SECONDS = 7 * 86400.0


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who sends it; None when it was sent or need not be."""

    teller: Owner | None = None


_mark = msgspec.json.Decoder(Mark)
_TOLD = msgspec.json.encode(Mark())


class Marks:
    """Every method raises StoreError."""

    def __init__(
        self, store: Store, owner: Owner, has_ended: Callable[[Owner], bool] = has_stopped
    ) -> None:
        self._store = store
        self._has_ended = has_ended
        self._begun = msgspec.json.encode(Mark(owner))

    async def begin(self, key: str) -> bool:
        """Whether it is for us to tell."""
        if await self._replace(key, None, self._begun):
            return True
        before = await self._store.shared_one(_KIND, key)
        teller = None if before is None else _mark.decode(before).teller
        if teller is None or not self._has_ended(teller):
            return False
        return await self._replace(key, before, self._begun)

    async def told(self, key: str) -> None:
        await self._replace(key, self._begun, _TOLD)

    async def need_not_be_told(self, key: str) -> None:
        await self._replace(key, None, _TOLD)

    async def take_back(self, key: str) -> None:
        """We will not tell it: the next process may."""
        await self._replace(key, self._begun, None)

    async def _replace(self, key: str, before: bytes | None, after: bytes | None) -> bool:
        return await self._store.share(_KIND, key, before, after, seconds=_SECONDS)
