"""Checks whether the data in PostgreSQL is consistent. Only reads."""

from __future__ import annotations

from dragoman.errors import StoreError
from dragoman.store.postgres.address import Address
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.tables import STEPS, must_not_be_later, version

_COUNTS = "SELECT count(*), coalesce(sum(last_seq), 0)::bigint FROM sessions WHERE NOT deleted"
_DENSE = """
SELECT s.id, s.last_seq, coalesce(e.count, 0), coalesce(e.last, 0)
FROM sessions s LEFT JOIN (
    SELECT session, count(*) AS count, max(seq) AS last FROM events GROUP BY session
) e ON e.session = s.key
WHERE NOT s.deleted AND (s.last_seq <> coalesce(e.count, 0) OR s.last_seq <> coalesce(e.last, 0))
    -- A copy that is not whole has no last one yet.
    AND (s.last_seq > 0 OR e.count <> e.last)
"""
_HEAD = """
SELECT position, greatest(
    (SELECT max(position) FROM events), (SELECT max(copied_at + copied) FROM sessions)
) FROM head
"""
_STRAY = """
SELECT DISTINCT e.session FROM events e
WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.key = e.session)
"""


async def check(address: str) -> tuple[str, int, int, list[str]]:
    """Where it is, how many sessions and events it has, and what is wrong with it. Raises
    StoreError."""
    where = Address(address)
    db = await Database.connect(where)
    try:
        await _must_be_ours(db)
        [(sessions, events)] = await db.rows(_COUNTS)
        return where.shown, sessions, events, await faults(db)
    finally:
        await db.close()


async def _must_be_ours(db: Database) -> None:
    seen = await version(db)
    must_not_be_later(db.place, seen)
    if not seen:
        raise StoreError(db.place, "this database contains no store")
    if seen < len(STEPS):
        raise StoreError(db.place, "it has an earlier format, and is upgraded when next opened")


async def faults(db: Database) -> list[str]:
    """In words; nothing when all is in order."""
    found = [
        f"session {session_id} should have {expected} events, has {count}, the last is {last}"
        for session_id, expected, count, last in await db.rows(_DENSE)
    ]
    head = await db.row(_HEAD)
    if head is None or head[0] < (head[1] or 0):
        found.append("there are events after the newest one")
    strays = await db.rows(_STRAY)
    if strays:
        found.append(f"{len(strays)} sessions have events but no record")
    return found
