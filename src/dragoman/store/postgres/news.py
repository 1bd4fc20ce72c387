"""Wakes whoever wants to know when something may be new: by the database's own notifications.

Those are hints; every few seconds everybody is woken without one, whether or not there is a
connection to hear them on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import psycopg

from dragoman.errors import StoreError
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.database import CHANNEL, Database
from dragoman.store.postgres.failures import lost

POLL_SECONDS = 5.0
RULES = "rules"
"""What a notification says when rules have changed; for all else it says nothing."""
_TOGETHER_SECONDS = 0.005
"""Notifications that come so close to each other wake once."""
_LONGEST_PAUSE = 2.0


class News:
    """`is_own` tells by the server's process whether we wrote it ourselves. `heard_of_rules` is
    called when rules may have changed."""

    def __init__(
        self,
        address: Address,
        is_own: Callable[[int], bool],
        heard_of_rules: Callable[[], None],
    ) -> None:
        self._address = address
        self._is_own = is_own
        self._heard_of_rules = heard_of_rules
        self._db: Database | None = None
        self._connecting = asyncio.Lock()
        self._wakes: dict[object, Callable[[], None]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._soon: asyncio.TimerHandle | None = None

    async def open(self) -> Database:
        """Have the connection now, not some time after the first has subscribed. Raises
        StoreError."""
        async with self._connecting:
            if self._db is None:
                self._db = await Database.connect(self._address)
            return self._db

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._wakes[token] = wake
        if not self._tasks:
            self._tasks = [asyncio.create_task(each) for each in (self._listen(), self._poll())]

        def end() -> None:
            self._wakes.pop(token, None)

        return end

    def tell(self) -> None:
        self._soon = None
        for wake in list(self._wakes.values()):
            wake()

    async def aclose(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._db is not None:
            await self._db.close()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            self.tell()

    async def _listen(self) -> None:
        pause = 0.1
        while True:
            with suppress(StoreError):
                db = await self.open()
                try:
                    pause = 0.1
                    await self._hear(db)
                finally:
                    self._db = None
                    await db.close()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _hear(self, db: Database) -> None:
        """Until the connection is lost. Raises StoreError."""
        await db.run(f"LISTEN {CHANNEL}")
        # What was written before nobody told us.
        self._heard_of_rules()
        self.tell()
        while True:
            await self._hear_for_a_while(db)
            with db.within(POLL_SECONDS):
                await db.run("SELECT 1")

    async def _hear_for_a_while(self, db: Database) -> None:
        try:
            async for notice in db.connection.notifies(timeout=POLL_SECONDS):
                if notice.payload == RULES:
                    self._heard_of_rules()
                if self._soon is None and not self._is_own(notice.pid):
                    loop = asyncio.get_running_loop()
                    self._soon = loop.call_later(_TOGETHER_SECONDS, self.tell)
        except psycopg.Error as error:
            raise lost(db.place, error) from error
