"""The store in PostgreSQL: one connection writes, two read, one searches, one listens.

What is in the tables is the business of the modules beside this one; here they are put together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.errors import StoreError
from dragoman.store.outage import Outage
from dragoman.store.outbox import Outbox, deliver_left
from dragoman.store.postgres import events, hosts, inbox, looks, owners, sessions
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.connections import limits, must_be_ours_alone
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.events import Wanted
from dragoman.store.postgres.failures import NoRoom
from dragoman.store.postgres.kept_rules import KeptRules
from dragoman.store.postgres.link import READ_SECONDS, Link
from dragoman.store.postgres.news import News
from dragoman.store.postgres.reader import Reader
from dragoman.store.postgres.search import search
from dragoman.store.postgres.tables import migrate
from dragoman.store.postgres.writer import Writer
from dragoman.store.records import (
    Batch,
    Command,
    Hit,
    HostRecord,
    Lease,
    Outcome,
    Overview,
    Owner,
    SessionChange,
    SessionFilter,
    SessionRecord,
    Snapshot,
    Standing,
    StoredEvent,
)

T = TypeVar("T")

CONNECTIONS = 5
"""What a host holds from its start to its end."""
SEARCH_SECONDS = 5.0
"""After that long a search is given up: it takes the database's time from all others."""
_NEVER = 2**62
"""No event has such a number; a cursor may have any."""


class PostgresStore:
    """Made by `open_postgres`, for the loop that runs then; `db` is its first connection."""

    def __init__(self, address: Address, db: Database, outbox: Outbox) -> None:
        self.outage = Outage(address.shown, "the database cannot be reached")
        self._writing = Link(address, self.outage, db)
        self._reading = Link(address, self.outage, reads_within=READ_SECONDS)
        self._following = Link(address, self.outage, reads_within=READ_SECONDS)
        self._searching = Link(address, self.outage, reads_within=SEARCH_SECONDS)
        self._writer = Writer(self._writing, self.outage, outbox)
        self._reader = Reader(self._following)
        self._rules = KeptRules(self._reading, self._writer, self.outage)
        self._news = News(address, lambda pid: pid == self._writing.pid, self._rules.heard)
        self._writer.on_news = self._news.tell
        self._writer.on_back = self._renew_first
        self._renewed: tuple[Owner, float] | None = None
        self._outbox = outbox

    async def prepare(self) -> None:
        """Deliver what was left in the outbox, and finish what was cut short."""
        await deliver_left(self._outbox, self._writer.deliver)
        if await self._writing.use(sessions.has_deleted):
            await self._purge()
        if await self._writing.use(owners.has_forgettable):
            await self._writer.write(owners.forget, is_long=True)
        if await self._writing.use(inbox.has_left):
            await self._writer.write(inbox.forget_left, is_long=True)
        await self._rules.begin()

    async def hold(self) -> None:
        """All connections of a host are opened before it is one: opened when first used, one host
        too many would start, and take from the others what they need."""
        had = 1
        try:
            for each in (self._news, self._reading, self._following, self._searching):
                await each.open()
                had += 1
        except NoRoom as error:
            allowed = ", ".join(await self._writing.use(limits))
            reason = f"a host needs {CONNECTIONS} connections and gets {had}: {allowed}"
            raise StoreError(error.place, reason) from error

    @property
    def rules(self) -> KeptRules:
        return self._rules

    @property
    def is_local(self) -> bool:
        return False

    @property
    def away(self) -> str | None:
        return self.outage.told

    @property
    def holds_undelivered(self) -> bool:
        return self._outbox.holds_some

    async def aclose(self) -> None:
        await self._writer.aclose()
        await self._news.aclose()
        await self._rules.aclose()
        for link in (self._writing, self._reading, self._following, self._searching):
            await link.aclose()

    # ── sessions ──────────────────────────────────────────────────────────────────────────────

    async def create_session(self, record: SessionRecord) -> None:
        await self._writer.write(partial(sessions.create, record=record))

    async def session(self, session_id: str) -> SessionRecord | None:
        return await self._read(partial(sessions.read, session_id=session_id))

    async def sessions(self, wanted: SessionFilter) -> list[SessionRecord]:
        return await self._read(partial(sessions.listed, wanted=wanted))

    async def change_session(self, session_id: str, change: SessionChange) -> SessionRecord:
        job = partial(sessions.change, session_id=session_id, changes=change)
        return await self._writer.write(job)

    async def delete_session(self, session_id: str, lease: Lease | None = None) -> None:
        """A long one is removed bit by bit, so that nobody else has to wait for it."""
        await self._writer.write(partial(owners.delete, session_id=session_id, lease=lease))
        await self._purge()

    async def _purge(self) -> None:
        while await self._writer.write(sessions.purge, is_long=True):
            pass

    # ── events ────────────────────────────────────────────────────────────────────────────────

    async def append(self, lease: Lease, batch: Batch) -> int:
        return await self._writer.append(lease, batch)

    def has_kept(self, session_id: str, seq: int) -> bool:
        return self._writer.has_kept(session_id, seq)

    async def events(
        self, session_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[StoredEvent]:
        return await self._reader.read(Wanted(session_id, min(after, _NEVER), limit))

    async def all_events(self, *, after: int = 0, limit: int = 1000) -> list[StoredEvent]:
        return await self._read(partial(events.all_events, after=min(after, _NEVER), limit=limit))

    async def last_position(self) -> int:
        return await self._read(events.last_position)

    async def snapshot(self, session_id: str) -> Snapshot | None:
        return await self._read(partial(events.snapshot, session_id=session_id))

    async def save_snapshot(self, lease: Lease, snapshot: Snapshot) -> None:
        await self._writer.write(partial(events.save_snapshot, lease=lease, saved=snapshot))

    async def copy_events(self, source: str, lease: Lease) -> int:
        """A long one bit by bit, so that nobody else has to wait for it."""
        last = await self._writer.write(partial(events.begin_copy, source=source, lease=lease))
        job = partial(events.copy_some, source=source, lease=lease, last=last)
        while await self._writer.write(job, is_long=True):
            pass
        return last

    async def search(self, query: str, *, limit: int = 50) -> list[Hit]:
        """Nobody else waits for it."""
        return await self._searching.use(partial(search, text=query, limit=limit))

    # ── owners ────────────────────────────────────────────────────────────────────────────────

    async def acquire(
        self, session_id: str, owner: Owner, *, seconds: float, gone: Callable[[Owner], bool | None]
    ) -> Lease:
        job = partial(
            owners.acquire, session_id=session_id, owner=owner, seconds=seconds, gone=gone
        )
        return await self._writer.write(job)

    async def renew(self, owner: Owner, *, seconds: float) -> set[str]:
        self._renewed = owner, seconds
        return await self._writer.write(partial(owners.renew, owner=owner, seconds=seconds))

    async def _renew_first(self, db: Database) -> None:
        """An owner that was cut off for a while still has what nobody has taken."""
        if self._renewed is not None:
            await owners.renew(db, *self._renewed)

    async def release(self, lease: Lease) -> None:
        await self._writer.write(partial(owners.release, lease=lease))

    async def owner(self, session_id: str) -> Owner | None:
        return await self._read(partial(owners.owner_of, session_id=session_id))

    async def owned(self) -> list[tuple[str, Owner]]:
        return await self._read(owners.owned)

    async def standing(self, session_id: str) -> Standing:
        return await self._read(partial(looks.standing, session_id=session_id))

    async def overview(self, wanted: SessionFilter) -> Overview:
        return await self._read(partial(looks.overview, wanted=wanted))

    # ── commands ──────────────────────────────────────────────────────────────────────────────

    async def send(self, session_id: str, body: bytes, *, to: str | None = None) -> int:
        job = partial(inbox.send, session_id=session_id, body=body, host_id=to)
        return await self._writer.write(job)

    async def calls(self, host_id: str) -> list[Command]:
        return await self._read(partial(inbox.calls, host_id=host_id))

    async def take(self, leases: Sequence[Lease]) -> list[Command]:
        wanted = await self._read(partial(inbox.waiting_for, leases=leases))
        return await self._writer.write(partial(inbox.take, leases=wanted)) if wanted else []

    async def withdraw(self, command_id: int) -> bool:
        return await self._writer.write(partial(inbox.withdraw, command_id=command_id))

    async def settle(self, command_id: int, body: bytes) -> None:
        """What was done was done: that is told even when the database is away for long."""
        job = partial(inbox.settle, command_id=command_id, body=body)
        await self._writer.write(job, lasting=True)

    async def outcome(self, command_id: int) -> Outcome:
        return await self._read(partial(inbox.outcome, command_id=command_id))

    # ── hosts ─────────────────────────────────────────────────────────────────────────────────

    async def announce(self, host: HostRecord, *, seconds: float) -> None:
        await self._writer.write(partial(hosts.announce, host=host, seconds=seconds))

    async def depart(self, host_id: str) -> None:
        await self._writer.write(partial(hosts.depart, host_id=host_id))

    async def hosts(self) -> list[HostRecord]:
        return await self._read(hosts.hosts)

    # ── news ──────────────────────────────────────────────────────────────────────────────────

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._news.subscribe(wake)

    # ── and the rest ──────────────────────────────────────────────────────────────────────────

    async def _read(self, work: Callable[[Database], Awaitable[T]]) -> T:
        return await self._reading.use(work)


async def open_postgres(address: str, directory: Path) -> PostgresStore:
    """`directory` is this host's own, for what happens while the database is away.

    Raises StoreError; StoreAway when the database cannot be reached.
    """
    where = Address(address)
    db = await Database.connect(where)
    try:
        if db.is_pooled:
            await must_be_ours_alone(db, where)
        store_id = await migrate(db)
    except BaseException:
        await db.close()
        raise
    store = PostgresStore(where, db, Outbox(directory, store_id))
    try:
        await store.prepare()
    except BaseException:
        await store.aclose()
        raise
    return store
