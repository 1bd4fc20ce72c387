"""The browsers that want pushes, in the store; each is known by its endpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from dragoman.store.base import Store

_KIND = "push"


class Subscription(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A browser that subscribed: where its pushes go, its keys, and what it wants to hear of.

    `device` is the access token it came with, None if with the server's own. `server_key` is the
    key that it subscribed to: only the server that has it can send there.
    """

    id: str
    endpoint: str
    key: str
    secret: str
    server_key: str
    created_at: float
    device: str | None = None
    content: bool = False
    """Whether notifications may say what it is about."""
    endings: bool = False
    """Whether it wants ends of turns, too."""


def id_of(endpoint: str) -> str:
    return hashlib.sha256(endpoint.encode()).hexdigest()[:24]


class Subscriptions:
    """Every method raises StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, subscription: Subscription) -> None:
        """Add it, or replace what was known of the same endpoint."""
        after = msgspec.json.encode(subscription)
        while True:
            before = await self._store.shared_one(_KIND, subscription.id)
            if before == after:
                return
            if await self._store.share(_KIND, subscription.id, before, after):
                return

    async def list(self, server_key: str) -> Sequence[Subscription]:
        """Those that a server with this key can send to."""
        found = [_decode(body) for body in (await self._store.shared(_KIND)).values()]
        return [each for each in found if each.server_key == server_key]

    async def get(self, endpoint: str) -> Subscription | None:
        body = await self._store.shared_one(_KIND, id_of(endpoint))
        return None if body is None else _decode(body)

    async def remove(self, subscription_id: str) -> bool:
        """Whether there was one."""
        before = await self._store.shared_one(_KIND, subscription_id)
        return before is not None and await self._store.share(_KIND, subscription_id, before, None)

    async def remove_device(self, device: str) -> None:
        for body in (await self._store.shared(_KIND)).values():
            if (found := _decode(body)).device == device:
                await self.remove(found.id)


_decoder = msgspec.json.Decoder(Subscription)


def _decode(body: bytes) -> Subscription:
    return _decoder.decode(body)
