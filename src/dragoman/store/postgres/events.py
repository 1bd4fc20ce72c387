"""Stored events and snapshots in SQL: read by cursor, copied."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.errors import SequenceGap, UnknownSession
from dragoman.store.postgres.appending import fenced
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.search_words import storable
from dragoman.store.postgres.sessions import key_of
from dragoman.store.records import Lease, Snapshot, StoredEvent
from dragoman.store.sqlite import events as limits

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
SELECT e.position, %s::text AS id, e.seq, e.body FROM events e
WHERE e.session = (SELECT key FROM sessions WHERE id = %s AND NOT deleted)
    AND e.seq > %s AND e.seq <= %s
""",
)
_ALL_EVENTS = _SOME.format(
    order="position",
    query="""
SELECT e.position, s.id, e.seq, e.body FROM events e JOIN sessions s ON s.key = e.session
WHERE e.position > %s AND NOT s.deleted ORDER BY e.position LIMIT %s
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
_COPY_EVENTS = """
WITH added AS (UPDATE head SET position = position + %s RETURNING position - %s AS before)
INSERT INTO events (position, session, seq, body)
SELECT added.before + row_number() OVER (ORDER BY e.seq), %s, e.seq, e.body
FROM added, events e WHERE e.session = %s AND e.seq > %s AND e.seq <= %s
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
COPY_EVENTS = 2000
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
                await db.ask(_EVENTS, _range(wanted))
                for wanted in all_wanted[first : first + _TOGETHER]
            ]
        found += [[StoredEvent(*row) for row in await each.fetchall()] for each in asked]
    return found


def _range(wanted: WantedEvents) -> tuple[str, str, int, int, int]:
    # The driver has these as numbers of 64 bits.
    after = max(wanted.after, 0)
    last = after + min(wanted.limit, 2**31)
    session_id = storable(wanted.session_id)
    return session_id, session_id, after, last, limits.MAX_BYTES


async def further(db: Database, all_wanted: Sequence[WantedEvents]) -> set[int]:
    """Which of these have something to read, by their places in the list."""
    ids = [storable(wanted.session_id) for wanted in all_wanted]
    rows = await db.rows(_FURTHER, (ids, [wanted.after for wanted in all_wanted]))
    return {row[0] for row in rows}


async def all_events(db: Database, after: int, limit: int) -> list[StoredEvent]:
    rows = await db.rows(_ALL_EVENTS, (after, limit, limits.MAX_BYTES))
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


async def begin_copy(db: Database, source: str, lease: Lease) -> int:
    """How far to copy: what the source is given from now on is its own. Nobody waits for that, and
    the state that is copied first counts once the events are there that lead to it."""
    target, origin = await fenced(db, lease), await key_of(db, source)
    if target.last_seq:
        raise SequenceGap(db.place, target.last_seq + 1, 1)
    [(last,)] = await db.rows("SELECT last_seq FROM sessions WHERE key = %s", (origin,))
    await db.run(_COPY_SNAPSHOT, (target.key, origin, last))
    return last


async def copy_some(db: Database, source: str, lease: Lease, last: int) -> bool:
    """The next events on the way to the last; whether there are more. The sequence stays the same,
    so what refers to it still does. Raises UnknownSession when the source is deleted meanwhile."""
    target, origin = await fenced(db, lease), await key_of(db, source)
    after = target.last_seq
    asked = (origin, after, min(last, after + COPY_EVENTS), limits.MAX_BYTES, after + 1)
    upto = (await db.rows(_NEXT, asked))[0][0] if after < last else after
    if upto is None:
        raise UnknownSession(source)
    await db.run(_COPY_SAID, (target.key, origin, after, upto))
    await db.run("UPDATE sessions SET last_seq = %s WHERE key = %s", (upto, target.key))
    count = upto - after
    if await db.run(_COPY_EVENTS, (count, count, target.key, origin, after, upto)) != count:
        raise UnknownSession(source)
    return upto < last
