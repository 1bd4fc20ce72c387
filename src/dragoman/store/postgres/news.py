"""Wakes waiters when there may be something new, using the database's notifications.

Notifications are hints: every few seconds all waiters are woken anyway, with or without a
connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psycopg

from dragoman.errors import StoreError
from dragoman.store.postgres.database import CHANNEL, Address, Database, lost

RULES = "rules"
"""What a notification says when rules have changed; when there are events it says nothing."""
_COMMANDS, _FREED = "commands ", "freed "
"""What it begins with when something has arrived for a session, whose id follows, or when the host
that was called for that session may take it now."""
_TOGETHER_SECONDS = 0.005
"""Notifications that come so close to each other wake once."""
_LONGEST_PAUSE = 2.0

T = TypeVar("T")


def command_news(session_id: str) -> str:
    return f"{_COMMANDS}{session_id}"


def freed_news(session_id: str) -> str:
    return f"{_FREED}{session_id}"


class StoreNews:
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
        self._callees: dict[object, Callable[[str | None], None]] = {}
        self._told: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._soon: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self._db is not None

    async def open(self) -> Database:
        """Have the connection now, not some time after the first has subscribed. Raises
        StoreError."""
        async with self._connecting:
            if self._db is None:
                self._db = await Database.connect(self._address)
            return self._db

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._added(self._wakes, wake)

    def subscribe_to_commands(self, wake: Callable[[str | None], None]) -> Callable[[], None]:
        """With the session for which something may have come, or None when it may be any."""
        return self._added(self._callees, wake)

    def _added(self, wakes: dict[object, T], wake: T) -> Callable[[], None]:
        token = object()
        wakes[token] = wake
        if not self._tasks:
            self._tasks = [asyncio.create_task(each) for each in (self._listen(), self._poll())]

        def end() -> None:
            wakes.pop(token, None)

        return end

    def tell(self) -> None:
        """Everyone, of anything."""
        self._wake_readers()
        self._wake_callees(None)

    def hear(self, told: set[str]) -> None:
        """What notifications said."""
        named = {each for each in told if each.startswith((_COMMANDS, _FREED))}
        if named != told:
            self._wake_readers()
        self._wake_callees(*(each.partition(" ")[2] for each in named))

    def hear_own(self, told: set[str]) -> None:
        """The same of what we wrote ourselves: what we send is for others."""
        self.hear({each for each in told if not each.startswith(_COMMANDS)})

    def _wake_readers(self) -> None:
        for wake in list(self._wakes.values()):
            wake()

    def _wake_callees(self, *sessions: str | None) -> None:
        for called in list(self._callees.values()):
            for session_id in sessions:
                called(session_id)

    def _hear_all(self) -> None:
        self._soon, told = None, self._told
        self._told = set()
        self.hear(told)

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
            await asyncio.sleep(self._address.limits.news_seconds)
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
            with db.within(self._address.limits.news_seconds):
                await db.run("SELECT 1")

    async def _hear_for_a_while(self, db: Database) -> None:
        try:
            async for notice in db.connection.notifies(timeout=self._address.limits.news_seconds):
                if notice.payload == RULES:
                    self._heard_of_rules()
                if self._is_own(notice.pid):
                    continue
                self._told.add(notice.payload)
                if self._soon is None:
                    loop = asyncio.get_running_loop()
                    self._soon = loop.call_later(_TOGETHER_SECONDS, self._hear_all)
        except psycopg.Error as error:
            raise lost(db.place, error) from error
