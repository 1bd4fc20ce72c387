"""The devices that are pushed to: what a browser needs to subscribe, and who wants a notice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import msgspec

from dragoman.access.token_book import TokenBook
from dragoman.agents.settings.notice_settings import NoticeSettings
from dragoman.errors import StoreError, Unsupported
from dragoman.notices.notice import Alert
from dragoman.notices.push.subscriptions import Subscription, Subscriptions, id_of
from dragoman.notices.retried_delivery import Attempt
from dragoman.store.base import Store

if TYPE_CHECKING:  # they need the extra `push`
    from dragoman.notices.push.server_key import ServerKey

logger = logging.getLogger("dragoman.notices")

MISSING = "push notifications; install dragoman[push] (the package cryptography) for them"
_MOST = 200
"""Subscriptions of one server."""


class Devices:
    def __init__(
        self,
        store: Store,
        tokens: TokenBook,
        directory: Path,
        settings: Callable[[], NoticeSettings],
    ) -> None:
        self.subscriptions = Subscriptions(store)
        self._tokens = tokens
        self._directory = directory
        self._settings = settings
        self._key: ServerKey | None = None
        self._forgetting: set[asyncio.Task[bool]] = set()

    @property
    def is_available(self) -> bool:
        """Whether the extra `push` is installed."""
        return find_spec("cryptography") is not None

    async def key(self) -> ServerKey:
        """Raises Unsupported without the extra `push`, and ConfigError when it is unusable."""
        if not self.is_available:
            raise Unsupported(MISSING)
        if self._key is None:
            from dragoman.notices.push.server_key import server_key

            self._key = await asyncio.to_thread(server_key, self._directory)
        return self._key

    async def subscribe(self, wanted: Subscription) -> Subscription:
        """Raises ValueError for an endpoint of an unknown service, keys that no browser has, and
        when there are too many."""
        from dragoman.notices.push.message_encryption import checked_keys, from_base64
        from dragoman.notices.push.push_service import is_allowed

        if not is_allowed(wanted.endpoint, self._settings().services):
            raise ValueError(
                "the endpoint is not one of a known push service; `push.services` in the settings "
                "adds one"
            )
        checked_keys(from_base64(wanted.key), from_base64(wanted.secret))
        key = (await self.key()).public
        others = await self.subscriptions.list(key)
        if len(others) >= _MOST and wanted.id not in {each.id for each in others}:
            raise ValueError(f"there are {_MOST} subscriptions already")
        subscription = msgspec.structs.replace(
            wanted, id=id_of(wanted.endpoint), server_key=key, created_at=time.time()
        )
        await self.subscriptions.put(subscription)
        return subscription

    async def wanting(self, notice: Alert) -> Sequence[Subscription]:
        """The browsers that want it; those of revoked devices are forgotten."""
        if not self.is_available:
            return ()
        found = await self.subscriptions.list((await self.key()).public)
        wanted = [each for each in found if notice.kind == "question" or each.endings]
        invalid = await self._tokens.invalid({each.device for each in wanted if each.device})
        for each in wanted:
            if each.device in invalid:
                await self.subscriptions.remove(each.id)
        return [each for each in wanted if each.device not in invalid]

    def attempt(self, client: httpx.AsyncClient, to: Subscription, notice: Alert) -> Attempt:
        from dragoman.notices.push.push_service import CONTACT, PushAttempt

        assert self._key is not None  # `wanting` has read it
        contact = self._settings().contact or CONTACT
        message = notice.push(content=to.content)
        return PushAttempt(client, self._key, contact, to, message, notice.key)

    def forgetting(self, to: Subscription) -> Callable[[], None]:
        """For a subscription that its service no longer knows."""

        def forget() -> None:
            task = asyncio.create_task(self._forgotten(to.id))
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)

        return forget

    async def _forgotten(self, subscription_id: str) -> bool:
        try:
            return await self.subscriptions.remove(subscription_id)
        except StoreError as error:
            logger.warning("a subscription that ended could not be forgotten: %s", error)
            return False
