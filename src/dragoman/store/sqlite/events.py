"""Stored events and snapshots in SQL: read by cursor, copied. Runs in a transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.errors import SequenceGap
from dragoman.store.records import Lease, Snapshot, StoredEvent
from dragoman.store.sqlite.appending import fenced
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.sessions import key_of

MAX_BYTES = 4 * 1024 * 1024
"""Of events that are read at once; a single larger one is read alone."""

_EVENTS = """
SELECT e.position, s.id, e.seq, e.body FROM sessions s JOIN events e ON e.session = s.key
WHERE s.id = ? AND NOT s.deleted AND e.seq > ? ORDER BY e.seq LIMIT ?
"""
_ALL_EVENTS = """
SELECT e.position, s.id, e.seq, e.body FROM events e CROSS JOIN sessions s ON s.key = e.session
WHERE e.position > ? AND NOT s.deleted ORDER BY e.position LIMIT ?
"""
_SNAPSHOT = """
SELECT n.seq, n.body FROM snapshots n JOIN sessions s ON s.key = n.session
WHERE s.id = ? AND NOT s.deleted AND n.seq <= s.last_seq
"""
_SAVE = "INSERT OR REPLACE INTO snapshots (session, seq, body) VALUES (?, ?, ?)"
_COPY_EVENTS = """
INSERT INTO events (session, seq, body) SELECT ?, seq, body FROM events WHERE session = ?
ORDER BY seq
"""
_COPY_SAID = """
INSERT INTO said (session, seq, kind, text) SELECT ?, seq, kind, text FROM said WHERE session = ?
ORDER BY id
"""
_COPY_SNAPSHOT = """
INSERT INTO snapshots (session, seq, body) SELECT ?, seq, body FROM snapshots WHERE session = ?
"""
_COPY_LAST_SEQ = """
UPDATE sessions SET last_seq = (SELECT last_seq FROM sessions WHERE key = ?) WHERE key = ?
RETURNING last_seq
"""


def events(db: Database, session_id: str, after: int, limit: int) -> list[StoredEvent]:
    return _some(db.each(_EVENTS, (session_id, after, limit)))


def all_events(db: Database, after: int, limit: int) -> list[StoredEvent]:
    return _some(db.each(_ALL_EVENTS, (after, limit)))


def _some(rows: Iterable[tuple[Any, ...]]) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    size = 0
    for row in rows:
        size += len(row[3])
        if size > MAX_BYTES and found:
            break
        found.append(StoredEvent(*row))
    return found


def snapshot(db: Database, session_id: str) -> Snapshot | None:
    row = db.row(_SNAPSHOT, (session_id,))
    return None if row is None else Snapshot(*row)


def save_snapshot(db: Database, lease: Lease, saved: Snapshot) -> None:
    db.run(_SAVE, (fenced(db, lease).key, saved.seq, saved.body))


def copy_events(db: Database, source: str, lease: Lease) -> int:
    """The sequence stays the same, so what refers to it still does."""
    target, origin = fenced(db, lease), key_of(db, source)
    if target.last_seq:
        raise SequenceGap(db.place, target.last_seq + 1, 1)
    db.run(_COPY_EVENTS, (target.key, origin))
    db.run(_COPY_SAID, (target.key, origin))
    db.run(_COPY_SNAPSHOT, (target.key, origin))
    return db.rows(_COPY_LAST_SEQ, (origin, target.key))[0][0]
