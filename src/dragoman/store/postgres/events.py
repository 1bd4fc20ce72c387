"""Stored events and snapshots in SQL: appended, read by cursor, copied.

A batch that does not fit is refused alone. The row that numbers all events is locked last, since
every host waits for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import psycopg
from psycopg import pq
from psycopg.adapt import Dumper

from dragoman.errors import (
    DragomanError,
    NameTaken,
    RowDuplicate,
    RowRefused,
    SequenceGap,
    UnknownSession,
)
from dragoman.store.postgres.database import CHANNEL, Database
from dragoman.store.postgres.search import storable, vector
from dragoman.store.postgres.sessions import change_records, key_of
from dragoman.store.records import (
    Batch,
    Lease,
    Said,
    SessionChange,
    SessionTip,
    Snapshot,
    StoredEvent,
)

_SOME = """
SELECT position, id, seq, body FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY {order}) AS size,
        row_number() OVER (ORDER BY {order}) AS number
    FROM ({query}) AS found
) AS measured WHERE size <= %s OR number = 1 ORDER BY {order}
"""
# The numbers of a session are dense. With a limit instead, the server may take a long session for
# one like the others, read it to its end and sort it, for each of its pages.
_EVENTS = _SOME.format(
    order="seq",
    query="""
WITH wanted AS MATERIALIZED (
    SELECT key, id, last_seq, copied_at FROM sessions WHERE id = %s AND NOT deleted
)
SELECT coalesce(e.position, e.seq + (SELECT copied_at FROM wanted)) AS position,
    (SELECT id FROM wanted) AS id, e.seq, e.body
FROM events e WHERE e.session = (SELECT key FROM wanted)
    AND e.seq > %s AND e.seq <= %s AND e.seq <= (SELECT last_seq FROM wanted)
""",
)
# Up to the next copy, then that copy. One statement, so that no copy becomes whole in between.
_ALL_EVENTS = _SOME.format(
    order="position",
    query="""
WITH cursor AS (SELECT %s::bigint AS after, %s::bigint AS most), next_copy AS MATERIALIZED (
    SELECT key, id, copied, copied_at FROM sessions
    WHERE copied_at + copied > (SELECT after FROM cursor) AND copied > 0 AND NOT deleted
    ORDER BY copied_at + copied LIMIT 1
)
(
    SELECT e.position, s.id, e.seq, e.body FROM events e JOIN sessions s ON s.key = e.session
    WHERE e.position > (SELECT after FROM cursor)
        AND e.position <= coalesce((SELECT copied_at FROM next_copy), 9223372036854775807)
        AND e.seq <= s.last_seq AND NOT s.deleted
    ORDER BY e.position LIMIT (SELECT most FROM cursor)
)
UNION ALL
(
    SELECT c.copied_at + e.seq, c.id, e.seq, e.body
    FROM next_copy c JOIN events e ON e.session = c.key
    WHERE e.seq > (SELECT after FROM cursor) - c.copied_at AND e.seq <= c.copied
    ORDER BY e.seq LIMIT (SELECT most FROM cursor)
)
ORDER BY position LIMIT (SELECT most FROM cursor)
""",
)
_FURTHER = """
SELECT given.number - 1 FROM unnest(%s::text[], %s::bigint[]) WITH ORDINALITY
    AS given (id, after, number)
JOIN sessions s ON s.id = given.id AND NOT s.deleted AND s.last_seq > given.after
"""
_SNAPSHOT = """
SELECT n.seq, n.body FROM snapshots n JOIN sessions s ON s.key = n.session
WHERE s.id = %s AND NOT s.deleted AND n.seq <= s.last_seq
"""
_SAVE = """
INSERT INTO snapshots (session, seq, body) VALUES (%s, %s, %s)
ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body
"""
# As many as one transaction should have: every writer waits for it.
_NEXT = """
SELECT max(seq) FROM (
    SELECT seq, sum(octet_length(body)) OVER (ORDER BY seq) AS size
    FROM events WHERE session = %s AND seq > %s AND seq <= %s
) AS measured WHERE size <= %s OR seq = %s
"""
# What is not whole yet has no position, so that no reader of all events finds it.
_COPY_EVENTS = """
INSERT INTO events (session, seq, body)
SELECT %s, seq, body FROM events WHERE session = %s AND seq > %s AND seq <= %s
"""
_ADD_HIDDEN = """
INSERT INTO events (session, seq, body)
SELECT %s, given.seq, given.body FROM unnest(%b, %b) AS given (seq, body)
"""
_LAST_COPIED = "SELECT coalesce(max(seq), 0) FROM events WHERE session = %s"
_FINISH = """
WITH added AS (UPDATE head SET position = position + %s RETURNING position - %s AS before)
UPDATE sessions SET copied = %s, copied_at = added.before FROM added WHERE key = %s
"""
_COPY_SAID = """
INSERT INTO said (session, seq, kind, text, words)
SELECT %s, seq, kind, text, words FROM said WHERE session = %s AND seq > %s AND seq <= %s
"""
_COPY_SNAPSHOT = """
INSERT INTO snapshots (session, seq, body)
SELECT %s, seq, body FROM snapshots WHERE session = %s AND seq <= %s
ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body
"""
HEAD = "SELECT position FROM head"
_TOGETHER = 10
"""Sessions whose events are asked for in one round trip."""


class WantedEvents(msgspec.Struct, frozen=True):
    """The events of one session that a reader wants."""

    session_id: str
    after: int
    limit: int


async def events(db: Database, all_wanted: Sequence[WantedEvents]) -> list[list[StoredEvent]]:
    """For each; in one round trip, or in as many as keep what is in memory at once bounded."""
    found: list[list[StoredEvent]] = []
    for first in range(0, len(all_wanted), _TOGETHER):
        async with db.together():
            asked = [
                await db.ask(_EVENTS, _range(wanted, db.limits.read_bytes))
                for wanted in all_wanted[first : first + _TOGETHER]
            ]
        found += [[StoredEvent(*row) for row in await each.fetchall()] for each in asked]
    return found


def _range(wanted: WantedEvents, most: int) -> tuple[str, int, int, int]:
    # The driver has these as numbers of 64 bits.
    after = max(wanted.after, 0)
    last = after + min(wanted.limit, 2**31)
    return storable(wanted.session_id), after, last, most


async def further(db: Database, all_wanted: Sequence[WantedEvents]) -> set[int]:
    """Which of these have something to read, by their places in the list."""
    ids = [storable(wanted.session_id) for wanted in all_wanted]
    rows = await db.rows(_FURTHER, (ids, [wanted.after for wanted in all_wanted]))
    return {row[0] for row in rows}


async def all_events(db: Database, after: int, limit: int) -> list[StoredEvent]:
    rows = await db.rows(_ALL_EVENTS, (after, limit, db.limits.read_bytes))
    return [StoredEvent(*row) for row in rows]


async def last_position(db: Database) -> int:
    """Where the newest event of all stands, or stood before it was deleted."""
    row = await db.row(HEAD)
    return 0 if row is None else row[0]


async def snapshot(db: Database, session_id: str) -> Snapshot | None:
    row = await db.row(_SNAPSHOT, (storable(session_id),))
    return None if row is None else Snapshot(*row)


async def save_snapshot(db: Database, lease: Lease, saved: Snapshot) -> None:
    await db.run(_SAVE, ((await fenced(db, lease)).key, saved.seq, saved.body))


async def begin_copy(db: Database, source: str, lease: Lease, upto: int | None) -> int:
    """How far to copy: what the source is given from now on is its own. Nobody waits for that, and
    nobody sees any of the copy before `finish` says that all of it is there."""
    target, origin = await _unbegun(db, lease), await key_of(db, source)
    [(last,)] = await db.rows("SELECT last_seq FROM sessions WHERE key = %s", (origin,))
    last = last if upto is None else min(last, upto)
    await db.run(_COPY_SNAPSHOT, (target.key, origin, last))
    return last


async def copy_some(db: Database, source: str, lease: Lease, last: int) -> bool:
    """The next events on the way to the last, also from a copy that was cut short; whether there
    are more. The sequence stays the same, so what refers to it still does. Raises UnknownSession
    when the source is deleted meanwhile."""
    target, origin = await _unbegun(db, lease), await key_of(db, source)
    after = await _last_copied(db, target.key)
    further = min(last, after + db.limits.copy_events)
    asked = (origin, after, further, db.limits.read_bytes, after + 1)
    upto = (await db.rows(_NEXT, asked))[0][0] if after < last else after
    if upto is None:
        raise UnknownSession(source)
    await db.run(_COPY_SAID, (target.key, origin, after, upto))
    if await db.run(_COPY_EVENTS, (target.key, origin, after, upto)) != upto - after:
        raise UnknownSession(source)
    return upto < last


async def add_hidden(db: Database, lease: Lease, batch: Batch) -> None:
    """The next events of a session that nobody sees before `finish`, and its next texts."""
    target = await _unbegun(db, lease)
    after = await _last_copied(db, target.key)
    if batch.first_seq != after + 1:
        raise SequenceGap(db.place, after + 1, batch.first_seq)
    numbers = Integers(range(after + 1, after + 1 + len(batch.events)))
    if batch.events:
        await db.run(_ADD_HIDDEN, (target.key, numbers, Blobs(batch.events)))
    if batch.said:
        await add_said(db, [(target.key, each) for each in batch.said])


async def finish(db: Database, lease: Lease, change: SessionChange) -> int:
    """All of a copy is there. Readers of all events find it after everything else: a copy has the
    next positions, whatever was written while it was made. The last sequence."""
    key = (await _unbegun(db, lease)).key
    last = await _last_copied(db, key)
    await change_records(db, [(key, last, msgspec.to_builtins(change))])
    await db.run(_FINISH, (last, last, last, key))
    return last


async def _unbegun(db: Database, lease: Lease) -> SessionTip:
    """The session of a lease, of which nobody has seen anything. Raises as `fenced` does."""
    target = await fenced(db, lease)
    if target.last_seq:
        raise SequenceGap(db.place, target.last_seq + 1, 1)
    return target


async def _last_copied(db: Database, key: int) -> int:
    return (await db.rows(_LAST_COPIED, (key,)))[0][0]


# In one order for everyone, so that nobody waits for one who waits for him.
LOCKED = """
SELECT id, key, last_seq FROM sessions
WHERE id = ANY(%s) AND NOT deleted ORDER BY key FOR NO KEY UPDATE
"""
# A statement of its own, behind the lock: one that waits for a lock sees other tables as they were
# before it waited, and so would not see who took the session meanwhile.
_OWNERS = """
SELECT l.session, l.epoch, l.owner_id FROM session_leases l JOIN sessions s ON s.key = l.session
WHERE s.id = ANY(%s) AND NOT s.deleted
"""
_ADD_EVENTS = """
WITH added AS (
    UPDATE head SET position = position + %s RETURNING position - %s AS before
), stored AS (
    INSERT INTO events (position, session, seq, body)
    SELECT added.before + given.number, given.session, given.seq, given.body
    FROM added, unnest(%b, %b, %b) WITH ORDINALITY
        AS given (session, seq, body, number)
)
SELECT before FROM added
"""
# One that was stored before its outcome was known is stored again.
_ADD_SAID = """
INSERT INTO said (session, seq, kind, text, words)
SELECT session, seq, kind, text, words::tsvector
FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[])
    AS given (session, seq, kind, text, words)
ON CONFLICT DO NOTHING
"""
_HEAD = "SELECT position FROM head"
_STORED = """
SELECT seq, body FROM events
WHERE session = (SELECT key FROM sessions WHERE id = %s AND NOT deleted) AND seq = ANY(%s)
"""
_POSITION = """
SELECT coalesce(e.position, s.copied_at + e.seq) FROM sessions s JOIN events e ON e.session = s.key
WHERE s.key = %s AND e.seq = %s
"""
TELL = f"SELECT pg_notify('{CHANNEL}', '')"
TELL_OF = f"SELECT pg_notify('{CHANNEL}', %s)"


async def standings(
    db: Database, session_ids: Sequence[str], *, begins: bool = False
) -> dict[str, SessionTip]:
    """By id, and locked until the commit; sessions that are not there are left out. One round trip,
    also where a transaction `begins` with it."""
    ids = [storable(each) for each in session_ids]
    async with db.together():
        if begins:
            await db.run("BEGIN")
        locked, owned = await db.ask(LOCKED, (ids,)), await db.ask(_OWNERS, (ids,))
    # Outside: what is read inside of it costs a round trip of its own.
    sessions = await locked.fetchall()
    owners = {key: owner for key, *owner in await owned.fetchall()}
    return {row[0]: SessionTip(*row, *owners.get(row[1], (None, None))) for row in sessions}


async def fenced(db: Database, lease: Lease) -> SessionTip:
    """The session of a lease that still counts. Raises UnknownSession, LeaseLost."""
    found = await standings(db, [lease.session_id])
    if (standing := found.get(lease.session_id)) is None:
        raise UnknownSession(lease.session_id)
    standing.check(lease)
    return standing


class Sent(msgspec.Struct):
    """A batch on its way. `again` if it was sent before with an unknown outcome: events that are
    already stored are then left out."""

    lease: Lease
    batch: Batch
    again: bool = False

    @property
    def numbered(self) -> Iterator[tuple[int, bytes]]:
        return enumerate(self.batch.events, self.batch.first_seq)

    def has(self, session_id: str, seq: int) -> bool:
        index = seq - self.batch.first_seq
        return self.lease.session_id == session_id and 0 <= index < len(self.batch.events)


class AcceptedBatch(msgspec.Struct):
    """A batch that will be written: the number of its last event, and the place that has among all
    the new ones, from 1 on; 0 when it brings none."""

    key: int
    last_seq: int
    place: int


class Appending:
    """Everything that one transaction appends; collects accepted batches."""

    def __init__(self, place: str, found: dict[str, SessionTip]) -> None:
        self.bodies: list[bytes] = []
        self.keys: list[int] = []
        self.numbers: list[int] = []
        self.said: list[tuple[int, Said]] = []
        self.changes: dict[int, tuple[int, dict[str, Any]]] = {}
        self._place = place
        self._standings = found

    def accept(self, sent: Sent) -> AcceptedBatch:
        standing = self._standings.get(sent.lease.session_id)
        if standing is None:
            raise UnknownSession(sent.lease.session_id)
        standing.check(sent.lease)
        first, events = sent.batch.first_seq, sent.batch.events
        if sent.again and first <= standing.last_seq:
            events = events[standing.last_seq + 1 - first :]
            first = standing.last_seq + 1
        if first != standing.last_seq + 1:
            raise SequenceGap(self._place, standing.last_seq + 1, first)
        self._add(standing, events, sent.batch)
        return AcceptedBatch(standing.key, standing.last_seq, len(self.bodies) if events else 0)

    def _add(self, standing: SessionTip, events: Sequence[bytes], batch: Batch) -> None:
        first = standing.last_seq + 1
        self.bodies += events
        self.keys += [standing.key] * len(events)
        self.numbers += range(first, first + len(events))
        self.said += ((standing.key, said) for said in batch.said)
        standing.last_seq += len(events)
        _, fields = self.changes.get(standing.key, (0, dict[str, Any]()))
        self.changes[standing.key] = standing.last_seq, fields | msgspec.to_builtins(batch.change)

    async def write(self, db: Database) -> int:
        """Where the newest event of all stood before; all of it is committed then."""
        async with db.together():
            if self.changes:
                await change_records(db, [(key, *each) for key, each in self.changes.items()])
            if self.said:
                await add_said(db, self.said)
            await db.run(TELL)
            head = await (db.ask(_ADD_EVENTS, self._added()) if self.bodies else db.ask(_HEAD))
            await db.run("COMMIT")
        [(before,)] = await head.fetchall()
        return before

    def _added(self) -> tuple[int, int, Integers, Integers, Blobs]:
        count = len(self.bodies)
        return count, count, Integers(self.keys), Integers(self.numbers), Blobs(self.bodies)


async def add_said(db: Database, said: Sequence[tuple[int, Said]]) -> None:
    columns = zip(
        *((key, each.seq, each.kind, storable(each.text), vector(each.text)) for key, each in said),
        strict=True,
    )
    await db.run(_ADD_SAID, tuple(map(list, columns)))


async def append_all(db: Database, all_sent: Sequence[Sent]) -> list[int | DragomanError]:
    """For each batch the position of its last event, or why it was refused.

    A transaction of its own. Raises RowRefused when it has to be tried one by one.
    """
    try:
        found = await standings(db, list({each.lease.session_id for each in all_sent}), begins=True)
        appending = Appending(db.place, found)
        accepted = [_tried(appending, sent) for sent in all_sent]
        before = await appending.write(db)
    except RowRefused as error:
        await db.roll_back()
        if len(all_sent) > 1:
            raise
        return [_refused(all_sent[0], error)]
    except BaseException:
        await db.roll_back()
        raise
    return [await _position(db, before, each) for each in accepted]


def _refused(sent: Sent, error: RowRefused) -> DragomanError:
    if isinstance(error, RowDuplicate) and sent.batch.change.name:
        return NameTaken(sent.lease.session_id, sent.batch.change.name)
    return error


def _tried(appending: Appending, sent: Sent) -> AcceptedBatch | DragomanError:
    try:
        return appending.accept(sent)
    except DragomanError as error:
        return error


async def _position(
    db: Database, before: int, accepted: AcceptedBatch | DragomanError
) -> int | DragomanError:
    if isinstance(accepted, DragomanError):
        return accepted
    if accepted.place:
        return before + accepted.place
    row = await db.row(_POSITION, (accepted.key, accepted.last_seq))
    return before if row is None else row[0]


async def off_record(db: Database, all_sent: Sequence[Sent]) -> list[bytes]:
    """The events of refused batches of one session that are not stored: others are, when their
    commit's reply was lost, and are not alone where we have them."""
    numbered = [each for sent in all_sent for each in sent.numbered]
    session_id = storable(all_sent[0].lease.session_id)
    found = await db.rows(_STORED, (session_id, [seq for seq, _ in numbered]))
    stored: dict[int, bytes] = dict(found)
    return [body for seq, body in numbered if stored.get(seq) != body]


_BYTEA, _INT8 = 17, 20
# Dimensions, whether there are NULLs, the type; then the size and the first index.
_header = struct.Struct(">iiiii")


class Packed:
    """A list of one dimension, as bytes."""

    def __init__(self, kind: int, count: int, items: bytes) -> None:
        self.data = _header.pack(1, 0, kind, count, 1) + items


class Integers(Packed):
    """A bigint[] that is not empty."""

    def __init__(self, values: Sequence[int]) -> None:
        count = len(values)
        pairs = [part for value in values for part in (8, value)]
        super().__init__(_INT8, count, struct.pack(">" + "iq" * count, *pairs))


class Blobs(Packed):
    """A bytea[] that is not empty."""

    def __init__(self, values: Sequence[bytes]) -> None:
        pieces = [part for value in values for part in (len(value).to_bytes(4, "big"), value)]
        super().__init__(_BYTEA, len(values), b"".join(pieces))


class _PackedDumper(Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: Packed) -> bytes:
        return obj.data


class _IntegersDumper(_PackedDumper):
    oid = 1016


class _BlobsDumper(_PackedDumper):
    oid = 1001


psycopg.adapters.register_dumper(Integers, _IntegersDumper)
psycopg.adapters.register_dumper(Blobs, _BlobsDumper)
