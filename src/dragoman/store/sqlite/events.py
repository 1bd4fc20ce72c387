"""Stored events and snapshots in SQL: appended, read by cursor, copied. Runs in a transaction.

Each statement gives up the interpreter's lock, and a busy event loop gives it back late. Runs
inside the writer's transaction. A batch that does not fit is refused alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dragoman.errors import DragomanError, SequenceGap, UnknownSession
from dragoman.store.records import (
    Batch,
    Lease,
    SessionChange,
    SessionTip,
    Snapshot,
    StoredEvent,
)
from dragoman.store.sqlite import sessions
from dragoman.store.sqlite.database import Database, blobs, integers, texts
from dragoman.store.sqlite.sessions import change_records, key_of

_EVENTS = """
SELECT iif(e.seq > s.copied, e.position, s.copied_at + e.seq), s.id, e.seq, e.body
FROM sessions s JOIN events e ON e.session = s.key
WHERE s.id = ? AND NOT s.deleted AND e.seq > ? AND e.seq <= s.last_seq ORDER BY e.seq LIMIT ?
"""
# Up to the next copy, then that copy. One statement, so that no copy becomes whole in between.
_ALL_EVENTS = """
WITH next_copy AS MATERIALIZED (
    SELECT key, id, copied, copied_at FROM sessions
    WHERE copied_at + copied > ?1 AND copied > 0 AND NOT deleted
    ORDER BY copied_at + copied LIMIT 1
)
SELECT * FROM (
    SELECT e.position, s.id, e.seq, e.body FROM events e CROSS JOIN sessions s ON s.key = e.session
    WHERE e.position > ?1 AND e.position <= coalesce((SELECT copied_at FROM next_copy), ?2)
        AND e.seq > s.copied AND e.seq <= s.last_seq AND NOT s.deleted
    ORDER BY e.position
)
UNION ALL
SELECT * FROM (
    SELECT c.copied_at + e.seq, c.id, e.seq, e.body
    FROM next_copy c CROSS JOIN events e ON e.session = c.key
    WHERE e.seq > ?1 - c.copied_at AND e.seq <= c.copied
    ORDER BY e.seq
)
LIMIT ?3
"""
_LAST = 2**62
_SNAPSHOT = """
SELECT n.seq, n.body FROM snapshots n JOIN sessions s ON s.key = n.session
WHERE s.id = ? AND NOT s.deleted AND n.seq <= s.last_seq
"""
_SAVE = "INSERT OR REPLACE INTO snapshots (session, seq, body) VALUES (?, ?, zeroblob(?))"
_COPY_SNAPSHOT = """
INSERT OR REPLACE INTO snapshots (session, seq, body)
SELECT ?, seq, body FROM snapshots WHERE session = ? AND seq <= ?
"""
_LAST_COPIED = "SELECT coalesce(max(seq), 0) FROM events WHERE session = ?"
_WEIGH_EVENTS = f"""
SELECT seq, octet_length(body) FROM events WHERE session = ? AND seq > ? AND seq <= ?
ORDER BY seq LIMIT {sessions.PORTION_ROWS}
"""
# What is not whole yet is where no reader of all events looks.
_LAST_HIDDEN = f"SELECT coalesce(max(position), -{_LAST}) FROM events WHERE position < 0"
_COPY_EVENTS = """
INSERT INTO events (position, session, seq, body)
SELECT ?1 + row_number() OVER (ORDER BY seq), ?2, seq, body FROM events
WHERE session = ?3 AND seq > ?4 AND seq <= ?5
"""
_ADD_HIDDEN = """
INSERT INTO events (position, session, seq, body)
SELECT ?1 + rowid, ?2, ?3 + rowid, value FROM carray(?4)
"""
# They are copied in the order of their ids, so the first ones of the source are those that are
# there.
_LAST_SAID = """
SELECT coalesce(max(id), 0) FROM (
    SELECT id FROM said WHERE session = ? AND seq <= ? ORDER BY id
    LIMIT (SELECT count(*) FROM said WHERE session = ?)
)
"""
_WEIGH_SAID = f"""
SELECT id, octet_length(text) * {sessions.TEXT_WEIGHT} FROM said
WHERE session = ? AND id > ? AND seq <= ?
ORDER BY id LIMIT {sessions.PORTION_ROWS // sessions.TEXT_WEIGHT}
"""
_COPY_SAID = """
INSERT INTO said (session, seq, kind, text)
SELECT ?, seq, kind, text FROM said WHERE id IN (SELECT value FROM carray(?)) ORDER BY id
"""


def events(db: Database, session_id: str, after: int, limit: int) -> list[StoredEvent]:
    return _some(db, db.each(_EVENTS, (session_id, after, limit)))


def all_events(db: Database, after: int, limit: int) -> list[StoredEvent]:
    return _some(db, db.each(_ALL_EVENTS, (max(after, 0), _LAST, limit)))


def _some(db: Database, rows: Iterable[tuple[Any, ...]]) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    size = 0
    for row in rows:
        size += len(row[3])
        if size > db.limits.read_bytes and found:
            break
        found.append(StoredEvent(*row))
    return found


def snapshot(db: Database, session_id: str) -> Snapshot | None:
    row = db.row(_SNAPSHOT, (session_id,))
    return None if row is None else Snapshot(*row)


def save_snapshot(db: Database, lease: Lease, saved: Snapshot) -> None:
    key = fenced(db, lease).key
    db.run(_SAVE, (key, saved.seq, len(saved.body)))
    db.fill_blob("snapshots", "body", key, saved.body)


def begin_copy(db: Database, source: str, lease: Lease, upto: int | None) -> int:
    """How far to copy: what the source is given from now on is its own. Nobody sees any of the copy
    before `finish` says that all of it is there."""
    target, origin = _unbegun(db, lease), key_of(db, source)
    last = db.rows("SELECT last_seq FROM sessions WHERE key = ?", (origin,))[0][0]
    last = last if upto is None else min(last, upto)
    db.run(_COPY_SNAPSHOT, (target.key, origin, last))
    return last


def copy_some(db: Database, source: str, lease: Lease, last: int) -> bool:
    """The next events after those that are there, also from a copy that was cut short; whether
    there are more. The sequence stays the same, so what refers to it still does."""
    target, origin = _unbegun(db, lease), key_of(db, source)
    after = _last_copied(db, target.key)
    some = sessions.portion(db, db.each(_WEIGH_EVENTS, (origin, after, last)))
    if some:
        hidden = db.rows(_LAST_HIDDEN)[0][0]
        db.run(_COPY_EVENTS, (hidden, target.key, origin, after, some[-1]))
    return bool(some)


def last_said(db: Database, source: str, lease: Lease, last: int) -> int:
    """The last text of the source that the copy has."""
    target, origin = _unbegun(db, lease), key_of(db, source)
    return db.rows(_LAST_SAID, (origin, last, target.key))[0][0]


def copy_said(db: Database, source: str, lease: Lease, last: int, after: int) -> int | None:
    """The next texts; the last of them, or None when there are no more."""
    target, origin = _unbegun(db, lease), key_of(db, source)
    some = sessions.portion(db, db.each(_WEIGH_SAID, (origin, after, last)))
    if not some:
        return None
    db.run(_COPY_SAID, (target.key, integers(some)))
    return some[-1]


def add_hidden(db: Database, lease: Lease, batch: Batch) -> None:
    """The next events of a session that nobody sees before `finish`, and its next texts."""
    target = _unbegun(db, lease)
    after = _last_copied(db, target.key)
    if batch.first_seq != after + 1:
        raise SequenceGap(db.place, after + 1, batch.first_seq)
    if batch.events:
        hidden = db.rows(_LAST_HIDDEN)[0][0]
        db.run(_ADD_HIDDEN, (hidden, target.key, after, blobs(batch.events)))
    if batch.said:
        add_said(db, [(target.key, each.seq, each.kind, each.text) for each in batch.said])


def finish(db: Database, lease: Lease, change: SessionChange) -> int:
    """All of a copy is there. Readers of all events find it after everything else: a copy has the
    next positions, whatever was written while it was made. The last sequence."""
    target = _unbegun(db, lease)
    last, at = _last_copied(db, target.key), last_position(db)
    db.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'events'", (last,))
    db.run("UPDATE sessions SET copied = ?, copied_at = ? WHERE key = ?", (last, at, target.key))
    change_records(db, [(target.key, last, msgspec.to_builtins(change))])
    return last


def _unbegun(db: Database, lease: Lease) -> SessionTip:
    """The session of a lease, of which nobody has seen anything. Raises as `fenced` does."""
    target = fenced(db, lease)
    if target.last_seq:
        raise SequenceGap(db.place, target.last_seq + 1, 1)
    return target


def _last_copied(db: Database, key: int) -> int:
    return db.rows(_LAST_COPIED, (key,))[0][0]


_STANDING = """
SELECT json_group_array(json_array(s.id, s.key, s.last_seq, l.epoch, l.owner_id))
FROM sessions s LEFT JOIN session_leases l ON l.session = s.key
WHERE s.id IN (SELECT value FROM carray(?)) AND NOT s.deleted
"""
_ADD_EVENTS = """
INSERT INTO events (session, seq, body) SELECT ?, ? + rowid, value FROM carray(?)
"""
_POSITION = """
SELECT iif(e.seq > s.copied, e.position, s.copied_at + e.seq)
FROM sessions s JOIN events e ON e.session = s.key WHERE s.key = ? AND e.seq = ?
"""
_LAST_POSITION = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"
_ADD_SAID = """
INSERT INTO said (session, seq, kind, text)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)
"""
_STORED = """
SELECT seq, body FROM events
WHERE session = (SELECT key FROM sessions WHERE id = ? AND NOT deleted) AND seq BETWEEN ? AND ?
"""


def last_position(db: Database) -> int:
    """Where the newest event of all stands, or stood before it was deleted."""
    row = db.row(_LAST_POSITION)
    return 0 if row is None else row[0]


def add_events(db: Database, key: int, before: int, bodies: Sequence[bytes]) -> int:
    """Append after the event numbered `before`; returns the position of the last one."""
    if not bodies:
        return last_position(db)
    db.run(_ADD_EVENTS, (key, before, blobs(bodies)))
    return db.last_rowid


def add_said(db: Database, said: Sequence[tuple[int, int, str, str]]) -> None:
    """Each with the key of its session, the number of its event, its kind and its text."""
    db.run(_ADD_SAID, (msgspec.json.encode(said).decode(),))


_standings = msgspec.json.Decoder(list[SessionTip])


def standings(db: Database, session_ids: Sequence[str]) -> dict[str, SessionTip]:
    """By id; sessions that are not there are left out."""
    found = db.rows(_STANDING, (texts(session_ids),))
    return {each.id: each for each in _standings.decode(found[0][0])}


def fenced(db: Database, lease: Lease) -> SessionTip:
    """The session of a lease that still counts. Raises UnknownSession, LeaseLost."""
    standing = standings(db, [lease.session_id]).get(lease.session_id)
    if standing is None:
        raise UnknownSession(lease.session_id)
    standing.check(lease)
    return standing


class Appending:
    """Everything that one transaction appends: collects accepted batches, and `write` writes
    them."""

    def __init__(self, db: Database, session_ids: Sequence[str]) -> None:
        self._db = db
        self._standings = standings(db, session_ids)
        self._events: dict[int, tuple[int, list[bytes]]] = {}
        self._fields: dict[int, dict[str, Any]] = {}
        self._said: list[tuple[int, int, str, str]] = []
        self._last: dict[int, int] = {}
        """For each session the position of the last event that was written."""

    def accept(self, lease: Lease, batch: Batch, again: bool) -> tuple[int, int]:
        """The session's key, and the number its last event will have. One that was tried before is
        written, except what is already stored."""
        standing = self._standings.get(lease.session_id)
        if standing is None:
            raise UnknownSession(lease.session_id)
        standing.check(lease)
        first, events = batch.first_seq, batch.events
        if again and first <= standing.last_seq:
            events = events[standing.last_seq + 1 - first :]
            first = standing.last_seq + 1
        if first != standing.last_seq + 1:
            raise SequenceGap(self._db.place, standing.last_seq + 1, first)
        key = standing.key
        self._events.setdefault(key, (standing.last_seq, []))[1].extend(events)
        self._fields.setdefault(key, {}).update(msgspec.to_builtins(batch.change))
        if events or not batch.events:
            self._said += ((key, said.seq, said.kind, said.text) for said in batch.said)
        standing.last_seq += len(events)
        return key, standing.last_seq

    def write(self) -> None:
        for key, (before, bodies) in self._events.items():
            self._last[key] = add_events(self._db, key, before, bodies)
        changes = [(key, self._last_seq(key), fields) for key, fields in self._fields.items()]
        if changes:
            change_records(self._db, changes)
        if self._said:
            add_said(self._db, self._said)

    def _last_seq(self, key: int) -> int:
        before, bodies = self._events[key]
        return before + len(bodies)

    def position(self, key: int, seq: int) -> int:
        """Of an event that was written, or was there before."""
        if seq > self._events[key][0]:
            # Those of one session are inserted in one go, so their positions follow each other.
            return self._last[key] - (self._last_seq(key) - seq)
        row = self._db.row(_POSITION, (key, seq))
        return last_position(self._db) if row is None else row[0]


def append_all(
    db: Database, appends: Sequence[tuple[Lease, Batch, bool]]
) -> list[int | DragomanError]:
    """For each batch, and whether it was tried before, the position of its last event, or why it
    was refused."""
    ids = {lease.session_id for lease, _, _ in appends}
    appending = Appending(db, tuple(ids))
    accepted = [_tried(appending, *each) for each in appends]
    appending.write()
    return [
        each if isinstance(each, DragomanError) else appending.position(*each) for each in accepted
    ]


def _tried(
    appending: Appending, lease: Lease, batch: Batch, again: bool
) -> tuple[int, int] | DragomanError:
    try:
        return appending.accept(lease, batch, again)
    except DragomanError as error:
        return error


def off_record(db: Database, lease: Lease, batch: Batch) -> list[bytes]:
    """The events of a refused batch that are not stored."""
    last = batch.first_seq + len(batch.events) - 1
    stored = dict(db.rows(_STORED, (lease.session_id, batch.first_seq, last)))
    numbered = enumerate(batch.events, batch.first_seq)
    return [body for seq, body in numbered if stored.get(seq) != body]
