"""The store in SQLite: one thread writes, one reads, and the JSONL mirror follows.

The neighbouring modules own the tables; this one puts them together.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from dragoman.errors import StoreError
from dragoman.store import records as r
from dragoman.store.outage import Outbox, deliver_left
from dragoman.store.sqlite import events, inbox, owners, sessions
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.events import last_position
from dragoman.store.sqlite.mirror import Mirror
from dragoman.store.sqlite.rules import SqliteRules
from dragoman.store.sqlite.search import forget_words, search
from dragoman.store.sqlite.writer import Append, StoreWriter, WriteJob
from dragoman.store.store_limits import StoreLimits

T = TypeVar("T")

STORE_ID = "sqlite"
"""A data directory has one."""
_LONGEST_PAUSE = 0.1
_TIDY_STEPS = 100
"""A very large index is not rewritten as a whole for one deletion; the next continues there."""


class SqliteStore:
    """Made by `open_store`, for the loop that runs then; `path` None is in memory."""

    def __init__(
        self,
        db: Database,
        path: str | None,
        rules: SqliteRules,
        mirror: Mirror | None,
        outbox: Outbox | None = None,
    ) -> None:
        self.id = os.urandom(8).hex() if path is None else STORE_ID
        self._rules = rules
        self._mirror = mirror
        self._outbox = outbox
        self._writer = StoreWriter(db, outbox)
        self._news = StoreNews(self._writer)
        self._reading = _Reading(path, db.limits) if path is not None else None

    @property
    def rules(self) -> SqliteRules:
        return self._rules

    @property
    def is_local(self) -> bool:
        return True

    @property
    def holds_undelivered(self) -> bool:
        return self._outbox is not None and self._outbox.holds_some

    @property
    def away(self) -> str | None:
        return self._writer.outage.told

    async def deliver_left(self) -> None:
        """What a process left in the outbox that is gone."""
        if self._outbox is not None:
            await deliver_left(self._outbox, self._writer.deliver)

    def now(self) -> float:
        return time.time()

    async def aclose(self) -> None:
        await self._writer.aclose()
        await asyncio.to_thread(self._close_rest)

    async def hold(self) -> None:
        """A file has room for everyone."""

    def _close_rest(self) -> None:
        if self._mirror is not None:
            self._mirror.close()
        if self._reading is not None:
            self._reading.close()
        self._rules.close()

    # ── sessions ──────────────────────────────────────────────────────────────────────────────

    async def create_session(self, record: r.SessionRecord) -> None:
        job = partial(sessions.create, record=record)
        await self._write(job, after=self._mirrored(Mirror.touch, record.id))

    async def begin_session(
        self, record: r.SessionRecord, owner: r.Owner, *, seconds: float
    ) -> r.Lease:
        def begin(db: Database) -> r.Lease:
            sessions.create(db, record)
            return owners.acquire(db, record.id, owner, seconds, gone=lambda _: None)

        return await self._write(begin, after=self._mirrored(Mirror.touch, record.id))

    async def session(self, session_id: str) -> r.SessionRecord | None:
        return await self._read(lambda db: sessions.read(db, session_id))

    async def sessions(self, wanted: r.SessionFilter) -> list[r.SessionRecord]:
        return await self._read(lambda db: sessions.listed(db, wanted))

    async def kin(self) -> list[r.Kin]:
        return await self._read(sessions.kin)

    async def size_of(self, session_id: str) -> int:
        return await self._read(lambda db: sessions.size(db, session_id))

    async def change_session(self, session_id: str, change: r.SessionChange) -> r.SessionRecord:
        job = partial(sessions.change, session_id=session_id, changes=change)
        return await self._write(job, after=self._mirrored(Mirror.touch, session_id))

    async def delete_session(self, session_id: str, lease: r.Lease | None = None) -> None:
        """A long one is removed bit by bit, so that nobody else has to wait for it."""
        removed = self._mirrored(Mirror.remove, session_id)
        try:
            await self._write(lambda db: self._delete(db, session_id, lease), after=removed)
        except StoreError:
            if self._mirror is not None:
                self._mirror.touch(session_id)
            raise
        await self.purge()

    async def purge(self) -> None:
        """Remove what is left of deleted sessions, also of those whose deletion was cut short."""
        await self._in_portions(sessions.purge)
        has_more = await self._write(lambda db: forget_words(db, restart=True))
        for _ in range(_TIDY_STEPS):
            if not has_more:
                break
            has_more = await self._write(lambda db: forget_words(db, restart=False))
        await self._write(lambda db: None, wipes=True)

    async def reclaim(self) -> int:
        freed = 0
        while some := await self._write(Database.give_back):
            freed += some
        return freed

    def _delete(self, db: Database, session_id: str, lease: r.Lease | None) -> None:
        owners.delete(db, session_id, lease)
        if self._mirror is not None:
            # Before the commit: a crash may leave rows without a mirror, never the reverse.
            self._mirror.unlink(session_id)

    # ── events ────────────────────────────────────────────────────────────────────────────────

    async def append(self, lease: r.Lease, batch: r.Batch) -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        touch = None if self._mirror is None else self._mirror.touch
        touched = None if touch is None else partial(touch, lease.session_id, batch)
        self._writer.submit(Append(lease, batch, future, touched))
        return await future

    def has_kept(self, session_id: str, seq: int) -> bool:
        return self._writer.has_kept(session_id, seq)

    async def events(
        self, session_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[r.StoredEvent]:
        return await self._read(lambda db: events.events(db, session_id, after, limit))

    async def all_events(self, *, after: int = 0, limit: int = 1000) -> list[r.StoredEvent]:
        return await self._read(lambda db: events.all_events(db, after, limit))

    async def last_position(self) -> int:
        return await self._read(last_position)

    async def snapshot(self, session_id: str) -> r.Snapshot | None:
        return await self._read(lambda db: events.snapshot(db, session_id))

    async def save_snapshot(self, lease: r.Lease, snapshot: r.Snapshot) -> None:
        await self._write(lambda db: events.save_snapshot(db, lease, snapshot))

    async def copy_events(self, source: str, lease: r.Lease, upto: int | None = None) -> int:
        """Bit by bit, so that nobody else has to wait for it."""
        begin = partial(events.begin_copy, source=source, lease=lease, upto=upto)
        last = await self._write(begin)
        copy = {"source": source, "lease": lease, "last": last}
        await self._in_portions(partial(events.copy_some, **copy))
        said = await self._write(partial(events.last_said, **copy))
        while said is not None:
            said = await self._in_turn(partial(events.copy_said, **copy, after=said))
        return await self._finish(lease, r.SessionChange())

    async def fill(
        self, lease: r.Lease, batches: Iterable[r.Batch], change: r.SessionChange
    ) -> int:
        for batch in batches:
            await self._in_turn(partial(events.add_hidden, lease=lease, batch=batch))
        return await self._finish(lease, change)

    async def _finish(self, lease: r.Lease, change: r.SessionChange) -> int:
        job = partial(events.finish, lease=lease, change=change)
        return await self._write(job, after=self._mirrored(Mirror.touch, lease.session_id))

    async def search(self, query: str, *, limit: int = 50) -> list[r.Hit]:
        return await self._read(lambda db: search(db, query, limit))

    # ── owners ────────────────────────────────────────────────────────────────────────────────

    async def acquire(
        self, session_id: str, owner: r.Owner, *, seconds: float, gone: r.HasEnded
    ) -> r.Lease:
        """`gone` is asked in the thread that writes."""
        job = partial(
            owners.acquire, session_id=session_id, owner=owner, seconds=seconds, gone=gone
        )
        return await self._write(job, after=self._mirrored(Mirror.check, session_id))

    async def renew(self, owner: r.Owner, *, seconds: float) -> set[str]:
        return await self._write(lambda db: owners.renew(db, owner, seconds))

    async def release(self, lease: r.Lease) -> None:
        await self._write(lambda db: owners.release(db, lease))

    async def owner(self, session_id: str) -> r.Owner | None:
        return await self._read(lambda db: owners.owner_of(db, session_id))

    async def owned(self) -> list[tuple[str, r.Owner]]:
        return await self._read(owners.owned)

    async def standing(self, session_id: str) -> r.Standing:
        def look(db: Database) -> r.Standing:
            record, owner = sessions.read(db, session_id), owners.owner_of(db, session_id)
            return r.Standing(record, owner, owners.hosts(db))

        return await self._read(look)

    async def overview(self, wanted: r.SessionFilter) -> r.Overview:
        def look(db: Database) -> r.Overview:
            position, found = last_position(db), sessions.listed(db, wanted)
            return r.Overview(position, found, dict(owners.owned(db)), owners.hosts(db))

        return await self._read(look)

    # ── commands ──────────────────────────────────────────────────────────────────────────────

    async def send(self, session_id: str, body: bytes, *, to: str | None = None) -> int:
        return await self._write(lambda db: inbox.send(db, session_id, body, to))

    async def calls(self, host_id: str) -> list[r.StoredCommand]:
        return await self._read(lambda db: inbox.calls(db, host_id))

    async def take(
        self, leases: Sequence[r.Lease], *, hinted: bool = False
    ) -> list[r.StoredCommand]:
        wanted = await self._read(lambda db: inbox.waiting_for(db, leases))
        return await self._write(lambda db: inbox.take(db, wanted), wipes=True) if wanted else []

    async def forget_left(self) -> None:
        """The commands of owners that ended before they had settled them."""
        await self._write(inbox.forget_left, wipes=True)

    async def withdraw(self, command_id: int) -> bool:
        return await self._write(lambda db: inbox.withdraw(db, command_id), wipes=True)

    async def settle(self, command_id: int, body: bytes) -> None:
        """Report what was done even when nothing can be written for long."""
        await self._write(lambda db: inbox.settle(db, command_id, body), lasting=True)

    async def outcome(self, command_id: int) -> r.Outcome:
        return await self._read(lambda db: inbox.outcome(db, command_id))

    # ── hosts ─────────────────────────────────────────────────────────────────────────────────

    async def announce(self, host: r.HostRecord, *, seconds: float) -> None:
        await self._write(lambda db: owners.announce(db, host, seconds))

    async def depart(self, host_id: str) -> None:
        await self._write(lambda db: owners.depart(db, host_id))

    async def hosts(self) -> list[r.HostRecord]:
        return await self._read(owners.hosts)

    # ── what processes share ──────────────────────────────────────────────────────────────────

    async def shared(self, kind: str) -> dict[str, bytes]:
        return await self._read(lambda db: inbox.shared(db, kind))

    async def shared_one(self, kind: str, record_id: str) -> bytes | None:
        return await self._read(lambda db: inbox.shared_one(db, kind, record_id))

    async def share(
        self,
        kind: str,
        record_id: str,
        before: bytes | None,
        after: bytes | None,
        *,
        seconds: float | None = None,
    ) -> bool:
        return await self._write(
            lambda db: inbox.share(db, kind, record_id, before, after, seconds)
        )

    # ── news ──────────────────────────────────────────────────────────────────────────────────

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._news.subscribe(wake)

    def on_command(self, wake: Callable[[str | None], None]) -> Callable[[], None]:
        return self._news.subscribe(lambda: wake(None))

    # ── the two threads ───────────────────────────────────────────────────────────────────────

    async def _write(
        self,
        job: Callable[[Database], T],
        *,
        wipes: bool = False,
        lasting: bool = False,
        after: Callable[[], None] | None = None,
    ) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._writer.submit(WriteJob(job, future, wipes=wipes, lasting=lasting, after=after))
        return await future

    async def _in_portions(self, job: Callable[[Database], bool]) -> None:
        """Until it says that there is no more."""
        while await self._in_turn(job):
            pass

    async def _in_turn(self, job: Callable[[Database], T]) -> T:
        """With a pause as long as itself: other processes get at the database only while this one
        does not write."""
        began = time.monotonic()
        result = await self._write(job)
        await asyncio.sleep(min(time.monotonic() - began, _LONGEST_PAUSE))
        return result

    async def _read(self, job: Callable[[Database], T]) -> T:
        if self._reading is not None:
            return await self._reading.run(job)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._writer.submit(WriteJob(job, future, writes=False))
        return await future

    def _mirrored(
        self, what: Callable[[Mirror, str], None], session_id: str
    ) -> Callable[[], None] | None:
        return None if self._mirror is None else partial(what, self._mirror, session_id)


class _Reading:
    """A connection in a thread of its own: readers never wait for the writer."""

    def __init__(self, path: str, limits: StoreLimits) -> None:
        self._path = path
        self._limits = limits
        self._db: Database | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dragoman-store-reading")
        self._is_closed = False

    async def run(self, job: Callable[[Database], T]) -> T:
        if self._is_closed:
            raise StoreError(self._path, "the store is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._run, job)

    def _run(self, job: Callable[[Database], T]) -> T:
        if self._db is None:
            self._db = Database(self._path, limits=self._limits)
        return job(self._db)

    def close(self) -> None:
        """After what it is reading."""
        self._is_closed = True
        self._thread.shutdown(wait=True)
        if self._db is not None:
            self._db.close()
            self._db = None


class StoreNews:
    """Has the writer look for what other processes wrote while someone is subscribed."""

    def __init__(self, writer: StoreWriter) -> None:
        self._writer = writer
        writer.on_news = self._tell
        self._wakes: dict[object, Callable[[], None]] = {}

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._wakes[token] = wake
        if len(self._wakes) == 1:
            self._writer.watch(True)

        def end() -> None:
            if self._wakes.pop(token, None) is not None and not self._wakes:
                self._writer.watch(False)

        return end

    def _tell(self) -> None:
        for wake in list(self._wakes.values()):
            wake()
