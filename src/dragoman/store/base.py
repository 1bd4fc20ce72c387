"""The interface of every store: sessions, events, owners, and commands that wait for them.

A store is also the bus between processes: readers use cursors, and a process that steers a session
sends a command to the owner's inbox. It knows neither agents nor clients.

Every method raises StoreError (StoreFull, StoreCorrupt) if the disk or the database fails; the
operation then had no effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Protocol

import msgspec

from dragoman.errors import DragomanError, UnknownSession
from dragoman.host.rules.policy import RuleStore, StoredRule
from dragoman.host.rules.rule import Rule
from dragoman.store import records as r

LEASE_SECONDS = 15.0
"""An owner, and a host, that was not heard of for so long is taken to be gone."""


class Rules(RuleStore, Protocol):
    """The stored permission rules, for the policy and for managing them."""

    def load(self) -> Sequence[StoredRule]:
        """All that is stored; `list` has those that count on this machine."""
        ...

    def add(self, rule: Rule, home: str | None = None) -> None:
        """Store a rule that was given here, or on the machine `home`."""
        ...

    def used(self, rule_id: str) -> None: ...

    def revoke(self, rule_id: str) -> bool: ...


class Store(Protocol):
    """Opened by `store.open.open_store`; `aclose` waits for what is being written."""

    @property
    def rules(self) -> Rules: ...

    @property
    def id(self) -> str:
        """The same whenever it is opened; no other store has it on the machines that have this."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether processes of this machine alone can have it."""
        ...

    @property
    def away(self) -> str | None:
        """While the database cannot be reached or written: what is delayed by that, in a
        sentence."""
        ...

    @property
    def holds_undelivered(self) -> bool:
        """Whether events are on this host's disk that the database does not have yet."""
        ...

    async def deliver_left(self) -> None:
        """Store what processes kept on this host's disk that have ended since."""
        ...

    def now(self) -> float:
        """The time by the clock of the store, which all that have it share; sessions are listed in
        its order."""
        ...

    async def aclose(self) -> None: ...

    async def hold(self) -> None:
        """Take now all that a host needs of the database. Raises StoreError where that is more than
        it allows."""
        ...

    # ── sessions ──────────────────────────────────────────────────────────────────────────────

    async def create_session(self, record: r.SessionRecord) -> None:
        """Raises NameTaken when the folder has a session of that name."""
        ...

    async def begin_session(
        self, record: r.SessionRecord, owner: r.Owner, *, seconds: float
    ) -> r.Lease:
        """The same, and it is the owner's from the first moment on."""
        ...

    async def session(self, session_id: str) -> r.SessionRecord | None: ...

    async def sessions(self, wanted: r.SessionFilter) -> list[r.SessionRecord]: ...

    async def kin(self) -> list[r.Kin]:
        """All sessions there are, at one moment."""
        ...

    async def size_of(self, session_id: str) -> int:
        """How many bytes its events, texts and snapshot are. Raises UnknownSession."""
        ...

    async def change_session(self, session_id: str, change: r.SessionChange) -> r.SessionRecord:
        """Raises UnknownSession, NameTaken."""
        ...

    async def delete_session(self, session_id: str, lease: r.Lease | None = None) -> None:
        """With its events, snapshot, texts, commands, lease and mirror. Raises UnknownSession,
        LeaseLost, and without a lease SessionOwned while another one has not run out."""
        ...

    async def reclaim(self) -> int:
        """Give room back to the disk that deleted sessions have left, a little at a time so that
        nobody waits for it; how many bytes."""
        ...

    # ── events ────────────────────────────────────────────────────────────────────────────────

    async def append(self, lease: r.Lease, batch: r.Batch) -> int:
        """Make a batch durable; the position of its last event.

        Batches of one session are written in the order of their calls; those that wait together
        are committed together. Raises LeaseLost when a later owner has the session, and
        SequenceGap when the events do not follow those stored. While the database is away it waits:
        what was taken is written in its order when that is over, and StoreAway is raised only when
        the store is closed before.
        """
        ...

    def has_kept(self, session_id: str, seq: int) -> bool:
        """Whether an event that is not durable yet, since the database is away, is on this host's
        disk until then."""
        ...

    async def events(
        self, session_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[r.StoredEvent]:
        """The events of one session behind the one numbered `after`; at most some MiB at once."""
        ...

    async def all_events(self, *, after: int = 0, limit: int = 1000) -> list[r.StoredEvent]:
        """The events of all sessions behind a position. Those of a copy come together, where it
        became whole."""
        ...

    async def last_position(self) -> int: ...

    async def snapshot(self, session_id: str) -> r.Snapshot | None: ...

    async def save_snapshot(self, lease: r.Lease, snapshot: r.Snapshot) -> None:
        """Raises LeaseLost."""
        ...

    async def copy_events(self, source: str, lease: r.Lease, upto: int | None = None) -> int:
        """Give the new, empty session of the lease all events of another, or those `upto` one of
        them, and its snapshot unless that is newer; the last sequence. Nobody sees any of them
        before all are there. What is left of one that failed is continued by the next, or deleted
        with the session."""
        ...

    async def fill(
        self, lease: r.Lease, batches: Iterable[r.Batch], change: r.SessionChange
    ) -> int:
        """The same with the events and texts of these batches, which follow each other from the
        first event on; they are written one by one, so that nobody waits for all of them."""
        ...

    async def search(self, query: str, *, limit: int = 50) -> list[r.Hit]:
        """Where these words stand, best first; the last one may be the beginning of a word."""
        ...

    # ── owners ────────────────────────────────────────────────────────────────────────────────

    async def acquire(
        self, session_id: str, owner: r.Owner, *, seconds: float, gone: r.HasEnded
    ) -> r.Lease:
        """Take a session that nobody owns, or whose owner is `gone`.

        Of an owner that is neither gone nor known to be there (None) the lease decides. One that is
        there keeps the session even then: clocks jump, and machines sleep.

        Raises UnknownSession, SessionOwned.
        """
        ...

    async def renew(self, owner: r.Owner, *, seconds: float) -> set[str]:
        """Extend all leases of an owner; the sessions it still has."""
        ...

    async def release(self, lease: r.Lease) -> None: ...

    async def owner(self, session_id: str) -> r.Owner | None:
        """Who has the session, whether alive or not."""
        ...

    async def owned(self) -> list[tuple[str, r.Owner]]:
        """Every session that has an owner, alive or not."""
        ...

    async def standing(self, session_id: str) -> r.Standing: ...

    async def overview(self, wanted: r.SessionFilter) -> r.Overview:
        """Raises UnknownSession when `before` is gone."""
        ...

    # ── commands ──────────────────────────────────────────────────────────────────────────────

    async def send(self, session_id: str, body: bytes, *, to: str | None = None) -> int:
        """Put a command into a session's inbox; its id. With `to` a host of that id is called, in
        case nobody owns the session. Raises UnknownSession."""
        ...

    async def calls(self, host_id: str) -> list[r.StoredCommand]:
        """The commands sent to a host that wait for sessions which nobody owns who is alive, oldest
        first; they are not taken by this."""
        ...

    async def take(
        self, leases: Sequence[r.Lease], *, hinted: bool = False
    ) -> list[r.StoredCommand]:
        """The commands that wait for these sessions, each given out once and then forgotten except
        for its outcome; one that has waited for very long is only forgotten. With `hinted` there
        probably are some."""
        ...

    async def withdraw(self, command_id: int) -> bool:
        """Take a command back, unless it is too late for that; whether nobody will see it."""
        ...

    async def settle(self, command_id: int, body: bytes) -> None: ...

    async def outcome(self, command_id: int) -> r.Outcome: ...

    # ── hosts ─────────────────────────────────────────────────────────────────────────────────

    async def announce(self, host: r.HostRecord, *, seconds: float) -> None:
        """A host is there, for so long from now on the store's clock; it takes the place of those
        with the same home that are not alive."""
        ...

    async def depart(self, host_id: str) -> None:
        """A host has gone, in order: it is not alive from now on."""
        ...

    async def hosts(self) -> list[r.HostRecord]:
        """Those that are there, and those that were, until their home has another or a month has
        passed; by name."""
        ...

    # ── what processes share ──────────────────────────────────────────────────────────────────

    async def shared(self, kind: str) -> dict[str, bytes]:
        """The small records of a kind, by their ids, such as access tokens; without those whose
        time is over."""
        ...

    async def shared_one(self, kind: str, record_id: str) -> bytes | None: ...

    async def share(
        self,
        kind: str,
        record_id: str,
        before: bytes | None,
        after: bytes | None,
        *,
        seconds: float | None = None,
    ) -> bool:
        """Replace the record, which must be `before`, by `after`; None means that there is none. Of
        several processes that try, one succeeds: the result says whether it was this one. With
        `seconds` it is forgotten after that time."""
        ...

    # ── news ──────────────────────────────────────────────────────────────────────────────────

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have `wake` called in the running loop whenever something may be new, also when another
        process wrote it; a hint, not a promise of news. The result ends that."""
        ...

    def on_command(self, wake: Callable[[str | None], None]) -> Callable[[], None]:
        """The same for commands: with the session for which one may have come, or that may be taken
        now by the host that was called; None when it may be any."""
        ...


@asynccontextmanager
async def renewed_leases(
    store: Store, owner: r.Owner, seconds: float = LEASE_SECONDS
) -> AsyncGenerator[None]:
    """As long as this lasts, those of an owner that has no hub do not run out."""

    async def keep_renewing() -> None:
        while True:
            await asyncio.sleep(seconds / 4)
            with suppress(DragomanError):
                await store.renew(owner, seconds=seconds)

    renewing = asyncio.create_task(keep_renewing())
    try:
        yield
    finally:
        renewing.cancel()


async def session_pages(
    store: Store, wanted: r.SessionFilter
) -> AsyncGenerator[list[r.SessionRecord]]:
    """The sessions that are wanted, `wanted.limit` at a time. Where the last of a page is deleted
    meanwhile, the rest is missed."""
    with suppress(UnknownSession):
        while page := await store.sessions(wanted):
            yield page
            if len(page) < wanted.limit:
                return
            wanted = msgspec.structs.replace(wanted, before=page[-1].id)


_PAGE = 2_000


async def event_pages(
    store: Store, session_id: str, *, after: int = 0, until: int | None = None
) -> AsyncGenerator[list[r.StoredEvent]]:
    """The events after the one numbered `after`, up to `until`, in pages. Without `until`, up to
    the last one there is now: an agent may add more as fast as they are read."""
    if until is None:
        record = await store.session(session_id)
        until = 0 if record is None else record.last_seq
    while after < until:
        limit = min(_PAGE, until - after)
        if not (page := await store.events(session_id, after=after, limit=limit)):
            return
        yield page
        after = page[-1].seq


async def events_of_types(
    store: Store, session_id: str, types: Iterable[str], *, after: int = 0, until: int | None = None
) -> AsyncGenerator[r.StoredEvent]:
    """Those among its pages."""
    beginnings = tuple(b'{"type":"%b"' % each.encode() for each in types)
    async with aclosing(event_pages(store, session_id, after=after, until=until)) as pages:
        async for page in pages:
            for event in page:
                if event.body.startswith(beginnings):
                    yield event
