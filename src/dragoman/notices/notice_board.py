"""Tells people who are not looking: each notice once to each device, command and webhook.

Devices and the command are left in peace while someone looks at a window of the page. A webhook is
for programs, and hears everything it asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import msgspec

from dragoman.access.token_book import TokenBook
from dragoman.agents.settings.notice_settings import NO_NOTICES, NoticeSettings
from dragoman.errors import ConfigError, StoreError
from dragoman.hub.hub import Hub
from dragoman.notices.attention import Attention
from dragoman.notices.lookout import Lookout
from dragoman.notices.marks import Marks
from dragoman.notices.notice import Alert
from dragoman.notices.notify_program import ProgramAttempt
from dragoman.notices.push.devices import Devices
from dragoman.notices.retried_delivery import PAUSES, Attempt, delivered
from dragoman.notices.webhook import WebhookAttempt

logger = logging.getLogger("dragoman.notices")

_AT_ONCE = 16
"""Deliveries; the others wait for their turn."""
_GRACE_SECONDS = 3.0
"""For what is being delivered when the server ends."""
_AGAIN_SECONDS = 5.0
_REQUEST_SECONDS = 10.0


class Recipient(msgspec.Struct):
    """The recipient, and the way; `is_quiet` while someone looks."""

    name: str
    attempt: Attempt
    is_quiet: bool
    on_gone: Callable[[], object] | None = None


class Notices:
    """`start` begins, `aclose` ends. `settings` are read for each notice: they may change."""

    def __init__(
        self,
        hub: Hub,
        settings: Callable[[], NoticeSettings],
        directory: Path,
        *,
        pauses: tuple[float, ...] = PAUSES,
    ) -> None:
        self.attention = Attention()
        self.devices = Devices(hub.store, TokenBook(hub.store), directory, self.settings)
        self._hub = hub
        self._settings = settings
        self._pauses = pauses
        self._marks = Marks(hub.store, hub.owner)
        self._client: httpx.AsyncClient | None = None
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._following: asyncio.Task[None] | None = None
        self._deliveries: set[asyncio.Task[None]] = set()

    def settings(self) -> NoticeSettings:
        """None of them while they cannot be read, which is said where an agent is to be started."""
        with suppress(ConfigError):
            return self._settings()
        return NO_NOTICES

    def start(self) -> None:
        self._following = asyncio.create_task(self._follow())

    async def aclose(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        if self._deliveries:
            await asyncio.wait(self._deliveries, timeout=_GRACE_SECONDS)
        for task in self._deliveries:
            task.cancel()
        if self._deliveries:
            await asyncio.wait(self._deliveries)
        if self._client is not None:
            await self._client.aclose()

    async def _follow(self) -> None:
        """Again after what the store could not do: what was sent has its mark."""
        while True:
            try:
                async for notices in Lookout(self._hub).notices():
                    for notice in notices:
                        await self._tell(notice)
            except StoreError as error:
                logger.warning("notices wait for the store: %s", error)
            except Exception:
                logger.exception("a notice could not be sent")
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _tell(self, notice: Alert) -> None:
        for target in await self._targets(notice):
            key = f"{notice.key}:{target.name}"
            if target.is_quiet and self.attention.is_there:
                await self._marks.need_not_be_told(key)
            elif await self._marks.begin(key):
                task = asyncio.create_task(self._deliver(key, target))
                self._deliveries.add(task)
                task.add_done_callback(self._deliveries.discard)

    async def _targets(self, notice: Alert) -> Sequence[Recipient]:
        settings, found = self.settings(), list[Recipient]()
        client = self._opened_client()
        for to in await self.devices.wanting(notice):
            attempt = self.devices.attempt(client, to, notice)
            gone = self.devices.forgetting(to)
            found.append(Recipient(f"push:{to.id}", attempt, is_quiet=True, on_gone=gone))
        if settings.command:
            found.append(
                Recipient("command", ProgramAttempt(settings.command, notice), is_quiet=True)
            )
        if settings.webhook is not None and notice.kind in settings.webhook.events:
            attempt = WebhookAttempt(client, settings.webhook, notice)
            found.append(Recipient("webhook", attempt, is_quiet=False))
        return found

    async def _deliver(self, key: str, target: Recipient) -> None:
        try:
            async with self._room:
                outcome = await delivered(target.attempt, self._pauses)
        except asyncio.CancelledError:
            with suppress(StoreError):
                await self._marks.take_back(key)
            raise
        if outcome.what == "gone" and target.on_gone is not None:
            target.on_gone()
        elif outcome.what != "done":
            name = target.name.partition(":")[0]
            logger.warning("a notice was not delivered (%s): %s", name, outcome.why)
        with suppress(StoreError):
            await self._marks.told(key)

    def _opened_client(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=_REQUEST_SECONDS, follow_redirects=False)
        return self._client
