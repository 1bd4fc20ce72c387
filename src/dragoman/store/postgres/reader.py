"""Combines reads: one round trip serves all followers, or a list with its owners.

A host may have a thousand readers, who are all woken when anything is new anywhere; most of them
have nothing to read then, and one query finds that out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import copy
from functools import partial

from dragoman.store.postgres import owners, sessions
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.events import HEAD, WantedEvents, events, further
from dragoman.store.postgres.link import Link
from dragoman.store.postgres.search import storable
from dragoman.store.records import Overview, SessionFilter, Standing, StoredEvent

_AT_ONCE = 500

_Asked = tuple[WantedEvents, asyncio.Future[list[StoredEvent]]]


class Reader:
    """Reads on a separate connection, so that no read waits for a search."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: list[_Asked] = []
        self._task: asyncio.Task[None] | None = None

    async def read(self, wanted: WantedEvents) -> list[StoredEvent]:
        future: asyncio.Future[list[StoredEvent]] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                await self._read(some)
        finally:
            self._task = None

    async def _read(self, some: Sequence[_Asked]) -> None:
        try:
            await self._link.use(partial(_answer, some))
        except Exception as error:
            for _, future in some:
                if not future.done():
                    future.set_exception(copy(error))


async def _answer(some: Sequence[_Asked], db: Database) -> None:
    rest = [(wanted, future) for wanted, future in some if not future.done()]
    fresh = (
        await further(db, [wanted for wanted, _ in rest])
        if len(rest) > 1
        else set(range(len(rest)))
    )
    wanted = [each for place, (each, _) in enumerate(rest) if place in fresh]
    found = dict(zip(sorted(fresh), await events(db, wanted), strict=True))
    for place, (_, future) in enumerate(rest):
        if not future.done():
            future.set_result(found.get(place, []))


async def standing(db: Database, session_id: str) -> Standing:
    one = (storable(session_id),)
    async with db.together():
        records = await db.ask(sessions.READ, one)
        holders = await db.ask(owners.OWNER_OF, one)
        known = await db.ask(owners.HOSTS)
    found = owners.seen(await holders.fetchall())
    return Standing(
        sessions.first(await records.fetchall()),
        found[0][1] if found else None,
        owners.known(await known.fetchall()),
    )


async def overview(db: Database, wanted: SessionFilter) -> Overview:
    """Raises UnknownSession for a cursor that is gone."""
    async with db.together():
        head = await db.ask(HEAD)
        listed = await db.ask(*sessions.list_query(wanted))
        holders = await db.ask(owners.OWNED)
        known = await db.ask(owners.HOSTS)
    [(position,)] = await head.fetchall()
    page = await sessions.page(db, wanted, await listed.fetchall())
    held = dict(owners.seen(await holders.fetchall()))
    return Overview(position, page, held, owners.known(await known.fetchall()))
