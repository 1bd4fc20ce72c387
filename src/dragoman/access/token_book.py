"""The access tokens of a store: made, paired, found, listed and revoked by any process of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from dragoman.access.access_tokens import (
    AccessToken,
    id_in,
    is_secret_of,
    name_in,
    new_id,
    new_secret,
)
from dragoman.errors import UnknownToken
from dragoman.store.base import Store

PAIRING_SECONDS = 600.0
"""How long the code of a pairing works."""
_REVOKED_SECONDS = 30 * 86400.0
"""How long a revoked token is still listed."""
_USE_SECONDS = 60.0
"""When a token was used is not noted more often."""
_KIND = "token"

_token = msgspec.json.Decoder(AccessToken)


class TokenBook:
    """Every method raises StoreError."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def pairing(self, name: str) -> tuple[AccessToken, str]:
        """Begin to pair a device: the record, and the code that the device exchanges, once, for a
        token of its own. Raises ValueError for an unusable name."""
        return await self._made(name, pairing=True, seconds=PAIRING_SECONDS)

    async def _made(self, name: str, *, pairing: bool, seconds: float) -> tuple[AccessToken, str]:
        token_id, now = new_id(), self._clock()
        text, digest = new_secret(token_id)
        token = AccessToken(
            id=token_id,
            name=name_in(name),
            digest=digest,
            created_at=now,
            expires_at=now + seconds,
            pairing=pairing,
        )
        await self._store.share(_KIND, token_id, None, _body(token), seconds=seconds)
        return token, text

    async def pair(self, token: AccessToken) -> tuple[AccessToken, str]:
        """Give the device that has the code of this pairing its token; the code is used up. Raises
        UnknownToken when it was used or revoked meanwhile."""
        text, digest = new_secret(token.id)
        paired = msgspec.structs.replace(
            token, digest=digest, pairing=False, expires_at=None, created_at=self._clock()
        )
        if not await self._store.share(_KIND, token.id, _body(token), _body(paired)):
            raise UnknownToken(token.id)
        return paired, text

    async def find(self, text: str) -> AccessToken | None:
        """The valid token that was presented, None for anything else. The store is asked each
        time, since any process may have revoked it."""
        token_id = id_in(text)
        token = None if token_id is None else await self.get(token_id)
        if token is None or not is_secret_of(text, token) or not token.is_valid(self._clock()):
            return None
        return await self._noted(token)

    async def _noted(self, token: AccessToken) -> AccessToken:
        """The token, with its use on record. It counts as used too when another process has just
        changed the record."""
        now = self._clock()
        if token.pairing or (token.used_at is not None and now - token.used_at < _USE_SECONDS):
            return token
        used = msgspec.structs.replace(token, used_at=now)
        seconds = self._left(used)
        await self._store.share(_KIND, token.id, _body(token), _body(used), seconds=seconds)
        return used

    async def get(self, token_id: str) -> AccessToken | None:
        body = await self._store.shared_one(_KIND, token_id)
        return None if body is None else _token.decode(body)

    async def list(self) -> list[AccessToken]:
        """Newest first; revoked ones for a month."""
        found = map(_token.decode, (await self._store.shared(_KIND)).values())
        return sorted(found, key=lambda token: token.created_at, reverse=True)

    async def invalid(self, token_ids: set[str]) -> set[str]:
        """Those of these that are no longer valid."""
        now = self._clock()
        return token_ids - {each.id for each in await self.list() if each.is_valid(now)}

    async def rename(self, token_id: str, name: str) -> AccessToken:
        """Raises UnknownToken, and ValueError for an unusable name."""
        fitting = name_in(name)
        return await self._change(
            token_id, lambda token: msgspec.structs.replace(token, name=fitting)
        )

    async def revoke(self, token_id: str) -> AccessToken:
        """Raises UnknownToken."""
        now = self._clock()
        return await self._change(
            token_id,
            lambda token: msgspec.structs.replace(token, revoked_at=token.revoked_at or now),
        )

    async def _change(
        self, token_id: str, change: Callable[[AccessToken], AccessToken]
    ) -> AccessToken:
        """Repeatedly, until no other process has changed it meanwhile."""
        while True:
            token = await self.get(token_id)
            if token is None:
                raise UnknownToken(token_id)
            changed = change(token)
            seconds = self._left(changed)
            if await self._store.share(
                _KIND, token_id, _body(token), _body(changed), seconds=seconds
            ):
                return changed

    def _left(self, token: AccessToken) -> float | None:
        """How long the store keeps it."""
        if token.revoked_at is not None:
            return _REVOKED_SECONDS
        return None if token.expires_at is None else max(token.expires_at - self._clock(), 0.0)


def _body(token: AccessToken) -> bytes:
    return msgspec.json.encode(token)
