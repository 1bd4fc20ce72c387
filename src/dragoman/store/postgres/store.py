"""The store in PostgreSQL: one connection writes, two read, one searches, one listens.

The neighbouring modules own the tables; this one puts them together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.data_directory import home_id
from dragoman.errors import StoreCrowded, StoreError
from dragoman.store import records as r
from dragoman.store.outage import Outage, Outbox, deliver_left
from dragoman.store.postgres import events, inbox, owners, sessions
from dragoman.store.postgres.database import Address, Database
from dragoman.store.postgres.events import HEAD, WantedEvents, further
from dragoman.store.postgres.link import READ_SECONDS, Link, limits, must_be_ours_alone
from dragoman.store.postgres.news import StoreNews, command_news, freed_news
from dragoman.store.postgres.rules import KeptRules
from dragoman.store.postgres.search import search, storable
from dragoman.store.postgres.tables import migrate
from dragoman.store.postgres.writer import StoreWriter
from dragoman.store.store_limits import StoreLimits

T = TypeVar("T")

CONNECTIONS = 5
"""What a host holds from its start to its end."""
_ROOM_PAUSES = (0.1, 0.3, 0.6)
"""Between tries to have them all: what was closed just now still counts for a moment."""
_NEVER = 2**62
"""No event has such a number; a cursor may have any."""
_AT_ONCE = 500
"""Readers whose reads are combined."""


class PostgresStore:
    """Made by `open_postgres`, for the loop that runs then; `db` is its first connection."""

    def __init__(self, address: Address, db: Database, outbox: Outbox, home: str) -> None:
        self._limits = address.limits
        self.outage = Outage(address.shown, "the database cannot be reached", limits=self._limits)
        self._writing = Link(address, self.outage, db)
        self._reading = Link(address, self.outage, reads_within=READ_SECONDS)
        self._following = Link(address, self.outage, reads_within=READ_SECONDS)
        self._searching = Link(address, self.outage, reads_within=self._limits.search_seconds)
        self._links = (self._writing, self._reading, self._following, self._searching)
        self._writer = StoreWriter(self._writing, self.outage, outbox)
        self._reader = _Reader(self._following)
        self._rules = KeptRules(self._reading, self._writer, self.outage, home)
        self._news = StoreNews(address, lambda pid: pid == self._writing.pid, self._rules.heard)
        self._writer.on_news = self._news.hear_own
        self._writer.on_back = self._renew_first
        self._clock = db.time, time.monotonic()
        """What the database's clock said last, and when that was by our watch."""
        self._renewed: tuple[r.Owner, float] | None = None
        self._outbox = outbox

    async def prepare(self) -> None:
        """Deliver what was left in the outbox, and finish what was cut short."""
        await self.deliver_left()
        if await self._writing.use(sessions.has_deleted):
            await self._purge()
        if await self._writing.use(owners.has_forgettable):
            await self._writer.write(owners.forget, is_long=True)
        if await self._writing.use(inbox.has_left):
            await self._writer.write(inbox.forget_left, is_long=True)
        await self._rules.begin()

    async def deliver_left(self) -> None:
        await deliver_left(self._outbox, self._writer.deliver)

    async def hold(self) -> None:
        """All connections of a host are opened before it is one: opened when first used, one host
        too many would start, and take from the others what they need."""
        for pause in _ROOM_PAUSES:
            with suppress(StoreCrowded):
                return await self._open_all()
            await asyncio.sleep(pause)
        try:
            await self._open_all()
        except StoreCrowded as error:
            had = sum(each.is_open for each in (*self._links, self._news))
            allowed = ", ".join(await self._writing.use(limits))
            reason = f"a host needs {CONNECTIONS} connections and gets {had}: {allowed}"
            raise StoreError(error.place, reason) from error

    async def _open_all(self) -> None:
        for each in (*self._links, self._news):
            await each.open()

    @property
    def rules(self) -> KeptRules:
        return self._rules

    @property
    def id(self) -> str:
        return self._outbox.store_id

    @property
    def is_local(self) -> bool:
        return False

    @property
    def away(self) -> str | None:
        return self.outage.told

    @property
    def holds_undelivered(self) -> bool:
        return self._outbox.holds_some

    def now(self) -> float:
        """Hosts' own clocks may be hours apart."""
        said, then = self._clock
        return said + time.monotonic() - then

    async def aclose(self) -> None:
        await self._writer.aclose()
        await self._news.aclose()
        await self._rules.aclose()
        for link in self._links:
            await link.aclose()

    # ── sessions ──────────────────────────────────────────────────────────────────────────────

    async def create_session(self, record: r.SessionRecord) -> None:
        await self._writer.write(sessions.create(self.outage.place, record))

    async def begin_session(
        self, record: r.SessionRecord, owner: r.Owner, *, seconds: float
    ) -> r.Lease:
        plan = owners.begin(self.outage.place, record, owner, seconds)
        return await self._writer.write(plan)

    async def session(self, session_id: str) -> r.SessionRecord | None:
        return await self._read(partial(sessions.read, session_id=session_id))

    async def sessions(self, wanted: r.SessionFilter) -> list[r.SessionRecord]:
        return await self._read(partial(sessions.listed, wanted=wanted))

    async def kin(self) -> list[r.Kin]:
        return await self._read(sessions.kin)

    async def size_of(self, session_id: str) -> int:
        return await self._searching.use(partial(sessions.size, session_id=session_id))

    async def change_session(self, session_id: str, change: r.SessionChange) -> r.SessionRecord:
        job = partial(sessions.change, session_id=session_id, changes=change)
        return await self._writer.write(job)

    async def delete_session(self, session_id: str, lease: r.Lease | None = None) -> None:
        """A long one is removed bit by bit, so that nobody else has to wait for it."""
        await self._writer.write(partial(owners.delete, session_id=session_id, lease=lease))
        await self._purge()

    async def reclaim(self) -> int:
        """The server does that by itself, and keeps the room for what comes."""
        return 0

    async def _purge(self) -> None:
        while await self._writer.write(sessions.purge, is_long=True):
            pass

    # ── events ────────────────────────────────────────────────────────────────────────────────

    async def append(self, lease: r.Lease, batch: r.Batch) -> int:
        return await self._writer.append(lease, batch)

    def has_kept(self, session_id: str, seq: int) -> bool:
        return self._writer.has_kept(session_id, seq)

    async def events(
        self, session_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[r.StoredEvent]:
        return await self._reader.read(WantedEvents(session_id, min(after, _NEVER), limit))

    async def all_events(self, *, after: int = 0, limit: int = 1000) -> list[r.StoredEvent]:
        return await self._read(partial(events.all_events, after=min(after, _NEVER), limit=limit))

    async def last_position(self) -> int:
        return await self._read(events.last_position)

    async def snapshot(self, session_id: str) -> r.Snapshot | None:
        return await self._read(partial(events.snapshot, session_id=session_id))

    async def save_snapshot(self, lease: r.Lease, snapshot: r.Snapshot) -> None:
        job = partial(events.save_snapshot, lease=lease, saved=snapshot)
        await self._writer.write(job, tells=None)

    async def copy_events(self, source: str, lease: r.Lease, upto: int | None = None) -> int:
        """A long one bit by bit, so that nobody else has to wait for it."""
        begin = partial(events.begin_copy, source=source, lease=lease, upto=upto)
        last = await self._writer.write(begin)
        job = partial(events.copy_some, source=source, lease=lease, last=last)
        while await self._writer.write(job, is_long=True):
            pass
        return await self._finish(lease, r.SessionChange())

    async def fill(
        self, lease: r.Lease, batches: Iterable[r.Batch], change: r.SessionChange
    ) -> int:
        for batch in batches:
            job = partial(events.add_hidden, lease=lease, batch=batch)
            await self._writer.write(job, tells=None, is_long=True)
        return await self._finish(lease, change)

    async def _finish(self, lease: r.Lease, change: r.SessionChange) -> int:
        return await self._writer.write(partial(events.finish, lease=lease, change=change))

    async def search(self, query: str, *, limit: int = 50) -> list[r.Hit]:
        """Nobody else waits for it."""
        return await self._searching.use(partial(search, text=query, limit=limit))

    # ── owners ────────────────────────────────────────────────────────────────────────────────

    async def acquire(
        self, session_id: str, owner: r.Owner, *, seconds: float, gone: r.HasEnded
    ) -> r.Lease:
        return await self._writer.write(owners.acquire(session_id, owner, seconds, gone))

    async def renew(self, owner: r.Owner, *, seconds: float) -> set[str]:
        self._renewed = owner, seconds
        held, now = await self._writer.write(owners.renew(owner, seconds), tells=None)
        self._clock = now, time.monotonic()
        return held

    async def _renew_first(self, db: Database) -> None:
        """An owner that was cut off for a while still has what nobody has taken."""
        if self._renewed is not None:
            await owners.renew_now(db, *self._renewed)

    async def release(self, lease: r.Lease) -> None:
        """The host that was called for it may take it now."""
        plan = owners.release(lease)
        await self._writer.write(plan, tells=freed_news(lease.session_id))

    async def owner(self, session_id: str) -> r.Owner | None:
        return await self._read(partial(owners.owner_of, session_id=session_id))

    async def owned(self) -> list[tuple[str, r.Owner]]:
        """Asked regularly by background work, which can wait; nothing else waits for it."""
        return await self._searching.use(owners.owned)

    async def standing(self, session_id: str) -> r.Standing:
        return await self._read(partial(_standing, session_id=session_id))

    async def overview(self, wanted: r.SessionFilter) -> r.Overview:
        return await self._read(partial(_overview, wanted=wanted))

    # ── commands ──────────────────────────────────────────────────────────────────────────────

    async def send(self, session_id: str, body: bytes, *, to: str | None = None) -> int:
        plan = inbox.send(session_id, body, to)
        return await self._writer.write(plan, tells=command_news(session_id))

    async def calls(self, host_id: str) -> list[r.StoredCommand]:
        return await self._read(partial(inbox.calls, host_id=host_id))

    async def take(
        self, leases: Sequence[r.Lease], *, hinted: bool = False
    ) -> list[r.StoredCommand]:
        if not hinted:
            leases = await self._read(partial(inbox.waiting_for, leases=leases))
        return (
            await self._writer.write(inbox.take(leases, self._limits), tells=None) if leases else []
        )

    async def withdraw(self, command_id: int) -> bool:
        return await self._writer.write(inbox.withdraw(command_id), tells=None)

    async def settle(self, command_id: int, body: bytes) -> None:
        """Report what was done even when the database is unavailable for long."""
        await self._writer.write(inbox.settle(command_id, body, self._limits), lasting=True)

    async def outcome(self, command_id: int) -> r.Outcome:
        return await self._read(partial(inbox.outcome, command_id=command_id))

    # ── hosts ─────────────────────────────────────────────────────────────────────────────────

    async def announce(self, host: r.HostRecord, *, seconds: float) -> None:
        await self._writer.write(owners.announce(host, seconds), tells=None)

    async def depart(self, host_id: str) -> None:
        await self._writer.write(owners.depart(host_id))

    async def hosts(self) -> list[r.HostRecord]:
        return await self._read(owners.hosts)

    # ── what processes share ──────────────────────────────────────────────────────────────────

    async def shared(self, kind: str) -> dict[str, bytes]:
        return await self._read(partial(inbox.shared, kind=kind))

    async def shared_one(self, kind: str, record_id: str) -> bytes | None:
        return await self._read(partial(inbox.shared_one, kind=kind, record_id=record_id))

    async def share(
        self,
        kind: str,
        record_id: str,
        before: bytes | None,
        after: bytes | None,
        *,
        seconds: float | None = None,
    ) -> bool:
        return await self._writer.write(inbox.share(kind, record_id, before, after, seconds))

    # ── news ──────────────────────────────────────────────────────────────────────────────────

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._news.subscribe(wake)

    def on_command(self, wake: Callable[[str | None], None]) -> Callable[[], None]:
        return self._news.subscribe_to_commands(wake)

    # ── and the rest ──────────────────────────────────────────────────────────────────────────

    async def _read(self, work: Callable[[Database], Awaitable[T]]) -> T:
        return await self._reading.use(work)


async def open_postgres(
    address: str, directory: Path, limits: StoreLimits | None = None
) -> PostgresStore:
    """`directory` is this host's own, for what happens while the database is away; its id is the
    home of the rules that are given here.

    Raises StoreError; StoreAway when the database cannot be reached.
    """
    where, home = Address(address, limits), home_id(directory)
    db = await Database.connect(where)
    try:
        if db.is_pooled:
            await must_be_ours_alone(db, where)
        store_id = await migrate(db)
    except BaseException:
        await db.close()
        raise
    store = PostgresStore(where, db, Outbox(directory, store_id), home)
    try:
        await store.prepare()
    except BaseException:
        await store.aclose()
        raise
    return store


_Asked = tuple[WantedEvents, asyncio.Future[list[r.StoredEvent]]]


class _Reader:
    """Combines reads on a connection of its own: one round trip serves all followers.

    A host may have a thousand of them, who are all woken when anything is new anywhere; most have
    nothing to read then, and one query finds that out.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: list[_Asked] = []
        self._task: asyncio.Task[None] | None = None

    async def read(self, wanted: WantedEvents) -> list[r.StoredEvent]:
        future: asyncio.Future[list[r.StoredEvent]] = asyncio.get_running_loop().create_future()
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
    found = dict(zip(sorted(fresh), await events.events(db, wanted), strict=True))
    for place, (_, future) in enumerate(rest):
        if not future.done():
            future.set_result(found.get(place, []))


async def _standing(db: Database, session_id: str) -> r.Standing:
    one = (storable(session_id),)
    async with db.together():
        records = await db.ask(sessions.READ, one)
        holders = await db.ask(owners.OWNER_OF, one)
        known = await db.ask(owners.HOSTS)
    found = owners.seen(await holders.fetchall())
    return r.Standing(
        sessions.first(await records.fetchall()),
        found[0][1] if found else None,
        owners.known(await known.fetchall()),
    )


async def _overview(db: Database, wanted: r.SessionFilter) -> r.Overview:
    """Raises UnknownSession for a cursor that is gone."""
    async with db.together():
        head = await db.ask(HEAD)
        listed = await db.ask(*sessions.list_query(wanted))
        holders = await db.ask(owners.OWNED)
        known = await db.ask(owners.HOSTS)
    [(position,)] = await head.fetchall()
    page = await sessions.page(db, wanted, await listed.fetchall())
    held = dict(owners.seen(await holders.fetchall()))
    return r.Overview(position, page, held, owners.known(await known.fetchall()))
